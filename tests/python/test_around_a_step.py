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


class _TwoNets:
    """A step of one that also computes gradients of the other."""

    def __init__(self):
        torch.manual_seed(0)
        self.first, self.other = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
        self.optimizer = torch.optim.SGD(self.first.parameters(), lr=0.1)
        self.after = lambda: None

    def step(self, x):
        loss = self.other(self.first(x)).square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.after()
        return loss

    def planned(self):
        return stowage.step(self.first, self.optimizer, budget="1MiB", device="cpu")(self.step)


def test_gradients_left_on_another_model_are_refused():
    nets = _TwoNets()
    x = torch.ones(2, 4)
    with pytest.raises(stowage.Unsupported, match=r"'Linear\.weight', a parameter of neither"):
        nets.planned()(x)
    assert nets.other.weight.grad is None and nets.other.bias.grad is None
    nets.other(nets.first(x)).sum().backward()  # plain tensors still
    assert nets.other.weight.grad.abs().sum() > 0
    nets = _TwoNets()
    nets.after = nets.other.zero_grad
    found = [nets.planned()(x).item()]
    nets = _TwoNets()
    assert found == [nets.step(x).item()]


def test_a_loop_that_a_value_ends_is_refused():
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @stowage.step(model, optimizer, budget="1MiB", device="cpu")
    def step(x):
        y = model(x)
        while (y.norm() > 1e-3).item():
            y = y / 2
        y.sum().backward()
        optimizer.step()
        return y.sum()

    with pytest.raises(stowage.Unsupported, match=r"(?s)a loop that ends by one.*in step"):
        step(torch.ones(2, 4))


@pytest.mark.parametrize("trains", [False, True])
def test_a_step_may_set_the_mode_of_its_model(trains):
    losses = []
    for planned in (False, True):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5)).train(trains)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x, model=model, optimizer=optimizer):
            model.train()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        if planned:
            step = stowage.step(model, optimizer, budget="100%peak", device="cpu")(step)
        torch.manual_seed(1)
        losses.append([step(torch.full((4, 8), 0.5)).item() for _ in range(4)])
    assert losses[0] == losses[1]


def test_the_order_of_zero_grad_that_cannot_be_captured_is_named():
    nets = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)])
    first, second = (torch.optim.SGD(one.parameters(), lr=0.1) for one in nets)

    @stowage.step(nets, [first, second], budget="1MiB", device="cpu")
    def step(x):
        for net, optimizer in zip(nets, (first, second), strict=True):
            optimizer.zero_grad()
            net(x).sum().backward()
            optimizer.step()
        return x.sum()

    with pytest.raises(stowage.Unsupported, match=r"grad\(.*zero_grad\(\) of every optimizer"):
        step(torch.ones(2, 4))


@pytest.mark.parametrize("device", ["CPU", torch.device("cpu")])
def test_devices_are_named_as_in_torch(device):
    nets = _TwoNets()
    nets.other.requires_grad_(False)
    step = stowage.step(nets.first, nets.optimizer, budget="1MiB", device=device)(nets.step)
    assert step(torch.ones(2, 4)).device.type == "cpu"
    with pytest.raises(stowage.InvalidArgument, match="'cuda:7', expected 'cuda'"):
        stowage.step(nets.first, nets.optimizer, budget="1MiB", device="cuda:7")(nets.step)
