# SPDX-License-Identifier: Apache-2.0
"""The state of a planned training: looked at, written, loaded, given back. Bits throughout."""

import copy
import io

import pytest
import stowage
import torch
from torch import nn


class Net(nn.Module):
    """Dropout, batch norm statistics, tied weights, a buffer that is not persistent."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(8, 16, bias=False)
        self.out.weight = self.embed.weight
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 8), persistent=False)

    def forward(self, x):
        return self.out(self.drop(self.norm(self.embed(x).mean(1)) * self.scale))


BATCHES = [torch.randint(0, 16, (4, 6), generator=torch.Generator().manual_seed(i))
           for i in range(8)]


class Training:
    """Model, optimizer, schedulers; a step that can be planned or not."""

    def __init__(self, inside=False, outside=False, optimizer=torch.optim.AdamW):
        torch.manual_seed(0)
        self.model = Net()
        self.optimizer = optimizer(self.model.parameters(), lr=0.1)
        decay = {"lr_lambda": lambda k: 1 / (1 + k)}
        self.inside = torch.optim.lr_scheduler.LambdaLR(self.optimizer, **decay) if inside else None
        self.outside = (
            torch.optim.lr_scheduler.LambdaLR(self.optimizer, **decay) if outside else None)
        torch.manual_seed(7)

    def step(self, x):
        loss = nn.functional.cross_entropy(self.model(x), x[:, 0])
        loss.backward()
        self.optimizer.step()
        if self.inside:
            self.inside.step()
        self.optimizer.zero_grad()
        return loss

    def planned(self):
        return stowage.step(self.model, self.optimizer, budget="90%peak", device="cpu")(self.step)

    def run(self, step, batches):
        losses = []
        for x in batches:
            losses.append(step(x).item())
            if self.outside:
                self.outside.step()
        return losses


def plain(count, **options):
    training = Training(**options)
    return training, training.run(training.step, BATCHES[:count])


def assert_same(a, b):
    """Two trainings, both with memory."""
    assert_same_state(a.model.state_dict(), b.model.state_dict())
    assert_same_state(a.optimizer.state_dict(), b.optimizer.state_dict())


def assert_same_state(a, b):
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and torch.equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same_state(a[key], b[key])
    elif isinstance(a, list):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_same_state(one, other)
    else:
        assert a == b


def test_live_changes_nothing_of_the_training():
    expected, losses = plain(6)
    got = Training()
    step = got.planned()
    found = got.run(step, BATCHES[:3])
    after_three, _ = plain(3)
    with step.live() as model:
        assert_same_state(model.state_dict(), after_three.model.state_dict())
        assert_same_state(got.optimizer.state_dict(), after_three.optimizer.state_dict())
        twin = copy.deepcopy(model)
        torch.save(twin, io.BytesIO())
        model.eval()
        after_three.model.eval()
        assert torch.equal(model(BATCHES[0]), after_three.model(BATCHES[0]))
        model.train()
        model(BATCHES[0]).sum().backward()
        model.embed.weight.data.zero_()
        model.embed.weight.requires_grad_(False)
        model.norm.eval()
        torch.rand(3)
    assert model.norm.training and model.embed.weight.requires_grad
    found += got.run(step, BATCHES[3:6])
    step.leave()
    assert found == losses
    assert_same(got, expected)


def test_live_ends_when_the_block_raises():
    expected, losses = plain(3)
    got = Training()
    step = got.planned()
    found = got.run(step, BATCHES[:2])
    with pytest.raises(KeyError), step.live():
        raise KeyError("x")
    with step.live(), pytest.raises(stowage.InvalidArgument, match="inside of live"):
        step(BATCHES[2])
    with step.live(), pytest.raises(stowage.InvalidArgument, match="inside of live"):
        step.leave()
    with step.live(), pytest.raises(stowage.InvalidArgument, match="outside of the planned step"):
        got.optimizer.step()
    found += got.run(step, BATCHES[2:3])
    step.leave()
    assert found == losses
    assert_same(got, expected)


def test_state_dict_between_steps():
    got = Training(outside=True)
    step = got.planned()
    got.run(step, BATCHES[:3])
    expected, _ = plain(3, outside=True)
    assert_same_state(step.state_dict(), {"model": expected.model.state_dict(),
                                          "optimizer": expected.optimizer.state_dict()})
    kept = step.state_dict()
    before = copy.deepcopy(kept)
    assert_same_state(got.model.norm.state_dict(), expected.model.norm.state_dict())
    written = io.BytesIO()
    torch.save(got.model.state_dict(), written)
    written.seek(0)
    assert_same_state(torch.load(written), expected.model.state_dict())
    got.run(step, BATCHES[3:5])
    assert_same_state(kept, before)  # a copy, which goes on with nobody


def test_state_before_the_first_step_and_after_a_plan():
    got = Training()
    fresh = copy.deepcopy(got.model.state_dict())
    step = got.planned()
    step.plan(BATCHES[0])
    assert_same_state(step.state_dict()["model"], fresh)
    step.plan(BATCHES[0])
    assert got.optimizer.state_dict()["state"] == {}
    step.plan(BATCHES[0])
    got.model.eval()(BATCHES[0])  # the model has its memory
    got.model.train()
    expected, losses = plain(3)
    torch.manual_seed(7)
    assert got.run(step, BATCHES[:3]) == losses
    step.leave()
    assert_same(got, expected)


def test_load_state_dict_before_and_during():
    source, _ = plain(3)
    rest = source.run(source.step, BATCHES[3:6])
    source, _ = plain(3)
    state = copy.deepcopy({"model": source.model.state_dict(),
                           "optimizer": source.optimizer.state_dict()})
    generator = torch.get_rng_state()
    for steps_before in (0, 2):
        got = Training()
        step = got.planned()
        got.run(step, BATCHES[:steps_before])
        step.load_state_dict(copy.deepcopy(state))
        torch.set_rng_state(generator)
        assert got.run(step, BATCHES[3:6]) == rest
    plan = step._runner.plan
    got.model.load_state_dict(state["model"])  # by torch's own calls
    got.optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))
    torch.set_rng_state(generator)
    assert got.run(step, BATCHES[3:6]) == rest
    assert step._runner.plan is plan  # it went on
    part = copy.deepcopy(got.model.norm.state_dict())
    part["weight"] += 1
    got.model.norm.load_state_dict(part)
    assert_same_state(got.model.norm.state_dict(), part)
    with pytest.raises(RuntimeError, match="Missing key"):
        got.model.load_state_dict({})
    assert_same_state(got.model.norm.state_dict(), part)
    assert step._runner.plan is plan
    got.optimizer.load_state_dict(Training().optimizer.state_dict())  # none yet: another form
    assert step._runner is None
    found = copy.deepcopy(got)
    torch.set_rng_state(generator)
    wanted = found.run(found.step, BATCHES[:2])
    torch.set_rng_state(generator)
    assert got.run(step, BATCHES[:2]) == wanted


@pytest.mark.parametrize("budget", ["40%peak", "100%peak"])
def test_load_state_dict_where_state_is_offloaded(budget):
    """The state of one training goes into another one that is under way, several times."""

    class Deep(Training):
        def __init__(self):
            torch.manual_seed(0)
            layers = [nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(6)]
            self.model = nn.Sequential(nn.Embedding(16, 64), *layers, nn.Linear(64, 16))
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
            self.inside = self.outside = None

        def step(self, x):
            loss = nn.functional.cross_entropy(self.model(x).mean(1), x[:, 0])
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            return loss

    source, got = Deep(), Deep()
    step = stowage.step(got.model, got.optimizer, budget=budget, device="cpu")(got.step)
    got.run(step, BATCHES[4:7])
    for count in range(1, 4):
        source.run(source.step, BATCHES[:count])
        state = {"model": source.model.state_dict(), "optimizer": source.optimizer.state_dict()}
        step.load_state_dict(copy.deepcopy(state))
        assert_same_state(step.state_dict(), state)
        twin = copy.deepcopy(source)
        assert got.run(step, BATCHES[3:6]) == twin.run(twin.step, BATCHES[3:6])
    assert step.facts()["steps"] == 12


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("outside", [False, True])
def test_resume_is_bit_equal(tmp_path, inside, outside):
    options = {"inside": inside, "outside": outside}
    expected, losses = plain(6, **options)
    first = Training(**options)
    step = first.planned()
    found = first.run(step, BATCHES[:3])
    schedulers = [first.outside] if outside else None
    step.save(tmp_path / "checkpoint", schedulers=schedulers)
    first.run(step, BATCHES[3:4])  # goes on, which the checkpoint does not see
    second = Training(**options)
    torch.manual_seed(99)
    step = second.planned()
    schedulers = [second.outside] if outside else None
    assert step.load(tmp_path / "checkpoint", schedulers=schedulers) == 3
    with pytest.raises(stowage.InvalidArgument, match="before the checkpoint"):
        second.model.state_dict()
    found += second.run(step, BATCHES[3:6])
    assert step.facts()["steps"] == 6
    step.leave()
    assert found == losses
    assert_same(second, expected)


def momentum(parameters, lr):
    return torch.optim.SGD(parameters, lr=lr, momentum=0.9)


def fused(parameters, lr):
    return torch.optim.AdamW(parameters, lr=lr, fused=True, amsgrad=True)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.NAdam, torch.optim.Adamax,
                                       momentum, fused])
def test_resume_of_other_optimizers(tmp_path, optimizer):
    expected, losses = plain(5, optimizer=optimizer)
    first = Training(optimizer=optimizer)
    step = first.planned()
    try:
        found = first.run(step, BATCHES[:3])
    except stowage.Unsupported as refusal:
        pytest.skip(str(refusal))
    step.save(tmp_path / "checkpoint")
    second = Training(optimizer=optimizer)
    step = second.planned()
    step.load(tmp_path / "checkpoint", BATCHES[0])
    assert_same_state(second.optimizer.state_dict(), first.optimizer.state_dict())
    found += second.run(step, BATCHES[3:5])
    step.leave()
    assert found == losses
    assert_same(second, expected)


@pytest.mark.parametrize("make", [
    lambda o: torch.optim.lr_scheduler.OneCycleLR(o, max_lr=0.2, total_steps=20),
    lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [1, 3, 4]),
    lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o, patience=0),
    lambda o: torch.optim.lr_scheduler.SequentialLR(
        o, [torch.optim.lr_scheduler.ConstantLR(o), torch.optim.lr_scheduler.ExponentialLR(o, 0.9)],
        [2]),
], ids=["OneCycle", "MultiStep", "Plateau", "Sequential"])
def test_resume_with_schedulers_of_torch(tmp_path, make):
    def run(training, scheduler, step, batches):
        found = []
        for x in batches:
            found.append(step(x).item())
            plateau = isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
            scheduler.step(*([found[-1]] if plateau else []))
        return found, scheduler.get_last_lr()

    expected = Training()
    wanted = run(expected, make(expected.optimizer), expected.step, BATCHES[:6])
    first = Training()
    scheduler, step = make(first.optimizer), first.planned()
    found = run(first, scheduler, step, BATCHES[:3])[0]
    step.save(tmp_path / "checkpoint", schedulers=[scheduler])
    second = Training()
    scheduler, step = make(second.optimizer), second.planned()
    step.load(tmp_path / "checkpoint", schedulers=[scheduler])
    rest, rate = run(second, scheduler, step, BATCHES[3:6])
    assert (found + rest, rate) == wanted


def test_load_in_the_middle_of_a_training(tmp_path):
    _, losses = plain(6)
    got = Training()
    step = got.planned()
    got.run(step, BATCHES[:3])
    step.save(tmp_path / "checkpoint")
    got.run(step, BATCHES[3:5])
    step.load(tmp_path / "checkpoint", BATCHES[0])
    expected, _ = plain(3)
    assert_same_state(step.state_dict()["model"], expected.model.state_dict())
    assert got.run(step, BATCHES[3:6]) == losses[3:]


def test_options_changed_after_load_count(tmp_path):
    expected, _ = plain(3)
    for group in expected.optimizer.param_groups:
        group["lr"] = 0.5
    losses = expected.run(expected.step, BATCHES[3:6])
    first = Training()
    step = first.planned()
    first.run(step, BATCHES[:3])
    step.save(tmp_path / "checkpoint")
    second = Training()
    step = second.planned()
    step.load(tmp_path / "checkpoint")
    second.optimizer.param_groups[0]["lr"] = 0.5
    assert second.run(step, BATCHES[3:6]) == losses


def test_refusals_of_checkpoints(tmp_path):
    got = Training(outside=True)
    step = got.planned()
    with pytest.raises(stowage.InvalidArgument, match="take a step before"):
        step.save(tmp_path / "checkpoint")
    got.run(step, BATCHES[:1])
    with pytest.raises(stowage.InvalidArgument, match="schedulers="):
        step.save(tmp_path / "checkpoint")
    step.save(tmp_path / "checkpoint", schedulers=[got.outside])
    with pytest.raises(stowage.InvalidArgument, match="has 1 schedulers"):
        Training(outside=True).planned().load(tmp_path / "checkpoint")
    with pytest.raises(stowage.Error, match="none"):
        Training().planned().load(tmp_path / "none")
    other = Training(outside=True)
    other.optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))]})
    with pytest.raises(stowage.InvalidArgument, match="groups of"):
        other.planned().load(tmp_path / "checkpoint", schedulers=[other.outside])


def test_leave_goes_on_with_the_same_bits():
    expected, losses = plain(8)
    got = Training()
    step = got.planned()
    found = got.run(step, BATCHES[:2])
    step.leave()
    assert all(one.grad is None for one in got.model.parameters())
    found += got.run(got.step, BATCHES[2:4])  # plain
    found += got.run(step, BATCHES[4:6])  # captured again
    step.leave()
    step.leave()
    found += got.run(got.step, BATCHES[6:8])
    assert found == losses
    assert_same(got, expected)


def test_objects_of_a_planned_training_refuse_clearly():
    expected, losses = plain(3)
    got = Training()
    step = got.planned()
    got.run(step, BATCHES[:1])
    for use, words in [
        (lambda: got.model(BATCHES[0]), "train_step.live"),
        (lambda: got.optimizer.step(), "train_step.leave"),
        (lambda: got.model.half(), "train_step.leave"),
        (lambda: got.model.to("meta"), "train_step.leave"),
        (lambda: copy.deepcopy(got.model), "without memory|live"),
        (lambda: torch.save(got.model, io.BytesIO()), "without memory|live"),
        (lambda: str(got.model.embed.weight), "without memory"),
        (lambda: got.model.embed.weight.tolist(), "without memory"),
        (lambda: got.model.embed(BATCHES[0]), "without memory"),
        (lambda: got.model.embed.weight.data.zero_(), "without memory"),
    ]:
        with pytest.raises((stowage.Error, RuntimeError), match=words):
            use()
    got.model.to("cpu")  # changes nothing
    assert got.run(step, BATCHES[1:3]) == losses[1:]
    step.leave()
    assert_same(got, expected)
    assert "state_dict" not in vars(got.model) and not got.model._forward_pre_hooks


def test_dropping_the_step_keeps_what_was_trained():
    expected, losses = plain(3)
    got = Training()
    step = got.planned()
    assert got.run(step, BATCHES[:3]) == losses
    del step
    assert_same(got, expected)


def test_tensors_from_outside_that_the_step_writes():
    def averaged(training):
        kept = [one.detach().clone() for one in training.model.parameters()]

        def step(x):
            loss = training.step(x)
            for one, parameter in zip(kept, training.model.parameters(), strict=True):
                one.lerp_(parameter.detach(), 0.5)
            return loss

        return kept, step

    plain_training = Training()
    expected, step = averaged(plain_training)
    plain_training.run(step, BATCHES[:3])
    got = Training()
    kept, step = averaged(got)
    step = stowage.step(got.model, got.optimizer, budget="90%peak", device="cpu")(step)
    with pytest.warns(UserWarning, match="writes 3 tensors"):
        got.run(step, BATCHES[:3])
    with step.live():
        assert_same_state(kept, expected)
    step.leave()
    assert_same_state(kept, expected)


def test_a_list_of_losses_is_no_sequence_of_sequences_afterwards():
    got = Training()
    step = stowage.step(got.model, got.optimizer, budget="100%peak", device="cpu")(got.step)
    losses = [torch.tensor(one) for one in got.run(step, BATCHES[:2])]
    step.leave()
    assert torch.tensor(losses).shape == (2,)
