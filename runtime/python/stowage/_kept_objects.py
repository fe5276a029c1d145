# SPDX-License-Identifier: Apache-2.0
"""Python objects that keep something from step to step: found, copied, and put back in place.

A holder is one of them: a dictionary, a list, a cell of a closure, attributes of an object, a
generator of random numbers, a small array. `find_holders` walks from one to what it holds, so each
is copied by itself, not deeply.
An entry that now is a tensor without memory stays where the caller asks for it: later steps of the
plan use it.
Not walked: what torch keeps in optimizers and modules, machinery of Python and torch, objects with threads or locks.
"""

import argparse
import array
import collections
import copy
import itertools
import random
import sys
import types

import torch

_PLAIN = (int, float, complex, bool, str, bytes, type(None))
_MOST_HOLDERS = 4000
# A walk does not look into each element of a data set.
_MOST_WALKED = 4096
_LISTS = (list, collections.deque)
_POSITIONS = (itertools.count, itertools.cycle, type(iter([])), type(iter(())), type(iter(range(0))))
_OF_NAMES = (types.SimpleNamespace, argparse.Namespace, collections.UserDict, collections.UserList)
_LIBRARIES = frozenset(sys.stdlib_module_names) | {"torch", "stowage", "numpy"}
# What a module has of its own; and the methods that _guard.py wraps.
_OF_MODULES = frozenset(vars(torch.nn.Module())) - {"_modules"} | {
    "state_dict", "load_state_dict", "_apply"}
# What every optimizer has: _optimizer.py puts it back; and what schedulers and the guard wrap.
_OF_OPTIMIZERS = frozenset(vars(torch.optim.SGD([torch.zeros(1)], lr=1.0))) | {
    "state_dict", "load_state_dict", "step"}
_THREADS = frozenset({"threading", "_thread", "queue", "_queue", "multiprocessing", "concurrent",
                      "asyncio", "socket", "select"})


class Absent:
    """In the place of an entry that was not there."""


class Holder:
    """What all kinds have: `copy()` makes something that `put(copied, keep)` puts back.

    keep(value): is it a tensor that must stay where it is now?
    """

    def __init__(self, live):
        self.live = live

    def held(self):
        return ()

    def copy(self):
        raise NotImplementedError

    def size(self):
        """How much copying it takes."""
        return 1

    def is_changed(self, copied):
        return True

    def put(self, copied, keep):
        raise NotImplementedError

    def put_where(self, copied, is_there):
        """Only where an entry that is_there(entry) stands now."""


class Entries(Holder):
    """Of a dictionary; `names`: only those, which may be absent."""

    def __init__(self, live, names=None, leave_out=()):
        super().__init__(live)
        self._names = names
        self._leave_out = leave_out

    def held(self):
        return list(self._now().values())

    def copy(self):
        return {name: _copied(value) for name, value in self._now().items()}

    def is_changed(self, copied):
        now = self._now()
        return len(now) != len(copied) or any(
            name not in now or not _is_same(now[name], value) for name, value in copied.items())

    def size(self):
        return len(self._now())

    def put_where(self, copied, is_there):
        self.put(copied, lambda value: not is_there(value))

    def put(self, copied, keep):
        live = self.live
        for name, value in self._now().items():
            if name not in copied and not keep(value):
                del live[name]
        for name, value in copied.items():  # update() of a Counter adds
            now = live.get(name, Absent)
            if value is Absent:
                live.pop(name, None)
            elif not _is_same(now, value) and not keep(now):
                live[name] = _copied(value)

    def _now(self):
        if self._names is not None:
            return {name: self.live[name] for name in self._names if name in self.live}
        return {name: value for name, value in self.live.items() if name not in self._leave_out}


class OfModule(Entries):
    """Attributes of a module, and which hooks it has."""

    def __init__(self, module):
        super().__init__(vars(module), leave_out=_OF_MODULES)
        self._hooks = [one for name, one in vars(module).items()
                       if "hook" in name and isinstance(one, dict)]

    def held(self):
        found = super().held()
        for hooks in self._hooks:
            for hook in hooks.values():
                found += [one.cell_contents for one in getattr(hook, "__closure__", None) or ()
                          if one != types.CellType()]
        return found

    def copy(self):
        return super().copy(), [dict(one) for one in self._hooks]

    def is_changed(self, copied):
        entries, hooks = copied
        return super().is_changed(entries) or any(
            now.keys() != was.keys() for now, was in zip(self._hooks, hooks, strict=True))

    def put(self, copied, keep):
        entries, hooks = copied
        for now, was in zip(self._hooks, hooks, strict=True):
            if now.keys() != was.keys():
                now.clear()
                now.update(was)
        super().put(entries, keep)

    def put_where(self, copied, is_there):
        super().put(copied[0], lambda value: not is_there(value))


class Elements(Holder):
    """Of a list or deque. A long list is a log, which steps add to: its length is kept."""

    def held(self):
        return list(self.live) if len(self.live) <= _MOST_WALKED else ()

    def copy(self):
        is_log = isinstance(self.live, list) and len(self.live) > _MOST_WALKED
        return len(self.live) if is_log else list(self.live)

    def size(self):
        return len(self.live) if not isinstance(self.live, list) else 1

    def is_changed(self, copied):
        if isinstance(copied, int):
            return len(self.live) != copied
        return len(self.live) != len(copied) or any(
            a is not b for a, b in zip(self.live, copied, strict=True))

    def put(self, copied, keep):
        if isinstance(copied, int):
            del self.live[copied:]
        elif self.is_changed(copied):
            self.live.clear()
            self.live.extend(copied)


class Members(Holder):
    """Of a set."""

    def copy(self):
        return set(self.live)

    def put(self, copied, keep):
        if self.live != copied:
            self.live.clear()
            self.live.update(copied)


class Cell(Holder):
    """Of a closure."""

    def held(self):
        return [one for one in [self._now()] if one is not Absent]

    def copy(self):
        return _copied(self._now())

    def is_changed(self, copied):
        return not _is_same(self._now(), copied)

    def put_where(self, copied, is_there):
        if is_there(self._now()):
            self.put(copied, lambda value: False)

    def put(self, copied, keep):
        now = self._now()
        if _is_same(now, copied) or keep(now):
            return
        if copied is Absent:
            del self.live.cell_contents
        else:
            self.live.cell_contents = _copied(copied)

    def _now(self):
        try:
            return self.live.cell_contents
        except ValueError:
            return Absent


class Slots(Holder):
    """Attributes of an object that has no dictionary for them."""

    def __init__(self, live, names):
        super().__init__(live)
        self._names = names

    def held(self):
        return [one for one in self.copy().values() if one is not Absent]

    def copy(self):
        return {name: _copied(getattr(self.live, name, Absent)) for name in self._names}

    def is_changed(self, copied):
        return any(not _is_same(getattr(self.live, name, Absent), value)
                   for name, value in copied.items())

    def put_where(self, copied, is_there):
        self.put(copied, lambda value: not is_there(value))

    def put(self, copied, keep):
        for name, value in copied.items():
            now = getattr(self.live, name, Absent)
            if _is_same(now, value) or keep(now):
                continue
            if value is Absent:
                object.__delattr__(self.live, name)
            else:
                object.__setattr__(self.live, name, _copied(value))


class OfClass(Holder):
    """Plain values among the attributes of a class, and what its containers hold."""

    def held(self):
        return [one for one in vars(self.live).values() if isinstance(one, (dict, set, *_LISTS))]

    def copy(self):
        return {name: value for name, value in list(vars(self.live).items())
                if isinstance(value, _PLAIN) and not name.startswith("__")}

    def put(self, copied, keep):
        now = self.copy()
        for name in now.keys() - copied.keys():
            type.__delattr__(self.live, name)
        for name, value in copied.items():
            if not _is_same(now.get(name, Absent), value):
                type.__setattr__(self.live, name, value)


class Number(Holder):
    """A tensor of one number on the CPU, which is none of the step's."""

    def copy(self):
        return self.live.item()

    def put(self, copied, keep):
        if self.live.item() != copied:
            self.live.fill_(copied)


class Values(Holder):
    """Of a small array: of numpy, of the module array, of bytes."""

    def copy(self):
        return copy.copy(self.live)

    def put(self, copied, keep):
        self.live[... if hasattr(self.live, "dtype") else slice(None)] = copied


class State(Holder):
    """Of a generator of random numbers."""

    def __init__(self, live, get, put):
        super().__init__(live)
        self._get, self._put = get, put

    def copy(self):
        return self._get()

    def put(self, copied, keep):
        self._put(copied)


def holder_of(value, holds_no_memory):
    """The Holder for a value; None when there is nothing to put back in it, or it is not ours."""
    if isinstance(value, (*_PLAIN, types.ModuleType, torch.dtype)):
        return None
    if isinstance(value, type):
        return None if is_machinery(value.__module__) else OfClass(value)
    if isinstance(value, torch.nn.Module):
        return OfModule(value)
    if isinstance(value, torch.optim.Optimizer):
        return Entries(vars(value), leave_out=_OF_OPTIMIZERS)
    if isinstance(value, torch.Tensor):
        is_number = value.dim() == 0 and value.device.type == "cpu" and not value.requires_grad
        return Number(value) if is_number and not holds_no_memory(value) else None
    if isinstance(value, dict):
        return Entries(value)
    if isinstance(value, _LISTS):
        return Elements(value)
    if isinstance(value, set):
        return Members(value)
    if isinstance(value, (bytearray, array.array)):
        return Values(value) if len(value) <= _MOST_WALKED else None
    if isinstance(value, random.Random):
        return State(value, value.getstate, value.setstate)
    return _of_numpy(value) or _of_object(value)


def _of_numpy(value):
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if isinstance(value, numpy.ndarray):
        return Values(value) if value.size <= _MOST_WALKED and value.flags.writeable else None
    if isinstance(value, numpy.random.RandomState):
        return State(value, value.get_state, value.set_state)
    if isinstance(value, numpy.random.Generator):
        bits = value.bit_generator
        return State(value, lambda: bits.state, lambda state: setattr(bits, "state", state))
    return None


def _of_object(value):
    """Of a class of the user, or of a library above torch."""
    kind = type(value)
    if is_machinery(kind.__module__) and not isinstance(value, _OF_NAMES):
        return None
    attributes = getattr(value, "__dict__", None)
    slots = [name for base in kind.__mro__ for name in _slots_of(base)]
    held = list(attributes.values()) if isinstance(attributes, dict) else []
    held += [getattr(value, name, None) for name in slots]
    if any(str(type(one).__module__).partition(".")[0] in _THREADS for one in held):
        return None  # another thread may work with it
    if isinstance(attributes, dict):
        return Entries(attributes)
    return Slots(value, slots) if slots else None


def _slots_of(kind):
    slots = vars(kind).get("__slots__", ())
    return [one for one in ((slots,) if isinstance(slots, str) else slots)
            if one not in ("__dict__", "__weakref__") and not one.startswith("__")]


def is_machinery(module):
    """Does it belong to Python, torch or this package?"""
    return str(module).partition(".")[0] in _LIBRARIES


def find_holders(roots, holds_no_memory):
    """All that can be reached from holders, nearest first; `roots` come first."""
    found, seen = list(roots), {id(one.live) for one in roots}
    at = 0
    while at < len(found) and len(found) < _MOST_HOLDERS:
        for value in list(found[at].held())[:_MOST_WALKED]:
            for inner in _objects_of(value):
                if id(inner) in seen:
                    continue
                holder = holder_of(inner, holds_no_memory)
                if holder is None:
                    continue
                seen.update((id(inner), id(holder.live)))
                found.append(holder)
        at += 1
    return found


def _objects_of(value):
    if isinstance(value, (types.MethodType, types.BuiltinMethodType)):
        value = value.__self__
    return (*(value if isinstance(value, tuple) else (value,)), type(value))


def tensors_in(value, depth=3):
    """Tensors in nested containers, with their path."""
    if isinstance(value, torch.Tensor):
        yield "", value
    elif depth and isinstance(value, dict):
        for key, one in list(value.items()):
            for path, tensor in tensors_in(one, depth - 1):
                yield f".{key}{path}", tensor
    elif depth and isinstance(value, (list, tuple, collections.deque)):
        for position, one in enumerate(value):
            for path, tensor in tensors_in(one, depth - 1):
                yield f".{position}{path}", tensor


def _copied(value):
    """An iterator is one object that moves: what is kept is one that stands where it stood."""
    return copy.copy(value) if isinstance(value, _POSITIONS) else value


def _is_same(now, copied):
    if now is copied:
        return True
    if isinstance(now, _POSITIONS) and type(now) is type(copied):
        return False
    return (isinstance(now, _PLAIN) and type(now) is type(copied)
            and (now == copied or (now != now and copied != copied)))
