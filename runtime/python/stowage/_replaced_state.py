# SPDX-License-Identifier: Apache-2.0
"""Optimizer state that each step makes anew: state["m"] = 0.9 * state["m"] + gradient.

A plan keeps one place for it. So after the optimizer's step the new tensor is copied into the one
of the first step, which becomes the state again. The values are the same.
Left as it is, and refused by the library where a later step reads it: what somebody else may hold,
too (a gradient, a part of another tensor), where a copy would not follow the original.
"""

import copy
import sys
from collections import defaultdict

import torch


class NotedState(dict):
    """State under one key that remembers with what each entry began."""

    def __init__(self, view, entries=()):
        super().__init__(entries)
        self._view = view
        self._missed = set()
        self.first = {}  # host numbers
        self.first_tensors = {}  # of the step that runs

    def __setitem__(self, key, value):
        if key not in self and key not in self.first and key not in self._missed:
            if self._view.is_host_number(value):
                self.first[key] = value.item()
            elif not isinstance(value, torch.Tensor):
                self.first[key] = copy.copy(value)
        if isinstance(value, torch.Tensor) and not isinstance(self.get_now(key), torch.Tensor):
            # A number until the first step is over: then a tensor, which each step makes anew.
            is_replaced = key in self and not self._view.is_host_number(value)
            self.first_tensors[key] = torch.empty_like(value) if is_replaced else value
        super().__setitem__(key, value)

    def get_now(self, key):
        return super().get(key)

    def get(self, key, default=None):
        """Who asks before it sets an entry begins with the default, which is no entry."""
        if key not in self:
            self._missed.add(key)
        return super().get(key, default)

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *args, **kwargs):
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __missing__(self, key):
        self._missed.add(key)
        raise KeyError(key)


class NotedStates(defaultdict):
    """All state: dictionaries that somebody puts in it whole keep what they begin with, too."""

    def __init__(self, view, states):
        super().__init__(lambda: NotedState(view), states)
        self._view = view
        self.first = {}  # key -> host numbers

    def __setitem__(self, key, value):
        if type(value) is dict and not dict.get(self, key):
            noted = NotedState(self._view)
            noted.update(value)
            self.first[key] = noted.first
        super().__setitem__(key, value)


class ReplacedState:
    """Around one step() of an optimizer."""

    def __init__(self, view, holds_no_memory):
        self._view = view
        self._state = state = view.optimizer.state
        self._holds_no_memory = holds_no_memory
        self._before = {key: dict(entries) for key, entries in state.items()
                        if isinstance(entries, dict)}
        for entries in state.values():
            if isinstance(entries, NotedState):
                entries.first_tensors.clear()

    def copy_into_place(self):
        replaced = [(entries, name, was) for key, entries in self._state.items()
                    if isinstance(entries, dict)
                    for name, was in self._tensors_before(key, entries).items()
                    if entries.get(name) is not was]
        if not replaced:
            return
        self._before = None  # it holds the tensors that are counted now
        for entries in self._state.values():
            if isinstance(entries, NotedState):
                entries.first_tensors.clear()
        held = self._held_elsewhere(replaced)
        while replaced:
            entries, name, was = replaced.pop()
            now = dict.get(entries, name)
            if self._can_copy(was, now, held):
                with torch.no_grad():
                    was.copy_(now)
                dict.__setitem__(entries, name, was)

    def _tensors_before(self, key, entries):
        found = dict(getattr(entries, "first_tensors", {}))
        found.update(self._before.get(key, {}))
        return {name: one for name, one in found.items() if isinstance(one, torch.Tensor)}

    def _held_elsewhere(self, replaced):
        """Addresses of storages that are others' or the old state's."""
        held = {_storage_of(was) for _, _, was in replaced}
        for key, entries in self._state.items():
            if isinstance(key, torch.Tensor):
                held |= {_storage_of(one) for one in (key, key.grad) if one is not None}
            for value in entries.values() if isinstance(entries, dict) else ():
                # The new one of an entry is counted once, so that a second holder is seen.
                if isinstance(value, torch.Tensor):
                    at = _storage_of(value)
                    held.add(("twice", at) if ("once", at) in held else ("once", at))
        return held

    def _can_copy(self, was, now, held):
        if not isinstance(now, torch.Tensor):
            return False
        at = _storage_of(now)
        # The library holds a tensor that was there before the capture, and then is one more.
        holders_of_was = self._view.saves_of(was) + (was._use_count() > 1)
        return (self._holds_no_memory(was) and self._holds_no_memory(now)
                and (was.shape, was.dtype, was.stride()) == (now.shape, now.dtype, now.stride())
                and at not in held and ("twice", at) not in held
                and _fills_storage(was) and _fills_storage(now)
                and sys.getrefcount(was) <= _REFERENCES + holders_of_was
                and sys.getrefcount(now) <= _REFERENCES + 1)  # the state has it, too


def _storage_of(tensor):
    return tensor.untyped_storage()._cdata


def _fills_storage(tensor):
    return tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()


def _own_references(tensor):
    return sys.getrefcount(tensor)


def _measure_references():
    one = object()
    return _own_references(one)


# How many an object has that one variable holds, within a function that was given it.
_REFERENCES = _measure_references()
