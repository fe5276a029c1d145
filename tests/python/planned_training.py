# SPDX-License-Identifier: Apache-2.0
"""Trains twice, by plain PyTorch and by a plan, and compares all that is left, bit for bit.

A case is a function that takes a model and returns a Training. It is called once for each of the
two, with equal models.
"""

import dataclasses
import random

import torch

import stowage

torch.set_num_threads(1)


class Net(torch.nn.Module):
    """Batch norm (buffers that change), dropout (random numbers), a part that is not trained."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 16)
        self.norm = torch.nn.BatchNorm1d(16)
        self.drop = torch.nn.Dropout(0.3)
        self.second = torch.nn.Linear(16, 16, bias=False)
        self.last = torch.nn.Linear(16, 3)

    def forward(self, x):
        x = self.drop(torch.relu(self.norm(self.first(x))))
        return self.last(torch.tanh(self.second(x)))


@dataclasses.dataclass
class Training:
    """What a case makes of a model."""

    optimizers: list
    step: object  # (x, y) -> what the step returns
    after: object = None  # (position, loss), between steps
    kept: dict = dataclasses.field(default_factory=dict)  # name -> what is compared at the end


def loss_of(model, x, y):
    return torch.nn.functional.mse_loss(model(x), y)


def simple(model, optimizers, **options):
    """Loss, backward, each optimizer's step, zero_grad."""
    listed = list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]

    def step(x, y):
        loss = loss_of(model, x, y)
        loss.backward()
        for one in listed:
            one.step()
        for one in listed:
            one.zero_grad()
        return loss

    return Training(listed, step, **options)


def batches(count, rows=8):
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        yield (torch.randn(rows, 6, generator=generator),
               torch.randn(rows, 3, generator=generator))


def begin(case, net=Net):
    torch.manual_seed(0)
    random.seed(0)
    model = net()
    training = case(model)
    torch.manual_seed(5)
    return model, training


def value_of(returned):
    """A copy of what a step returned, with numbers for its tensors."""
    return torch.utils._pytree.tree_map(
        lambda one: one.detach().clone() if isinstance(one, torch.Tensor) else one, returned)


def take_steps(step, training, data):
    returned = []
    for position, batch in enumerate(data):
        returned.append(value_of(step(*batch)))
        if training.after is not None:
            training.after(position, returned[-1])
    return returned


def planned(model, training, budget="60%peak", **options):
    """The step within 60 % of what it needs unplanned, or within the smallest budget that works."""
    train_step = stowage.step(model, training.optimizers, budget=budget, device="cpu", **options)(
        training.step)
    try:
        train_step.plan(*next(batches(1)))
    except stowage.Infeasible as error:
        train_step.leave()
        return planned(model, training, error.smallest_budget, **options)
    return train_step


def left_by(model, training, returned):
    """All that a training leaves, as nested values. Not gradients: leave() drops them."""
    return {
        "returned": returned,
        "model": dict(model.state_dict()),
        "optimizers": [one.state_dict() for one in training.optimizers],
        "kept": {name: one.state_dict() if hasattr(one, "state_dict") else one
                 for name, one in training.kept.items()},
        "generator": torch.get_rng_state(),
    }


def check_equal(case, steps=6, before=0, net=Net, **options):
    """Both give the same bits. The first `before` steps are plain ones in both.

    Returns the facts of the planned training.
    """
    model, training = begin(case, net)
    expected = left_by(model, training, take_steps(training.step, training, batches(steps)))
    model, training = begin(case, net)
    data = list(batches(steps))
    first = take_steps(training.step, training, data[:before])
    train_step = planned(model, training, **options)
    rest = take_steps(train_step, training, data[before:])
    facts = train_step.facts()
    train_step.leave()
    check_same(left_by(model, training, first + rest), expected)
    return facts


def check_same(found, expected):
    differences = list(differences_of(found, expected, ""))
    assert not differences, "\n".join(differences[:20])


def differences_of(found, expected, path):
    if isinstance(expected, torch.Tensor) or isinstance(found, torch.Tensor):
        if not same_tensor(found, expected):
            yield f"{path}: found {brief(found)}, expected {brief(expected)}"
    elif type(found) is not type(expected):
        yield f"{path}: found {found!r}, expected {expected!r}"
    elif isinstance(expected, dict):
        if list(found) != list(expected):
            yield f"{path}: found {list(found)}, expected {list(expected)}"
        for key in found.keys() & expected.keys():
            yield from differences_of(found[key], expected[key], f"{path}.{key}")
    elif isinstance(expected, (list, tuple)):
        if len(found) != len(expected):
            yield f"{path}: found {len(found)}, expected {len(expected)} entries"
        for i, (a, b) in enumerate(zip(found, expected, strict=False)):
            yield from differences_of(a, b, f"{path}[{i}]")
    elif found != expected and not (found != found and expected != expected):
        yield f"{path}: found {found!r}, expected {expected!r}"


def same_tensor(a, b):
    alike = (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and a.dtype == b.dtype
             and a.shape == b.shape and a.device == b.device and a.requires_grad == b.requires_grad)
    return alike and bits_of(a) == bits_of(b)


def bits_of(tensor):
    return tensor.detach().contiguous().flatten().view(torch.uint8).tolist()


def brief(value):
    if not isinstance(value, torch.Tensor):
        return repr(value)
    some = value.detach().flatten()[:4]
    shown = some.tolist() if some.device.type != "meta" else "?"
    return f"{value.dtype}{list(value.shape)} {shown}"
