# SPDX-License-Identifier: Apache-2.0
"""A planned training that gives its device memory back between two steps."""

import gc
import warnings

import planned_training as tools  # noqa: F401 - sets torch up
import pytest
import torch

import stowage


def make():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Dropout(0.1),
                                torch.nn.Linear(32, 8))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def step_of(model, optimizer):
    def train_step(x):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return train_step


def planned_step(model, optimizer, budget="60%peak"):
    return stowage.step(model, optimizer, budget=budget, device="cpu")(step_of(model, optimizer))


def begin_training():
    """The model and its planned step, about to draw what `plainly` draws."""
    model, optimizer = make()
    train_step = planned_step(model, optimizer)
    torch.manual_seed(2)
    return model, train_step


def batches(sizes):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(size, 8, generator=generator) for size in sizes]


def plainly(sizes):
    """Losses and parameters by plain PyTorch."""
    model, optimizer = make()
    train_step = step_of(model, optimizer)
    torch.manual_seed(2)
    losses = [float(train_step(x)) for x in batches(sizes)]
    return losses, list(model.parameters())


def check_same(losses, model, sizes):
    expected, parameters = plainly(sizes)
    assert losses == expected
    for found, one in zip(model.parameters(), parameters, strict=True):
        assert torch.equal(found, one)


def test_steps_go_on_with_the_same_bits():
    sizes = [4] * 5
    model, train_step = begin_training()
    losses = []
    for x in batches(sizes):
        losses.append(float(train_step(x)))
        out = train_step.release()
        back = train_step.restore()
        assert out["bytes"] == back["bytes"] > 0
        assert out["whole_ns"] >= out["copy_ns"] >= 0
    train_step.leave()
    check_same(losses, model, sizes)


def test_plans_that_take_turns_share_what_is_released():
    """Whoever has the turn, and whatever waits beside its plan."""
    sizes = [4, 3, 4, 6, 6, 3, 4]
    model, optimizer = make()
    train_step = planned_step(model, optimizer, budget=100_000)
    evaluate = train_step.evaluation(lambda x: model(x))
    torch.manual_seed(2)
    losses = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, x in enumerate(batches(sizes)):
            losses.append(float(train_step(x)))
            before = evaluate(x) if number % 2 else None
            train_step.release()
            with pytest.raises(stowage.InvalidArgument, match=r"restore\(\)"):
                evaluate(x)
            train_step.restore()
            if before is not None:
                assert torch.equal(evaluate(x), before)
    train_step.leave()
    check_same(losses, model, sizes)


def test_everything_else_waits_for_restore(tmp_path):
    sizes = [4] * 3
    data = batches(sizes)
    model, train_step = begin_training()
    losses = [float(train_step(x)) for x in data[:2]]
    train_step.release()

    def look():
        with train_step.live():
            pass

    for use in (lambda: train_step(data[2]), lambda: train_step(data[2][:3]),
                lambda: train_step.save(tmp_path / "checkpoint"), look, train_step.state_dict,
                model.state_dict, train_step.leave, train_step.release,
                lambda: train_step.load(tmp_path / "checkpoint")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises((stowage.InvalidArgument, stowage.FileError)):
                use()
    assert train_step.facts()["steps"] == 2
    train_step.restore()
    with pytest.raises(stowage.InvalidArgument, match=r"release\(\)"):
        train_step.restore()
    losses.append(float(train_step(data[2])))
    train_step.leave()
    check_same(losses, model, sizes)


def test_a_released_training_can_end():
    model, optimizer = make()
    before = [one.detach().clone() for one in model.parameters()]
    train_step = planned_step(model, optimizer)
    train_step(batches([4])[0])
    train_step.release()
    train_step.discard()
    for found, one in zip(model.parameters(), before, strict=True):
        assert torch.equal(found, one)


def test_the_values_survive_a_step_that_is_forgotten_while_released():
    sizes = [4] * 2
    model, train_step = begin_training()
    losses = [float(train_step(x)) for x in batches(sizes)]
    train_step.release()
    del train_step
    gc.collect()
    check_same(losses, model, sizes)


def test_outside_of_planned_training_there_is_nothing_to_release():
    model, optimizer = make()
    train_step = planned_step(model, optimizer)
    with pytest.raises(stowage.InvalidArgument, match="after a step"):
        train_step.release()
    with pytest.raises(stowage.InvalidArgument, match="after a step"):
        train_step.restore()
