# SPDX-License-Identifier: Apache-2.0
"""What users do around a step: keep its tensors, check its batch, fail in it, use it twice."""

import planned_training as tools  # noqa: F401 - sets torch up
import pytest
import torch

import stowage


class _Keeps:
    def __init__(self):
        self.kept = None

    def first_batch(self, x):
        if self.kept is None:
            self.kept = x
        return x - self.kept

    def first_mean(self, x):
        if self.kept is None:
            self.kept = x.mean(0)
        return x - self.kept

    def batch_before(self, x):
        before, self.kept = self.kept, x
        return x if before is None else x - before

    def not_read_again(self, x):
        self.kept = x.mean(0)
        return x - self.kept


def train(how, planned):
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    keeps = _Keeps()

    def step(x):
        loss = model(getattr(keeps, how)(x)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    if planned:
        step = stowage.step(model, optimizer, budget="100%peak", device="cpu")(step)
    generator = torch.Generator().manual_seed(1)
    return [step(torch.randn(4, 8, generator=generator)).item() for _ in range(5)]


@pytest.mark.parametrize("how", ["first_batch", "first_mean", "batch_before"])
def test_what_an_earlier_step_made_is_refused(how):
    with pytest.raises((stowage.Unsupported, stowage.StepChanged)):
        train(how, planned=True)


def test_what_no_later_step_reads_is_no_matter():
    assert train("not_read_again", planned=True) == train("not_read_again", planned=False)


def test_a_batch_that_is_a_part_of_the_model_is_refused():
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @stowage.step(model, optimizer, budget="100%peak", device="cpu")
    def step(x):
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    with pytest.raises(stowage.InvalidArgument, match="shares memory with a parameter"):
        step(model.weight.detach())


def test_an_op_that_fails_loses_the_state_and_a_checkpoint_goes_on(tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first = model.weight.detach().clone()

    @stowage.step(model, optimizer, budget="100%peak", device="cpu")
    def step(x, labels):
        loss = torch.nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    x, good, bad = torch.randn(2, 8), torch.tensor([0, 1]), torch.tensor([0, 9])
    step(x, good)
    step.save(tmp_path / "saved")
    expected = step(x, good).item()
    with pytest.raises(stowage.TorchError, match="out of bounds"):
        step(x, bad)
    with pytest.raises(stowage.InvalidArgument, match=r"load\(folder\).*discard\(\)"):
        step.leave()
    assert step.load(tmp_path / "saved", x, good) == 1
    assert step(x, good).item() == expected
    with pytest.raises(stowage.TorchError, match="out of bounds"):
        step(x, bad)
    step.discard()
    assert torch.equal(model.weight, first)


def test_a_check_of_the_batch_comes_before_the_step():
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @stowage.step(model, optimizer, budget="100%peak", device="cpu")
    def step(x, labels):
        assert labels.max() < 4, "a bad label"
        loss = torch.nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    x = torch.randn(2, 8)
    step(x, torch.tensor([0, 1]))
    before = step.state_dict()["model"]["weight"]
    with pytest.raises(AssertionError, match="a bad label"):
        step(x, torch.tensor([0, 9]))
    assert torch.equal(step.state_dict()["model"]["weight"], before)
    step(x, torch.tensor([3, 1]))  # the training goes on
    assert step.facts() | {"steps": 2, "plans": 1} == step.facts()


def test_one_training_takes_one_step_at_a_time():
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inside = []

    @stowage.step(model, optimizer, budget="100%peak", device="cpu")
    def step(x):
        if inside:
            step(x)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    x = torch.randn(2, 8)
    step(x)
    inside.append(True)
    with pytest.raises(stowage.InvalidArgument, match="one step at a time"):
        step(x)


def test_a_model_goes_to_the_step_that_is_made_last():
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def plain(x):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    x = torch.randn(2, 8)
    too_small = stowage.step(model, optimizer, budget=256, device="cpu")(plain)
    with pytest.raises(stowage.Infeasible):
        too_small.plan(x)
    again = stowage.step(model, optimizer, budget="100%peak", device="cpu")(plain)
    again(x)
    third = stowage.step(model, optimizer, budget="100%peak", device="cpu")(plain)
    with pytest.warns(UserWarning, match="ends here"):
        third(x)


@pytest.mark.parametrize("host", ["50%peak", -5, "-1GiB", True, 1.5])
def test_a_host_limit_is_bytes(host):
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @stowage.step(model, optimizer, budget="100%peak", host=host, device="cpu")
    def step(x):
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    with pytest.raises(stowage.InvalidArgument, match="host: found"):
        step.plan(torch.randn(2, 8))
