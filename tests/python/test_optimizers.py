# SPDX-License-Identifier: Apache-2.0
"""Optimizers, schedulers and host code in a planned step: plain PyTorch's bits, or a refusal."""

import random

import planned_training as training_of
import pytest
import torch
from planned_training import Training, batches, begin, check_equal, loss_of, planned, simple
from torch import optim
from torch.optim import lr_scheduler

import stowage


def of(kind, **options):
    def case(model):
        # A rate in a tensor belongs to one training.
        own = {key: value.clone() if isinstance(value, torch.Tensor) else value
               for key, value in options.items()}
        return simple(model, kind(model.parameters(), **own))

    return case


RATE = torch.tensor(1e-2)
LOOP_AND_FOREACH = {
    "adadelta": (optim.Adadelta, {}),
    "adadelta-decay": (optim.Adadelta, {"maximize": True, "weight_decay": 0.1}),
    "adagrad": (optim.Adagrad, {"lr_decay": 0.1, "initial_accumulator_value": 0.2}),
    "adagrad-maximize": (optim.Adagrad, {"maximize": True, "weight_decay": 0.1}),
    "adam": (optim.Adam, {}),
    "adam-amsgrad": (optim.Adam, {"amsgrad": True, "weight_decay": 0.1}),
    "adam-decoupled": (optim.Adam, {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    "adamw": (optim.AdamW, {}),
    "adamw-amsgrad": (optim.AdamW, {"amsgrad": True, "maximize": True}),
    "adamax": (optim.Adamax, {"weight_decay": 0.1}),
    "asgd": (optim.ASGD, {"weight_decay": 0.1}),
    "nadam": (optim.NAdam, {}),
    "nadam-decoupled": (optim.NAdam, {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    "rmsprop": (optim.RMSprop, {"centered": True, "momentum": 0.9, "weight_decay": 0.1}),
    "rprop": (optim.Rprop, {"maximize": True}),
    "sgd": (optim.SGD, {"lr": 0.01, "weight_decay": 0.1}),
    "sgd-momentum": (optim.SGD, {"lr": 0.01, "momentum": 0.9, "maximize": True}),
    "sgd-nesterov": (optim.SGD, {"lr": 0.01, "momentum": 0.9, "nesterov": True}),
}
OTHERS = {
    "radam-foreach": of(optim.RAdam, foreach=True),
    "asgd-t0-foreach": of(optim.ASGD, foreach=True, t0=2),
    "adagrad-fused": of(optim.Adagrad, fused=True),
    "adam-fused": of(optim.Adam, fused=True, amsgrad=True),
    "adamw-fused": of(optim.AdamW, fused=True),
    "sgd-fused": of(optim.SGD, fused=True, momentum=0.9, nesterov=True, lr=0.01),
    "adamw-rate": of(optim.AdamW, lr=RATE),
    "adamw-rate-fused": of(optim.AdamW, lr=RATE, fused=True),
    "sgd-rate": of(optim.SGD, lr=RATE, momentum=0.9),
    "adam-rates": of(optim.Adam, lr=RATE, foreach=False,
                     betas=(torch.tensor(0.9), torch.tensor(0.99))),
}


@pytest.mark.parametrize("foreach", [False, True], ids=["loop", "foreach"])
@pytest.mark.parametrize("name", LOOP_AND_FOREACH)
def test_has_plain_bits(name, foreach):
    kind, options = LOOP_AND_FOREACH[name]
    check_equal(of(kind, foreach=foreach, **options))


@pytest.mark.parametrize("name", OTHERS)
def test_other_forms_have_plain_bits(name):
    check_equal(OTHERS[name])


def test_muon_with_adamw_for_the_rest():
    def case(model):
        matrices = [one for one in model.parameters() if one.dim() == 2]
        rest = [one for one in model.parameters() if one.dim() != 2]
        return simple(model, [optim.Muon(matrices, lr=0.02), optim.AdamW(rest)])

    check_equal(case)


@pytest.mark.parametrize("case", [
    of(optim.AdamW), of(optim.SGD, lr=0.01, momentum=0.9, dampening=0.1),
    of(optim.SGD, lr=0.01, momentum=0.9, dampening=0.1, fused=True)])
def test_goes_on_from_plain_steps(case):
    check_equal(case, before=3)


def test_radam_loop_goes_on_when_it_is_rectified():
    check_equal(of(optim.RAdam, foreach=False), steps=9, before=5)


def refusal(case, kind=stowage.Unsupported):
    with pytest.raises(kind) as raised:
        check_equal(case)
    return str(raised.value)


@pytest.mark.parametrize(("case", "text"), [
    (of(optim.Adafactor), "use another optimizer"),
    (of(optim.RAdam, foreach=False), r"use RAdam(foreach=True)"),
    (of(optim.SGD, lr=0.01, momentum=0.9, dampening=0.1), "run one step before capturing"),
])
def test_refuses_with_a_way_out(case, text):
    assert text in refusal(case)


def with_scheduler(make, inside, kind=optim.AdamW, **options):
    def case(model):
        optimizer = kind(model.parameters(), **options)
        scheduler = make(optimizer)

        def step(x, y):
            loss = loss_of(model, x, y)
            loss.backward()
            optimizer.step()
            if inside:
                scheduler.step()
            optimizer.zero_grad()
            return loss

        after = None if inside else lambda position, loss: scheduler.step()
        return Training([optimizer], step, after, {"scheduler": scheduler})

    return case


SCHEDULERS = {
    "lambda": lambda one: lr_scheduler.LambdaLR(one, lambda step: 1 / (1 + step)),
    "cosine": lambda one: lr_scheduler.CosineAnnealingLR(one, T_max=4),
    "onecycle": lambda one: lr_scheduler.OneCycleLR(one, max_lr=0.1, total_steps=8),
    "sequential": lambda one: lr_scheduler.SequentialLR(
        one, [lr_scheduler.LinearLR(one, 0.1, 1, total_iters=3),
              lr_scheduler.ExponentialLR(one, 0.9)], milestones=[3]),
    "multistep": lambda one: lr_scheduler.MultiStepLR(one, [2, 4]),
    "restarts": lambda one: lr_scheduler.CosineAnnealingWarmRestarts(one, 3),
}


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers(name, inside):
    check_equal(with_scheduler(SCHEDULERS[name], inside))


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
def test_onecycle_moves_momentum(inside):
    check_equal(with_scheduler(SCHEDULERS["onecycle"], inside, optim.SGD, lr=0.05, momentum=0.9))


@pytest.mark.parametrize("fused", [False, True], ids=["loop", "fused"])
def test_a_scheduler_fills_a_rate_in_a_tensor(fused):
    def case(model):
        make = with_scheduler(SCHEDULERS["cosine"], False, lr=RATE.clone(), fused=fused)
        return make(model)

    check_equal(case)


def test_plateau_outside():
    def case(model):
        optimizer = optim.AdamW(model.parameters(), lr=1e-2)
        scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        return simple(model, optimizer, after=lambda position, loss: scheduler.step(loss.item()),
                      kept={"scheduler": scheduler})

    check_equal(case)


def in_step(before=None, update=None, loss=loss_of, result=None, kept=None):
    """AdamW with code around it: before(model, optimizer), update(model, optimizer)."""
    def case(model):
        optimizer = optim.AdamW(model.parameters(), lr=1e-2)

        def step(x, y):
            value = loss(model, x, y)
            value.backward()
            if before is not None:
                before(model)
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
            if update is not None:
                update(model)
            return value if result is None else result(value)

        return Training([optimizer], step, kept=kept or {})

    return case


def add_noise(model):
    for one in model.parameters():
        one.grad.add_(torch.randn_like(one.grad), alpha=0.01)


@pytest.mark.parametrize("before", [
    None, add_noise, lambda model: torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1),
    lambda model: torch.nn.utils.clip_grad_value_(model.parameters(), 0.01),
], ids=["zeroed", "noise", "norm", "value"])
def test_gradients_are_changed_before_the_update(before):
    check_equal(in_step(before))


@pytest.mark.parametrize("result", [
    lambda loss: loss.item(), lambda loss: (loss, 3, None),
    lambda loss: {"loss": loss, "value": loss.item(), "inner": [loss.detach() * 2, "a"]},
    lambda loss: None], ids=["float", "tuple", "dict", "none"])
def test_what_a_step_returns(result):
    check_equal(in_step(result=result))


def test_accumulates_over_three_micro_batches():
    def case(model):
        optimizer = optim.AdamW(model.parameters())

        def step(x, y):
            total = 0
            for a, b in zip(x.chunk(3), y.chunk(3), strict=True):
                loss = loss_of(model, a, b) / 3
                loss.backward()
                total = total + loss.detach()
            optimizer.step()
            optimizer.zero_grad()
            return total

        return Training([optimizer], step)

    check_equal(case)


@pytest.mark.filterwarnings("ignore:the step writes")
def test_average_of_the_weights():
    def case(model):
        average = [one.detach().clone() for one in model.parameters()]

        def update(model):
            torch._foreach_lerp_(average, [one.detach() for one in model.parameters()], 0.1)

        return in_step(update=update, kept={"average": average})(model)

    check_equal(case)


def test_averaged_model_must_have_begun():
    def case(model):
        averaged = optim.swa_utils.AveragedModel(model)
        return in_step(update=lambda model: averaged.update_parameters(model))(model)

    assert "run one step before capturing" in refusal(case)


def scaled(enabled):
    def case(model):
        optimizer = optim.AdamW(model.parameters())
        scaler = torch.amp.GradScaler("cpu", enabled=enabled)

        def step(x, y):
            loss = loss_of(model, x, y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            return loss

        return Training([optimizer], step)

    return case


def test_scaler():
    check_equal(scaled(False))
    assert "train in bfloat16" in refusal(scaled(True))


def test_variables_of_the_step_count_its_steps_alone():
    def case(model):
        seen = {"steps": 0, "log": []}

        def note(loss):
            seen["steps"] += 1
            seen["log"].append(loss.item())
            return loss

        def step(x, y):
            seen["steps"] += 1
            return inner.step(x, y)

        inner = in_step(result=note)(model)
        return Training(inner.optimizers, step, kept={"seen": seen})

    check_equal(case)


def forked():
    with torch.random.fork_rng():
        pass


@pytest.mark.parametrize("call", [
    lambda: torch.manual_seed(3), lambda: torch.set_rng_state(torch.get_rng_state()),
    lambda: forked()], ids=["manual_seed", "set_rng_state", "fork_rng"])
def test_setting_the_generator_is_refused(call):
    assert "seed before the step" in refusal(in_step(before=lambda model: call()))


def test_random_numbers_of_python():
    case = in_step(loss=lambda model, x, y: loss_of(model, x, y) * random.random())
    check_equal(case)
    check_equal(case, changing_numbers=True)


def test_a_weight_that_changes_needs_changing_numbers():
    def case(model):
        weight = {"now": 1.0}

        def after(position, loss):
            weight["now"] = 0.5 if position >= 3 else 1.0

        training = in_step(loss=lambda m, x, y: loss_of(m, x, y) * weight["now"])(model)
        training.after = after
        return training

    check_equal(case, changing_numbers=True)
    assert "changing_numbers=True" in refusal(case, stowage.StepChanged)


def test_rates_set_by_hand_between_steps():
    def case(model):
        optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def after(position, loss):
            optimizer.param_groups[0]["lr"] = 0.1 / (position + 2)

        return simple(model, optimizer, after=after)

    check_equal(case)


def raising(error):
    """A step that raises when `left` says so."""
    def case(model):
        left = {"armed": False}
        inner = in_step()(model)

        def step(x, y):
            if left["armed"]:
                left["armed"] = False
                raise error
            return inner.step(x, y)

        training = Training(inner.optimizers, step)
        training.left = left
        return training

    return case


@pytest.mark.parametrize("error", [LookupError("mine"), KeyboardInterrupt()],
                         ids=["exception", "interrupt"])
def test_goes_on_after_an_exception_in_a_step(error):
    case = raising(error)
    model, training = begin(case)
    expected = training_of.left_by(
        model, training, training_of.take_steps(training.step, training, batches(6)))
    model, training = begin(case)
    train_step = planned(model, training)
    data = list(batches(6))
    returned = training_of.take_steps(train_step, training, data[:2])
    training.left["armed"] = True
    with pytest.raises(type(error)):
        train_step(*data[2])
    train_step.leave()
    training.left["armed"] = False  # the step that raised has left no trace, here either
    returned += training_of.take_steps(train_step, training, data[2:])
    train_step.leave()
    training_of.check_same(training_of.left_by(model, training, returned), expected)


def test_another_step_is_refused_in_its_step():
    counted = {"after": None}
    model, training = begin(in_step(loss=lambda m, x, y: (
        loss_of(m, x, y) + (x.sum() if counted["after"] else 0))))
    train_step = planned(model, training)
    data = list(batches(4))
    training_of.take_steps(train_step, training, data[:2])
    counted["after"] = True
    with pytest.raises(stowage.StepChanged, match="capture again"):
        train_step(*data[2])
    train_step.leave()
    counted["after"] = None
    found = training_of.take_steps(train_step, training, data[2:])
    model, training = begin(in_step())
    assert [one.item() for one in found] == [
        one.item() for one in training_of.take_steps(training.step, training, data)][2:]


def test_added_parameters_are_refused():
    model, training = begin(
        lambda model: simple(model, optim.SGD(model.first.parameters(), lr=0.1)))
    train_step = planned(model, training)
    train_step(*next(batches(1)))
    training.optimizers[0].add_param_group({"params": list(model.last.parameters())})
    with pytest.raises(stowage.StepChanged, match="add_param_group"):
        train_step(*next(batches(1)))
