# SPDX-License-Identifier: Apache-2.0
"""Several plans in turns on one state: other shapes of a batch, and evaluations."""

import planned_training as tools  # noqa: F401 - sets torch up
import pytest
import torch
import turns

import stowage


@pytest.mark.parametrize("seed", range(6))
def test_plans_take_turns(seed):
    differ, facts = turns.check(seed, "cpu")
    assert not differ
    assert facts["peak_bytes"] <= facts["arena_bytes"]


def make():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.Linear(32, 8))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def planned_step(model, optimizer, budget=100_000):
    @stowage.step(model, optimizer, budget=budget, device="cpu")
    def train_step(x):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return train_step


def test_evaluation_before_the_first_step_and_after_leave_runs_as_it_is():
    model, optimizer = make()
    train_step = planned_step(model, optimizer)
    evaluate = train_step.evaluation(lambda x: {"out": model(x)})
    x = torch.randn(4, 8)
    with torch.no_grad():
        before = model(x)
    assert torch.equal(evaluate(x)["out"], before)
    train_step(x)
    planned = evaluate(x)["out"]
    assert not torch.equal(planned, before)
    assert model.training
    train_step.leave()
    assert torch.equal(evaluate(x)["out"], planned)


def test_evaluation_has_a_plan_to_look_at():
    model, optimizer = make()
    train_step = planned_step(model, optimizer)
    evaluate = train_step.evaluation(lambda x: model(x))
    x = torch.randn(4, 8)
    with pytest.raises(stowage.InvalidArgument, match=r"train_step.plan\(batch\)"):
        evaluate.plan(x)
    train_step.plan(x)
    assert evaluate.plan(x).peak < train_step.plan(x).unplanned


def test_evaluation_refuses_what_trains():
    model, optimizer = make()
    train_step = planned_step(model, optimizer)
    x = torch.randn(4, 8)
    train_step(x)

    @train_step.evaluation
    def trains(x):
        with torch.enable_grad():
            model(x).sum().backward()
        return model(x)

    with pytest.raises(stowage.InvalidArgument, match="without backward"):
        trains(x)

    @train_step.evaluation
    def writes(x):
        model[0].bias.add_(1)
        return model(x)

    writes(x)  # state of the training, which an evaluation may write as plain code does
    train_step(x)
    assert train_step.facts()["steps"] == 2


def test_evaluation_returns_what_a_model_returns():
    torch.manual_seed(0)
    model = turns._gpt2()
    optimizer = torch.optim.AdamW(model.parameters())

    @stowage.step(model, optimizer, budget="80%peak", device="cpu")
    def train_step(ids):
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    ids = torch.zeros(2, 8, dtype=torch.long)
    train_step(ids)
    evaluate = train_step.evaluation(
        lambda ids, cached: model(input_ids=ids, labels=ids, use_cache=cached))
    with pytest.raises(stowage.Unsupported, match="DynamicCache"):
        evaluate(ids, True)
    found = evaluate(ids, False)
    train_step.leave()
    with torch.no_grad():
        expected = model.eval()(input_ids=ids, labels=ids)
    assert type(found) is type(expected)
    assert torch.equal(found.logits, expected.logits) and torch.equal(found.loss, expected.loss)


def test_a_step_that_fails_in_another_shape_ends_the_training_with_its_state():
    model, optimizer = make()
    fails = []

    @stowage.step(model, optimizer, budget=100_000, device="cpu")
    def train_step(x):
        loss = model(x).square().mean()
        loss.backward()
        if fails:
            raise ValueError("mine")
        optimizer.step()
        optimizer.zero_grad()
        return loss

    x, other = torch.randn(4, 8), torch.randn(3, 8)
    train_step(x)
    with pytest.warns(UserWarning, match="another shape"):
        train_step(other)
    expected = train_step.state_dict()["model"]
    fails.append(True)
    with pytest.raises(ValueError, match="mine"):
        train_step(other)
    with pytest.raises(stowage.InvalidArgument, match="ended when a step raised ValueError"):
        train_step(x)
    train_step.leave()
    for key, value in model.state_dict().items():
        assert torch.equal(value, expected[key])


def test_a_checkpoint_counts_steps_of_all_shapes(tmp_path):
    model, optimizer = make()
    train_step = planned_step(model, optimizer)
    x, other = torch.randn(4, 8), torch.randn(3, 8)
    train_step(x)
    with pytest.warns(UserWarning, match="another shape"):
        train_step(other)
    train_step(other)
    train_step.save(tmp_path / "saved")
    expected = train_step(x).item()
    model, optimizer = make()
    train_step = planned_step(model, optimizer)
    assert train_step.load(tmp_path / "saved", x) == 3
    assert train_step(x).item() == expected


class _Garbage:
    """In a cycle; computes when the collector finds it."""

    def __init__(self):
        self.me = self

    def __del__(self):
        torch.zeros(3).add_(1)


def test_what_the_collector_finalizes_is_no_part_of_a_step():
    model, optimizer = make()

    @stowage.step(model, optimizer, budget=100_000, device="cpu")
    def train_step(x):
        for _ in range(2000):
            cycle = []
            cycle.append(cycle)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    for _ in range(4):
        _Garbage()
        train_step(torch.ones(4, 8))
