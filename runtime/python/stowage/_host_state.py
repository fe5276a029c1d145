# SPDX-License-Identifier: Apache-2.0
"""What a step's Python code keeps from step to step, so that it can be put back.

A capture runs the step several times, and a refused step has run half. Put back are: schedulers,
averaged models and gradient scalers that the step uses; variables of the function and attributes of
its object that hold numbers, texts and containers of them; Python's and numpy's random numbers.
Not here: optimizers (_optimizer.py), tensors of the step.
"""

import collections
import contextlib
import random
import sys

import torch

_PLAIN = (int, float, complex, bool, str, bytes, type(None))
# A larger container is a log or a data set: copying it in each step would cost more than it helps.
_MOST_ELEMENTS = 4096


class HostState:
    """Of one captured step. `holds_no_memory(tensor)`: is it one of the step's?"""

    def __init__(self, function, holds_no_memory):
        self._holds_no_memory = holds_no_memory
        self._noted = []
        self._variables = _variables_of(function)
        self._first = self.take()
        self._first_noted = []

    def note(self, one):
        """Before an object of torch changes in the step."""
        if not any(one is other for other in self._noted):
            self._noted.append(one)
            self._first_noted.append(self._save(one.__dict__))

    def schedulers(self):
        """All that the step has stepped."""
        return [one for one in self._noted if hasattr(one, "optimizer")]

    def rewind(self):
        """To what was there before the capture."""
        self.put_back((self._first[0], self._first_noted, self._first[2]))

    def take(self):
        variables = [self._save_variable(one) for one in self._variables]
        return variables, [self._save(one.__dict__) for one in self._noted], _random_states()

    def put_back(self, taken):
        variables, noted, random_states = taken
        # An object that the step has met since then.
        since = self._first_noted[len(noted):]
        for put in (*variables, *noted, *since, *random_states):
            put()

    def _save_variable(self, variable):
        value = variable.get()
        if isinstance(value, _PLAIN):
            return lambda: variable.set(value)
        saved = self._save(value)
        return saved if saved is not None else lambda: None

    def _save(self, value):
        """A function that puts back what `value` holds; None when there is nothing to put back."""
        if isinstance(value, torch.Tensor):
            return self._save_number(value)
        if isinstance(value, (dict, list, collections.deque)):
            if len(value) > _MOST_ELEMENTS:
                return None
            return self._save_container(value)
        return None

    def _save_number(self, tensor):
        is_number = tensor.dim() == 0 and tensor.device.type == "cpu" and not tensor.requires_grad
        if not is_number or self._holds_no_memory(tensor):
            return None
        number = tensor.item()
        return lambda: tensor.fill_(number) if tensor.item() != number else None

    def _save_container(self, container):
        elements = container.copy()
        values = container.values() if isinstance(container, dict) else container
        inner = [saved for saved in map(self._save, list(values)) if saved is not None]

        def put():
            if isinstance(container, dict):
                _put_entries(container, elements)
            else:
                container.clear()
                container.extend(elements)
            for put_inner in inner:
                put_inner()

        return put


def _put_entries(live, saved):
    """Objects that are no plain values stay where the step has put them."""
    for key in [key for key in live if key not in saved]:
        del live[key]
    for key, value in saved.items():  # update() of a Counter adds
        live[key] = value


class _Variable:
    def __init__(self, get, put):
        self.get = get
        self.set = put


def _variables_of(function):
    """Cells, globals that the function names, and attributes of its object."""
    owner = getattr(function, "__self__", None)
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    found = [_variable_of_cell(cell) for cell in function.__closure__ or ()]
    names = function.__globals__
    found += [_variable_of_entry(names, name) for name in code.co_names if name in names]
    if owner is not None and not isinstance(owner, torch.nn.Module):
        attributes = vars(owner) if hasattr(owner, "__dict__") else {}
        found += [_variable_of_entry(attributes, name) for name in attributes]
    return found


def _variable_of_cell(cell):
    def get():
        with contextlib.suppress(ValueError):
            return cell.cell_contents

    def put(value):
        cell.cell_contents = value

    return _Variable(get, put)


def _variable_of_entry(entries, name):
    return _Variable(lambda: entries.get(name), lambda value: entries.__setitem__(name, value))


def _random_states():
    """Functions that put the generators of the process back."""
    state = random.getstate()
    found = [lambda: random.setstate(state)]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        drawn = numpy.random.get_state()
        found.append(lambda: numpy.random.set_state(drawn))
    return found
