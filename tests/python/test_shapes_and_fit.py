# SPDX-License-Identifier: Apache-2.0
"""Batches of several shapes on one state, the largest batch that fits, and ops of others."""


import planned_training as tools  # noqa: F401 - sets torch up
import pytest
import torch

import stowage


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
