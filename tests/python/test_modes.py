# SPDX-License-Identifier: Apache-2.0
"""Python's own ways into the dispatcher: what a mode or a subclass makes of an op is what is traced.

torch 2.11 asks them after the tracer, torch 2.15 before it.
"""

import pytest
import torch
from planned_training import Net, Training, check_equal, loss_of, simple
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

import stowage

aten = torch.ops.aten


class Halved(TorchDispatchMode):
    """Changes what relu gives."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.add(function)
        result = function(*args, **(kwargs or {}))
        return result * 0.5 if function is aten.relu.default else result


class Shifted(torch.Tensor):
    """Changes what products of it give."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        plain = tree_map(lambda one: one.inner if isinstance(one, cls) else one, args)
        result = function(*plain, **(kwargs or {}))
        return result + 0.25 if function is aten.addmm.default else result


def test_what_they_change_is_seen():
    """Else the tests below say nothing."""
    x = torch.ones(2, 3)
    with Halved():
        assert torch.relu(x).max() == 0.5
    weight = torch.ones(1, 3)
    assert torch.nn.functional.linear(Shifted(x), weight, torch.zeros(1)).max() == 3.25


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def test_a_mode_within_the_step_has_its_results():
    seen = []

    def case(model):
        optimizer, mode = sgd(model), Halved()

        def step(x, y):
            with mode:
                loss = loss_of(model, x, y)
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        seen.append(mode.seen)
        return Training([optimizer], step)

    check_equal(case, steps=3)
    assert all(aten.relu.default in functions for functions in seen) and len(seen) == 2


def test_a_mode_around_the_training_has_its_results():
    with Halved() as mode:
        check_equal(lambda model: simple(model, sgd(model)), steps=3)
    assert aten.relu.default in mode.seen


def test_a_subclass_within_the_step_has_its_results():
    def case(model):
        optimizer = sgd(model)

        def step(x, y):
            loss = loss_of(model, Shifted(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return Training([optimizer], step)

    check_equal(case, steps=3)


def test_a_parameter_of_a_subclass_is_refused_by_name():
    model = Net()
    inner = model.first.weight.detach()
    model.first.weight = torch.nn.Parameter(TwoTensor(inner.clone(), inner.clone()))
    with pytest.raises(stowage.Unsupported, match="'first.weight' of the model is a TwoTensor"):
        check_equal(lambda _: simple(model, sgd(model)), steps=1, net=lambda: model)
