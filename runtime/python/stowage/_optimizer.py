# SPDX-License-Identifier: Apache-2.0
"""What the library asks of an optimizer: its state by parameter, and its numbers on the host.

Host numbers are the options of the groups (learning rates and the like), the optimizer's own
attributes, and what the state holds that is no tensor of the device: Python's numbers, and tensors
without a dimension on the CPU (step counts), unless the optimizer is fused or capturable and
computes with those on the device. They can be taken, compared and put back, so that a capture and a
refused step leave no trace.
State may lie under other keys than parameters, and tensors in containers in it.
Not here: state that each step makes anew (_replaced_state.py).
"""

import contextlib
import copy
import weakref
from collections import defaultdict

import torch

from ._kept_objects import Entries
from ._reachable import find_holders, holder_of, tensors_held, tensors_in
from ._replaced_state import NotedState, NotedStates

# As plans call them; other names are the optimizer's own.
_SHORT_NAMES = {
    "exp_avg": "m",
    "exp_avg_sq": "v",
    "max_exp_avg_sq": "vmax",
    "momentum_buffer": "momentum",
    "square_avg": "v",
    "grad_avg": "mean",
}


_PLAIN = (int, float, bool, str, type(None))
_OF_OPTIMIZERS = frozenset(vars(torch.optim.SGD([torch.empty(0)]))) | {
    "state_dict", "load_state_dict"}


def inner_of(optimizer):
    """The optimizer that one wraps (accelerate's do), or itself."""
    inner = getattr(optimizer, "optimizer", None)
    is_wrapped = (isinstance(inner, torch.optim.Optimizer)
                  and inner.param_groups is optimizer.param_groups)
    return inner_of(inner) if is_wrapped else optimizer


def keeps_counts_on_device(optimizer):
    """Are its step counts tensors that the update itself computes with?"""
    return any(group.get("fused") or group.get("capturable") for group in optimizer.param_groups)


class _SavedState:
    """Entries of all state at one moment, and what OptimizerView.kept_by_others gave."""


class OptimizerView:
    """One optimizer; `parameters` are those of all groups, in order."""

    def __init__(self, optimizer, holds_no_memory=lambda tensor: False):
        self.outer = optimizer
        self.optimizer = inner_of(optimizer)
        self._holds_no_memory = holds_no_memory
        self.first = {}  # key of the state -> its host numbers as the first step made them
        self._noted = None
        self._before_notes = {}
        self._saved = weakref.WeakSet()
        self._after_first = None
        self.parameters = [one for group in self.optimizer.param_groups for one in group["params"]]

    def is_host_number(self, value):
        is_number = isinstance(value, torch.Tensor) and value.dim() == 0
        return (is_number and value.device.type == "cpu"
                and not keeps_counts_on_device(self.optimizer)
                and not self._holds_no_memory(value))

    @contextlib.contextmanager
    def noting_first_numbers(self):
        """While the first step runs, which makes state and changes its numbers at once."""
        plain = self.optimizer.state
        noting = plain.default_factory is dict if isinstance(plain, defaultdict) else False
        if noting:
            self._before_notes = plain
            self.optimizer.state = self._noted = NotedStates(self, {
                key: NotedState(self, entries) if isinstance(entries, dict) else entries
                for key, entries in plain.items()})
        try:
            yield
        finally:
            if noting:
                self.first = {key: self.first_numbers_of(key) for key in self._noted}
                plain.clear()
                plain.update({key: dict(entries) if isinstance(entries, NotedState) else entries
                              for key, entries in self._noted.items()})
                self.optimizer.state, self._noted, self._before_notes = plain, None, {}

    def is_same(self):
        """Does it still have the parameters that it had?"""
        now = [one for group in self.optimizer.param_groups for one in group["params"]]
        return len(now) == len(self.parameters) and all(
            a is b for a, b in zip(now, self.parameters, strict=True)
        )

    def state_of(self, position):
        """(names, tensors) that the update computes with on the device."""
        found = list(self._state_under(self.parameters[position]))
        if position == 0:
            own = {id(one) for one in self.parameters}
            for key in [one for one in self.optimizer.state if id(one) not in own]:
                stem = "other" if isinstance(key, torch.Tensor) else str(key)
                found += [(f"{stem}.{name}", one) for name, one in self._state_under(key)]
        return [name for name, _ in found], [tensor for _, tensor in found]

    def _state_under(self, key):
        entries = self.optimizer.state.get(key, {})
        for name, value in entries.items() if isinstance(entries, dict) else [("value", entries)]:
            for path, tensor in tensors_in(value):
                if not self.is_host_number(tensor):
                    yield _SHORT_NAMES.get(name, str(name)) + path, tensor

    def step_count_of(self, position):
        return self.count_of(self.parameters[position])

    def count_of(self, parameter):
        """None where nothing counts the parameter's steps on the host."""
        step = self.optimizer.state.get(parameter, {}).get("step")
        if isinstance(step, (int, float)) or self.is_host_number(step):
            return float(step)
        return None

    def first_numbers_of(self, key):
        """None where nobody has seen them."""
        if self._noted is None:
            return self.first.get(key)
        entries = self._noted.get(key)
        return entries.first if isinstance(entries, NotedState) else self._noted.first.get(key)

    def note_first_step(self):
        self._after_first = self.take_numbers()

    def check_first_step(self):
        """After it ran again from what was put back. A number that differs began as no entry."""
        after, self._after_first = self._after_first, None
        for key, expected in (after.state if after is not None else {}).items():
            live, first = self.optimizer.state.get(key), self.first_numbers_of(key)
            if isinstance(live, dict) and first:
                for name, value in live.items():
                    is_number = self.is_host_number(value) or isinstance(value, (int, float))
                    if is_number and name in first and float(value) != expected.get(name):
                        del first[name]

    def learning_rates(self):
        # Some have none (Adafactor with relative steps).
        return [float(group.get("lr") or 0.0) for group in self.optimizer.param_groups]

    def set_learning_rates(self, rates):
        for group, rate in zip(self.optimizer.param_groups, rates, strict=False):
            if isinstance(group.get("lr"), torch.Tensor):
                group["lr"].fill_(rate)
            elif group.get("lr") is not None:
                group["lr"] = rate

    def take_numbers(self):
        return _Numbers(self)

    def take_state(self):
        """Which entries there are, and the objects in them."""
        saved = _SavedState()
        saved.entries = {key: dict(entries) if isinstance(entries, dict) else entries
                         for key, entries in self.optimizer.state.items()}
        saved.others = self.kept_by_others()
        self._saved.add(saved)
        return saved

    def saves_of(self, tensor):
        """How often such states hold it, and the state as it was before notes were made."""
        states = [saved.entries for saved in self._saved] + [self._before_notes]
        return sum(one is tensor for state in states for entries in state.values()
                   for one in (entries.values() if isinstance(entries, dict) else (entries,)))

    def put_state_back(self, saved):
        saved, others = saved.entries, saved.others
        state = self.optimizer.state
        for key in [one for one in state if one not in saved]:
            del state[key]
        for key, entries in saved.items():
            if not isinstance(entries, dict):
                state[key] = entries
                continue
            live = state[key]
            for name in [one for one in live if one not in entries]:
                del live[name]
            live.update(entries)
        for holder, copied in others:
            holder.put(copied, lambda value: False)

    def kept_by_others(self):
        """Copies of the optimizer's attributes, and of containers in its state."""
        roots = [Entries(vars(one), leave_out=_OF_OPTIMIZERS)
                 for one in {id(one): one for one in (self.optimizer, self.outer)}.values()]
        for entries in self.optimizer.state.values():
            for value in entries.values() if isinstance(entries, dict) else ():
                if isinstance(value, (torch.Tensor, *_PLAIN)):
                    continue
                holder = holder_of(value, self._holds_no_memory)
                if holder is not None:
                    roots.append(holder)
        return [(one, one.copy()) for one in find_holders(roots, self._holds_no_memory)]

    def attribute_tensors(self):
        """(name, tensor) that the step has made in the optimizer's attributes and options."""
        roots = [Entries(vars(self.outer), leave_out=_OF_OPTIMIZERS),
                 Entries(vars(self.optimizer), leave_out=_OF_OPTIMIZERS),
                 *(Entries(group, leave_out={"params"}) for group in self.optimizer.param_groups)]
        return tensors_held(find_holders(roots, self._holds_no_memory), self._holds_no_memory)

    def is_of_step(self, value):
        return any(self._holds_no_memory(tensor) for _, tensor in tensors_in(value))


class _Numbers:
    """The host numbers of an optimizer at one moment."""

    def __init__(self, view):
        self._view = view
        self.options = [
            {key: _copied(value) for key, value in group.items() if key != "params"}
            for group in view.optimizer.param_groups
        ]
        self.state = {key: self._numbers_in(entries)
                      for key, entries in view.optimizer.state.items()}
        self._others = view.kept_by_others()

    def put_back(self):
        view = self._view
        for group, options in zip(view.optimizer.param_groups, self.options, strict=False):
            for key in [one for one in group if one not in options and one != "params"]:
                if not view.is_of_step(group[key]):
                    del group[key]  # made since
            for key, value in options.items():
                _put(group, key, value)
        for key in list(view.optimizer.state):
            self._put_entries_back(key)
        for holder, copied in self._others:
            holder.put(copied, view.is_of_step)

    def same_options(self, other):
        return _plain(self.options) == _plain(other.options)

    def _numbers_in(self, entries):
        if not isinstance(entries, dict):
            return entries if isinstance(entries, _PLAIN) else None
        kept = {}
        for name, value in entries.items():
            if self._view.is_host_number(value):
                kept[name] = value.item()
            elif not isinstance(value, torch.Tensor):
                kept[name] = value
        return kept

    def _put_entries_back(self, key):
        view, state = self._view, self._view.optimizer.state
        live, kept = state[key], self.state.get(key)
        if not isinstance(live, dict):
            if key in self.state:
                state[key] = kept
            elif isinstance(live, _PLAIN):
                del state[key]
            return
        first = view.first_numbers_of(key)
        if not any(map(view.is_of_step, live.values())):
            # The step makes anew what it has made.
            if key not in self.state and not isinstance(key, torch.Tensor):
                del state[key]
                return
            first = {}
        kept = kept or {}
        for name, value in list(live.items()):
            is_number = view.is_host_number(value)
            if view.is_of_step(value) or (isinstance(value, torch.Tensor) and not is_number):
                continue
            if name in kept:
                was = kept[name]
            elif first is not None and name in first:
                was = copy.copy(first[name])
            elif first is None:
                continue
            else:
                del live[name]
                continue
            if is_number and not isinstance(was, torch.Tensor):
                value.fill_(was)
            else:
                live[name] = was


def _copied(value):
    return value.clone() if isinstance(value, torch.Tensor) else copy.copy(value)


def _put(group, key, value):
    live = group.get(key)
    if isinstance(live, torch.Tensor) and isinstance(value, torch.Tensor):
        if live.device.type == "cpu" and live.dim() == 0:
            live.copy_(value)
    else:
        group[key] = _copied(value)


def _plain(options):
    return [
        {key: value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value
         for key, value in group.items()}
        for group in options
    ]
