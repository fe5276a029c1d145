# SPDX-License-Identifier: Apache-2.0
"""What can be reached from a step's Python code: the holders of _kept_objects.py, found by a walk.

Not walked: what torch keeps in optimizers and modules, machinery of Python and torch, objects with
threads or locks.
"""

import argparse
import array
import collections
import random
import sys
import types

import torch

from ._kept_objects import (
    LISTS,
    MOST_WALKED,
    PLAIN,
    Elements,
    Entries,
    Members,
    Number,
    OfClass,
    OfModule,
    Slots,
    State,
    Values,
)

_MOST_HOLDERS = 4000
_OF_NAMES = (types.SimpleNamespace, argparse.Namespace, collections.UserDict, collections.UserList)
_LIBRARIES = frozenset(sys.stdlib_module_names) | {"torch", "stowage", "numpy"}
# What every optimizer has: _optimizer.py puts it back; and what schedulers and the guard wrap.
_OF_OPTIMIZERS = frozenset(vars(torch.optim.SGD([torch.zeros(1)], lr=1.0))) | {
    "state_dict", "load_state_dict", "step"}
_THREADS = frozenset({"threading", "_thread", "queue", "_queue", "multiprocessing", "concurrent",
                      "asyncio", "socket", "select"})


def holder_of(value, holds_no_memory):
    """The Holder for a value; None when there is nothing to put back in it, or it is not ours."""
    if isinstance(value, (*PLAIN, types.ModuleType, torch.dtype)):
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
    if isinstance(value, LISTS):
        return Elements(value)
    if isinstance(value, set):
        return Members(value)
    if isinstance(value, (bytearray, array.array)):
        return Values(value) if len(value) <= MOST_WALKED else None
    if isinstance(value, random.Random):
        return State(value, value.getstate, value.setstate)
    return _of_numpy(value) or _of_object(value)


def _of_numpy(value):
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if isinstance(value, numpy.ndarray):
        return Values(value) if value.size <= MOST_WALKED and value.flags.writeable else None
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
        for value in list(found[at].held())[:MOST_WALKED]:
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


def tensors_held(holders, holds_no_memory):
    """(name, tensor) of those without memory."""
    found = {}
    for holder in holders:
        for value in holder.held():
            for path, tensor in tensors_in(value):
                if holds_no_memory(tensor):
                    found.setdefault(id(tensor), (f"kept{path}", tensor))
    return list(found.values())
