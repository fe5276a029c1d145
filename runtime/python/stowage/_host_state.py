# SPDX-License-Identifier: Apache-2.0
"""What a step's Python code keeps from step to step, so that it can be put back.

A capture runs the step several times, and a refused step has run half. Put back are: schedulers,
averaged models and gradient scalers that the step uses; variables of the function and of functions
that it calls by name, attributes of its object, and what these hold (_kept_objects.py); random
numbers of Python and numpy. Tensors that a capture has made in one of these places stay: later
steps use them, as long as the step is captured.
A generator that the step advances cannot be put back: that is refused.
Not here: optimizers (_optimizer.py), tensors of the step.
"""

import inspect
import random
import sys
import types

import torch

from ._errors import Unsupported
from ._kept_objects import Cell, Entries
from ._reachable import find_holders, is_machinery, tensors_held, tensors_in

# Copying more in each step would cost more than it helps: of those, the ones that have changed.
_MOST_EACH_STEP = 256
_MOST_ELEMENTS = 4096
_MOST_FUNCTIONS = 200


class HostState:
    """Of one captured step. `holds_no_memory(tensor)`: is it one of the step's?"""

    def __init__(self, function, holds_no_memory):
        self._function = function
        self._holds_no_memory = holds_no_memory
        self._noted = []
        self._holders = find_holders(_roots_of(function), holds_no_memory)
        self._first = [one.copy() for one in self._holders]
        self._known = {id(one.live) for one in self._holders}
        self._generators = _generators_in(self._holders)
        self._random = _random_states()
        self._each_step = None

    def note(self, one):
        """Before an object of torch changes in the step."""
        if any(one is other for other in self._noted):
            return
        self._noted.append(one)
        for holder in find_holders([Entries(vars(one))], self._holds_no_memory):
            if id(holder.live) not in self._known:
                self._known.add(id(holder.live))
                self._holders.append(holder)
                self._first.append(holder.copy())
        self._each_step = None

    def schedulers(self):
        """All that the step has stepped."""
        return [one for one in self._noted if hasattr(one, "optimizer")]

    def check(self):
        """Raises Unsupported for what a step has changed that cannot be put back."""
        for generator, place in self._generators:
            if _place_of(generator) != place:
                raise Unsupported(
                    f"the step advances the generator '{generator.__name__}', which nothing can "
                    "put back after the step was captured: take its values before the step and "
                    "give them to it as arguments")

    def rewind(self):
        """To what was there before the capture."""
        if self._each_step is None:
            self._choose_each_step()
        for holder, copied in zip(self._holders, self._first, strict=True):
            holder.put(copied, self._is_of_step)
        for put in self._random:
            put()

    def forget_tensors(self):
        """Where a tensor of the step is now, there is again what was there before."""
        for holder, copied in zip(self._holders, self._first, strict=True):
            holder.put_where(copied, self._is_of_step)

    def tensors(self):
        """(name, tensor) that the step has made and that these places hold now."""
        roots = _roots_of(self._function) + [Entries(vars(one)) for one in self._noted]
        return tensors_held(find_holders(roots, self._holds_no_memory), self._holds_no_memory)

    def refuse_gradients_outside(self, own):
        """Raises Unsupported where the step leaves a gradient on a parameter that is not in `own`:
        other code would find one without memory. It is None then."""
        known = set(map(id, own))
        left = [(name, one) for name, one in self._parameters() if id(one) not in known
                and one.grad is not None and self._holds_no_memory(one.grad)]
        for _, one in left:
            one.grad = None
        if left:
            raise Unsupported(
                f"the step leaves a gradient on '{left[0][0]}', a parameter of neither its model nor "
                "its optimizers, where no other code could have it: set it to None at the end of the "
                "step (zero_grad()), call requires_grad_(False), or make one step of both models, "
                "with torch.nn.ModuleList([first, second]) as its model")

    def _parameters(self):
        """(name, parameter) of all that the step's code reaches: of modules, and by themselves."""
        for holder in find_holders(_roots_of(self._function), self._holds_no_memory):
            for value in holder.held():
                if isinstance(value, torch.nn.Module):
                    kind = type(value).__name__
                    yield from ((f"{kind}.{name}", one) for name, one in value.named_parameters())
                else:
                    yield from ((f"kept{path}", one) for path, one in tensors_in(value)
                                if one.requires_grad and one.is_leaf)

    def take(self):
        if self._each_step is None:
            self._choose_each_step()
        taken = [(one, one.copy()) for one in self._each_step]
        return taken, _random_states(), len(self._holders)

    def put_back(self, taken):
        holders, random_states, count = taken
        since = zip(self._holders[count:], self._first[count:], strict=True)
        for holder, copied in (*holders, *since):
            holder.put(copied, self._is_of_step)
        for put in random_states:
            put()

    def _choose_each_step(self):
        """What a step may change: all when that is little, else what the capture has changed."""
        self._each_step = self._holders
        if len(self._holders) > _MOST_EACH_STEP:
            self._each_step = [
                holder for holder, copied in zip(self._holders, self._first, strict=True)
                if holder.is_changed(copied)]
        self._each_step = [one for one in self._each_step if one.size() <= _MOST_ELEMENTS]

    def _is_of_step(self, value):
        return any(self._holds_no_memory(tensor) for _, tensor in tensors_in(value))


def _roots_of(function):
    """Holders of what a function names: its variables, attributes of its object, and the same of
    the functions among them."""
    roots, waiting, seen = [], [function], set()
    while waiting and len(seen) < _MOST_FUNCTIONS:
        one = waiting.pop(0)
        owner = getattr(one, "__self__", None)
        if owner is not None:
            roots.append(Cell(types.CellType(owner)))
        one = inspect.unwrap(getattr(one, "__func__", one))
        if not isinstance(one, types.FunctionType) or id(one) in seen:
            continue
        seen.add(id(one))
        mine = [Cell(cell) for cell in one.__closure__ or ()]
        mine.append(Entries(one.__globals__, names=frozenset(_names_in(one.__code__))))
        mine += [Entries(vars(one)), Cell(types.CellType(one.__defaults__ or ()))]
        roots += mine
        waiting += [value for holder in mine for value in holder.held()
                    if isinstance(value, (types.FunctionType, types.MethodType))
                    and not is_machinery(value.__module__)]
    return roots


def _names_in(code):
    """What it may read or write as globals, functions inside of it included."""
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _names_in(one)


def _generators_in(holders):
    found = [value for holder in holders for value in holder.held()
             if isinstance(value, types.GeneratorType)]
    return [(one, _place_of(one)) for one in found]


def _place_of(generator):
    frame = generator.gi_frame
    return None if frame is None else (frame.f_lasti, frame.f_lineno)


def _random_states():
    """Functions that put the generators of the process back."""
    state = random.getstate()
    found = [lambda: random.setstate(state)]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        drawn = numpy.random.get_state()
        found.append(lambda: numpy.random.set_state(drawn))
    return found
