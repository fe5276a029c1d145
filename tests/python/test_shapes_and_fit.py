# SPDX-License-Identifier: Apache-2.0
"""Batches of several shapes on one state, the largest batch that fits, and ops of others."""

import json
import os
import pathlib
import subprocess

import planned_training as tools  # noqa: F401 - sets torch up
import pytest
import torch

import stowage
from stowage._fit import FitSearch


def make_mlp(width=64):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(16, width), torch.nn.GELU(), torch.nn.Dropout(0.1),
        torch.nn.Linear(width, 16))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def make_convolution():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
        torch.nn.Conv2d(8, 4, 3, padding=1))
    return model, torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)


def make_attention():
    torch.manual_seed(0)
    model = torch.nn.TransformerEncoderLayer(32, 2, 64, batch_first=True)
    return model, torch.optim.AdamW(model.parameters())


def step_of(model, optimizer):
    def train_step(x):
        loss = model(x).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return train_step


def batches(*sizes):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(size, 16, generator=generator) for size in sizes]


def test_three_shapes_share_one_state():
    sizes = (8, 8, 5, 8, 3, 3, 8)
    model, optimizer = make_mlp()
    torch.manual_seed(5)
    train_step = step_of(model, optimizer)
    expected = [train_step(one).item() for one in batches(*sizes)]

    other, its_optimizer = make_mlp()
    planned = stowage.step(other, its_optimizer, budget="80%peak", device="cpu")(
        step_of(other, its_optimizer))
    torch.manual_seed(5)
    with pytest.warns(UserWarning, match=r"another shape \(.*\[5, 16\].*expected \[8, 16\]"):
        found = [planned(one).item() for one in batches(*sizes)]
    assert planned.facts()["steps"] == len(sizes)
    planned.leave()
    assert found == expected
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
        for key, value in optimizer.state[a].items():
            assert torch.equal(value, its_optimizer.state[b][key])


def test_another_shape_can_be_refused():
    model, optimizer = make_mlp()
    planned = stowage.step(model, optimizer, budget="80%peak", device="cpu", new_shapes="refuse")(
        step_of(model, optimizer))
    planned(batches(8)[0])
    with pytest.raises(stowage.InvalidArgument, match=r"\[5, 16\].*expected \[8, 16\]"):
        planned(batches(5)[0])
    planned(batches(8)[0])
    assert planned.facts()["steps"] == 2


def fits_when_run(make, example, size, budget):
    """Plans and takes a step with so large a batch."""
    model, optimizer = make()
    planned = stowage.step(model, optimizer, budget=budget, device="cpu")(
        step_of(model, optimizer))
    try:
        planned(example[:1].expand(size, *example.shape[1:]).contiguous())
    except stowage.Infeasible:
        return False
    planned.leave()
    return True


@pytest.mark.parametrize(
    ("make", "shape", "budget"),
    [(make_mlp, (2, 16), 50_000), (make_convolution, (2, 3, 8, 8), 60_000),
     (make_attention, (2, 12, 32), 160_000)])
def test_fit_finds_what_bisection_by_running_finds(make, shape, budget):
    example = torch.randn(*shape, generator=torch.Generator().manual_seed(2))
    model, optimizer = make()
    planned = stowage.step(model, optimizer, budget=budget, device="cpu")(
        step_of(model, optimizer))
    found = stowage.fit(planned, example)
    low, high = 0, 128
    while high - low > 1:
        middle = (low + high) // 2
        if fits_when_run(make, example, middle, budget):
            low = middle
        else:
            high = middle
    assert found.largest == low > 0
    assert found.next_budget > budget
    assert str(found.largest) in str(found)
    # The model is as before.
    assert torch.isfinite(next(model.parameters())).all()


def test_fit_of_sequences_changes_the_second_dimension():
    model, optimizer = make_attention()
    planned = stowage.step(model, optimizer, budget=400_000, device="cpu")(
        step_of(model, optimizer))
    found = stowage.fit(planned, torch.randn(2, 12, 32), vary="sequence")
    assert [row["tokens"] for row in found.rows] == [2 * row["size"] for row in found.rows]


def test_fit_refuses_a_share_of_the_peak_and_a_running_step():
    model, optimizer = make_mlp()
    planned = stowage.step(model, optimizer, budget="80%peak", device="cpu")(
        step_of(model, optimizer))
    with pytest.raises(stowage.InvalidArgument, match="share of the peak"):
        stowage.fit(planned, batches(4)[0])
    planned(batches(4)[0])
    with pytest.raises(stowage.InvalidArgument, match="running"):
        stowage.fit(planned, batches(4)[0], budget=100_000)


def program(*arguments, code=0):
    """What `stowage` answers with --json."""
    path = pathlib.Path(os.environ["STOWAGE_LIBRARIES"]) / "stowage"
    done = subprocess.run([path, *arguments, "-q", "--json"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == code, done
    return json.loads(done.stdout)


class PlansOfTheProgram:
    """Sizes of an example model, captured and planned by the program."""

    MODEL = ("lstm", "--set", "hidden=32", "--set", "sequence=4")

    def __init__(self, folder):
        self._step = str(folder / "step.stow")

    def plan(self, size, budget):
        program("capture", *self.MODEL, "--set", f"batch={size}", "-o", self._step, "-f")
        arguments = ("plan", self._step, "--budget", f"{budget}B")
        try:
            predicted = program(*arguments)["predicted"]
        except AssertionError:
            told = program(*arguments, code=1)["error"]
            error = stowage.Infeasible(told["message"])
            error.smallest_budget = told["infeasible"]["smallest_budget_bytes"]
            return error
        tokens = 4 * size
        return {"size": size, "tokens": tokens, "peak_bytes": predicted["peak_bytes"],
                "step_ns": predicted["step_ns"], "ns_per_token": predicted["step_ns"] / tokens}


def test_the_program_finds_the_same_by_the_same_plans(tmp_path):
    budget = 600 * 1024
    told = program("fit", *PlansOfTheProgram.MODEL, "--budget", f"{budget}B", "--most", "64")
    plans = PlansOfTheProgram(tmp_path)
    search = FitSearch(plans.plan, 64)
    assert search.find(budget) > 1
    larger = [search.row_with(budget * 5 // 4), search.row_with(budget * 3 // 2)]
    found = stowage.Fit("batch", budget, search, larger, "token")
    assert found.next_budget > budget
    assert {**found.to_dict(), "model": "lstm", "target": "cpu"} == told
    shown = subprocess.run(
        [os.path.join(os.environ["STOWAGE_LIBRARIES"], "stowage"), "fit",
         *PlansOfTheProgram.MODEL, "--budget", f"{budget}B", "--most", "64", "-q"],
        capture_output=True, text=True, check=True).stdout
    assert shown == f"{found}\n"


def test_a_size_that_the_model_cannot_take_is_named():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    planned = stowage.step(model, optimizer, budget="1MiB", device="cpu")(
        step_of(model, optimizer))
    with pytest.raises(ValueError) as raised:
        stowage.fit(planned, torch.randn(4, 4), most=8)
    assert "stowage.fit tried a batch of 1" in raised.value.__notes__[0]
    assert stowage.fit(planned, torch.randn(4, 4), most=8, multiple_of=2).largest == 8


class Formula:
    """Sizes whose need is a formula."""

    def __init__(self):
        self.plans = 0

    def plan(self, size, budget):
        self.plans += 1
        if 20 + 10 * size <= budget:
            return {"size": size}
        error = stowage.Infeasible("too large")
        error.smallest_budget = 20 + 10 * size
        return error


@pytest.mark.parametrize("multiple", [1, 3, 8])
def test_the_search_finds_the_largest_multiple_for_each_budget(multiple):
    search = FitSearch(Formula().plan, 50, multiple)
    for budget in (300, 45, 110, 20, 2000):
        best = min((budget - 20) // 10, 50) // multiple * multiple
        assert search.find(budget) == best
        assert search.row_with(budget).get("size") == best
        assert all(row["size"] % multiple == 0 for row in search.rows(budget))


def test_a_larger_budget_takes_few_plans_more():
    formula = Formula()
    search = FitSearch(formula.plan, 4096)
    assert search.find(75) == 5
    assert search.lacking(6, 75) == {"device": 80}
    before = formula.plans
    assert search.row_with(105)["size"] == 8
    assert formula.plans - before == 5  # 16, 12, 10 and 9, then 8 for its row


@torch.library.custom_op("stowage_tests::scaled_sine", mutates_args=())
def scaled_sine(x: torch.Tensor, scale: float) -> torch.Tensor:
    return torch.sin(x * scale)


@scaled_sine.register_fake
def _(x, scale):
    return torch.empty_like(x)


@torch.library.custom_op("stowage_tests::scaled_sine_backward", mutates_args=())
def scaled_sine_backward(grad: torch.Tensor, x: torch.Tensor, scale: float) -> torch.Tensor:
    return grad * torch.cos(x * scale) * scale


@scaled_sine_backward.register_fake
def _(grad, x, scale):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.scale = inputs[1]


def _backward(context, grad):
    return scaled_sine_backward(grad, context.saved_tensors[0], context.scale), None


scaled_sine.register_autograd(_backward, setup_context=_setup)


@torch.library.custom_op("stowage_tests::without_fake", mutates_args=())
def without_fake(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


def custom_step(model, optimizer, op):
    def train_step(x):
        loss = op(model(x)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return train_step


def test_an_op_of_others_with_a_fake_kernel_runs():
    results = []
    for planned in (False, True):
        model, optimizer = make_mlp()
        train_step = custom_step(model, optimizer, lambda x: scaled_sine(x, 0.5))
        if planned:
            train_step = stowage.step(model, optimizer, budget="70%peak", device="cpu")(train_step)
        torch.manual_seed(5)
        losses = [train_step(one).item() for one in batches(8, 8, 8)]
        if planned:
            train_step.leave()
        results.append((losses, [one.detach().clone() for one in model.parameters()]))
    assert results[0][0] == results[1][0]
    assert all(torch.equal(a, b) for a, b in zip(results[0][1], results[1][1], strict=True))


def test_an_op_without_a_fake_kernel_is_refused_by_name_and_line():
    model, optimizer = make_mlp()
    planned = stowage.step(model, optimizer, budget="70%peak", device="cpu")(
        custom_step(model, optimizer, without_fake))
    with pytest.raises(stowage.Unsupported, match=r"(?s)without_fake.*test_shapes_and_fit\.py:"):
        planned.plan(batches(8)[0])


def test_numpy_in_a_step_is_refused_with_its_line():
    model, optimizer = make_mlp()
    planned = stowage.step(model, optimizer, budget="70%peak", device="cpu")(
        custom_step(model, optimizer, lambda x: x * float(x.detach().numpy().sum())))
    with pytest.raises(stowage.Unsupported, match=r"(?s)without memory.*test_shapes_and_fit\.py:"):
        planned.plan(batches(8)[0])
