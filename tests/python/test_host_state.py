# SPDX-License-Identifier: Apache-2.0
"""What a step's Python code keeps from step to step: as plain Python keeps it, or refused.

Each case computes with what it keeps, so that a number that a capture has moved changes the bits.
"""

import collections
import dataclasses
import itertools
import random
import types

import numpy
import planned_training as training_of
import pytest
import torch
from planned_training import Training, batches, begin, check_equal, loss_of, planned

import stowage


@dataclasses.dataclass
class Counted:
    count: int = 0


@dataclasses.dataclass(slots=True)
class CountedInSlots:
    count: int = 0


class Empty:
    pass


class Kept:
    """Something to compare at the end."""

    def __init__(self, value):
        self._value = value

    def state_dict(self):
        return self._value()


def weighted(make):
    """make() -> (weight of the loss in each step, what is left at the end)."""
    def case(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        weight, left = make()

        def step(x, y):
            loss = loss_of(model, x, y) * weight()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return Training([optimizer], step, kept={"left": Kept(left)})

    return case


def counting(one):
    def weight():
        one.count += 1
        return 1 / one.count

    return weight, lambda: one.count


def created_attribute():
    one = Empty()

    def weight():
        one.count = getattr(one, "count", 0) + 1
        return 1 / one.count

    return weight, lambda: one.count


def of_class():
    class Counter:
        count = 0

    return counting(Counter)


def attribute_of_function():
    def weight():
        weight.count = getattr(weight, "count", 0) + 1
        return 1 / weight.count

    return weight, lambda: weight.count


def default_argument():
    def weight(seen=[]):  # noqa: B006 - it is what is tested
        seen.append(1)
        return 1 / len(seen)

    return weight, lambda: weight.__defaults__[0]


def nested():
    one = Empty()
    one.inner = ({"seen": [0]}, Counted())

    def weight():
        one.inner[0]["seen"].append(1)
        one.inner[1].count += 1
        return 1 / (len(one.inner[0]["seen"]) + one.inner[1].count)

    return weight, lambda: (one.inner[0], one.inner[1].count)


def counting_globals():
    _forget_globals()

    def weight():
        global made_by_step
        made_by_step = globals().get("made_by_step", 0) + 1
        return 1 / (made_by_step + _count_in_helper())

    return weight, lambda: (made_by_step, helper_count)


helper_count = 0


def _forget_globals():
    global helper_count
    globals().pop("made_by_step", None)
    helper_count = 0


def _count_in_helper():
    global helper_count
    helper_count += 1
    return helper_count


def unbound_cell():
    def weight():
        nonlocal count
        try:
            count += 1
        except NameError:
            count = 1
        return 1 / count

    if weight is None:
        count = 0
    return weight, lambda: count


def appending(kept):
    def weight():
        kept.append(1)
        return len(kept) ** -0.5

    return weight, lambda: list(kept)


def of_dictionary(kept):
    def weight():
        kept["seen"] += 1
        return 1 / kept["seen"]

    return weight, lambda: dict(kept)


def of_set():
    kept = set()

    def weight():
        kept.add(len(kept))
        return 1 / len(kept)

    return weight, lambda: sorted(kept)


def of_array():
    kept = numpy.zeros(3)

    def weight():
        kept[1] += 1
        return float(1 / kept[1])

    return weight, kept.tolist


def of_method():
    class Counter:
        def __init__(self):
            self.count = 0

        def weight(self):
            self.count += 1
            return 1 / self.count

    one = Counter()
    return one.weight, lambda: one.count


def drawing(draw):
    return draw, draw


def iterating(iterator):
    return lambda: 1 / next(iterator), lambda: next(iterator)


CASES = {
    "attribute": lambda: counting(types.SimpleNamespace(count=0)),
    "created": created_attribute, "class": of_class, "function": attribute_of_function,
    "default": default_argument, "nested": nested, "globals": counting_globals,
    "unbound": unbound_cell, "dataclass": lambda: counting(Counted()),
    "slots": lambda: counting(CountedInSlots()), "method": of_method,
    "list": lambda: appending([]), "log": lambda: appending([1] * 6000),
    "deque": lambda: appending(collections.deque(maxlen=4)),
    "defaultdict": lambda: of_dictionary(collections.defaultdict(int)),
    "counter": lambda: of_dictionary(collections.Counter()), "set": of_set, "array": of_array,
    "random": lambda: drawing(random.Random(3).random),
    "numpy": lambda: drawing(lambda draw=numpy.random.default_rng(3): float(draw.random())),
    "count": lambda: iterating(itertools.count(1)),
    "iterator": lambda: iterating(iter([1.0, 0.5, 2.0, 3.0, 0.1, 0.7, 0.9])),
}


@pytest.mark.parametrize("name", CASES)
def test_goes_on_as_in_plain_python(name):
    check_equal(weighted(CASES[name]), changing_numbers=True)


class Counting(training_of.Net):
    """Attributes of a module, which is no class of torch."""

    def forward(self, x):
        self.calls = getattr(self, "calls", 0) + 1
        return super().forward(x) / self.calls


def test_attributes_of_the_model():
    case = weighted(lambda: (lambda: 1.0, lambda: None))
    check_equal(case, net=Counting, changing_numbers=True)


def test_a_generator_that_the_step_advances_is_refused():
    def values():
        yield from range(1, 100)

    with pytest.raises(stowage.Unsupported, match="advances the generator 'values'"):
        check_equal(weighted(lambda: iterating(values())), changing_numbers=True)


def test_a_capture_alone_leaves_no_trace():
    one = Empty()
    one.cache = {}

    def weight():
        one.seen = getattr(one, "seen", 0) + 1
        if "scale" not in one.cache:
            one.cache["scale"] = torch.ones(())
        return one.cache["scale"]

    model, training = begin(weighted(lambda: (weight, lambda: None)))
    train_step = planned(model, training)
    assert list(one.cache) == ["scale"]  # without memory: the steps of a plan use it
    train_step.leave()
    assert vars(one) == {"cache": {}}
    training.step(*next(batches(1)))
    assert one.seen == 1
