# SPDX-License-Identifier: Apache-2.0
"""Optimizers that are not torch's, and torch's around which others stand: equal, or refused."""

import own_optimizers as own
import pytest
import torch
from planned_training import Training, check_equal, loss_of, simple

import stowage


class Kept:
    def __init__(self, value):
        self._value = value

    def state_dict(self):
        return self._value()


def of(kind, **options):
    def case(model):
        optimizer = kind(model.parameters(), **options)
        if hasattr(optimizer, "train"):
            optimizer.train()
        kept = {name: Kept(lambda name=name: vars(optimizer)[name]) for name in ("steps", "calls")
                if name in vars(optimizer)}
        if hasattr(optimizer, "momenta"):
            kept["momenta"] = Kept(lambda: list(optimizer.momenta.values()))
        return simple(model, optimizer, kept=kept)

    return case


@pytest.mark.parametrize("kind", [
    own.Lion, own.InBytes, own.OddKeys, own.InContainers, own.WholeEntries, own.CountsFromNothing,
    own.InAttributes, own.InGroups, own.UnderOneKey, own.MakesAnew, own.Foreach, own.Lamb,
    own.ScheduleFree, own.AroundAdamW])
def test_has_plain_bits(kind):
    check_equal(of(kind))


@pytest.mark.filterwarnings("ignore:the step writes")
@pytest.mark.parametrize("kind", [own.InContainers, own.UnderOneKey, own.InAttributes,
                                  own.MakesAnew, own.ClonesAfterUpdate])
def test_goes_on_from_plain_steps(kind):
    check_equal(of(kind), before=1)


@pytest.mark.parametrize(("kind", "text"), [
    (own.LambOnHost, "own_optimizers.py"), (own.KeepsGradient, "copy_"), (own.Swaps, "copy_"),
    (own.EachThirdStep, "the step is not the same each time"),
    (own.NumberOfDevice, "torch.zeros(1)"), (own.ClonesAfterUpdate, "before the first step")])
def test_refuses_with_a_way_out(kind, text):
    with pytest.raises(stowage.Unsupported) as raised:
        check_equal(of(kind))
    assert text in str(raised.value)


@pytest.mark.parametrize("options", [
    {"relative_step": False, "lr": 1e-3}, {"warmup_init": True},
    {"relative_step": False, "lr": 1e-3, "beta1": 0.9, "weight_decay": 0.1}],
    ids=["trainer", "relative", "momentum"])
def test_adafactor_of_transformers(options):
    optimization = pytest.importorskip("transformers.optimization")
    check_equal(of(optimization.Adafactor, scale_parameter=False, **options))


def test_adafactor_that_scales_by_parameters_is_refused():
    optimization = pytest.importorskip("transformers.optimization")
    with pytest.raises(stowage.Unsupported, match="scale_parameter=False, relative_step=False"):
        check_equal(of(optimization.Adafactor))


def test_sharpness_aware_step_with_two_backwards():
    def case(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(x, y):
            loss = loss_of(model, x, y)
            loss.backward()
            with torch.no_grad():
                norm = torch.stack([one.grad.norm() for one in model.parameters()]).norm()
                moves = [one.grad * (0.05 / (norm + 1e-12)) for one in model.parameters()]
                for one, move in zip(model.parameters(), moves, strict=True):
                    one.add_(move)
            optimizer.zero_grad()
            loss_of(model, x, y).backward()
            with torch.no_grad():
                for one, move in zip(model.parameters(), moves, strict=True):
                    one.sub_(move)
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return Training([optimizer], step)

    check_equal(case)


def test_wrapped_by_accelerate():
    accelerate = pytest.importorskip("accelerate")

    def case(model):
        accelerator = accelerate.Accelerator(cpu=True)
        optimizer = accelerator.prepare_optimizer(torch.optim.AdamW(model.parameters(), lr=1e-2))

        def step(x, y):
            loss = loss_of(model, x, y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return Training([optimizer], step)

    check_equal(case)


def test_disabled_scaler_and_bf16_autocast():
    def case(model):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        scaler = torch.amp.GradScaler("cpu", enabled=False)

        def step(x, y):
            with torch.autocast("cpu", torch.bfloat16):
                loss = loss_of(model, x, y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            return loss

        return Training([optimizer], step, kept={"scaler": scaler})

    check_equal(case)


def test_enabled_scaler_is_refused():
    def case(model):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        scaler = torch.amp.GradScaler("cpu")

        def step(x, y):
            loss = loss_of(model, x, y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            return loss

        return Training([optimizer], step)

    with pytest.raises(stowage.Unsupported, match=r"bfloat16, .* with GradScaler\(enabled=False\)"):
        check_equal(case)
