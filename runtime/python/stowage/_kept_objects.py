# SPDX-License-Identifier: Apache-2.0
"""Python objects that keep something from step to step: copied, and put back in place.

A holder is one of them: a dictionary, a list, a cell of a closure, attributes of an object, a
generator of random numbers, a small array. Each is copied by itself, not deeply.
An entry that now is a tensor without memory stays where the caller asks for it: later steps of the
plan use it.
"""

import collections
import copy
import itertools
import types

import torch

PLAIN = (int, float, complex, bool, str, bytes, type(None))
# A walk does not look into each element of a data set.
MOST_WALKED = 4096
LISTS = (list, collections.deque)
_POSITIONS = (itertools.count, itertools.cycle, type(iter([])), type(iter(())), type(iter(range(0))))
# What a module has of its own; and the methods that _guard.py wraps.
_OF_MODULES = frozenset(vars(torch.nn.Module())) - {"_modules"} | {
    "state_dict", "load_state_dict", "_apply"}


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
        return list(self.live) if len(self.live) <= MOST_WALKED else ()

    def copy(self):
        is_log = isinstance(self.live, list) and len(self.live) > MOST_WALKED
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
        return [one for one in vars(self.live).values() if isinstance(one, (dict, set, *LISTS))]

    def copy(self):
        return {name: value for name, value in list(vars(self.live).items())
                if isinstance(value, PLAIN) and not name.startswith("__")}

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


def _copied(value):
    """An iterator is one object that moves: what is kept is one that stands where it stood."""
    return copy.copy(value) if isinstance(value, _POSITIONS) else value


def _is_same(now, copied):
    if now is copied:
        return True
    if isinstance(now, _POSITIONS) and type(now) is type(copied):
        return False
    return (isinstance(now, PLAIN) and type(now) is type(copied)
            and (now == copied or (now != now and copied != copied)))
