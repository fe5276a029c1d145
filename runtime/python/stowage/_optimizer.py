# SPDX-License-Identifier: Apache-2.0
"""What the library asks of an optimizer: its state by parameter, and its numbers on the host.

Host numbers are the options of the groups (learning rates and the like), and what the state holds
that is no tensor of the device: Python's numbers, and tensors without a dimension on the CPU (step
counts), unless the optimizer is fused or capturable and computes with those on the device. They can
be taken, compared and put back, so that a capture and a refused step leave no trace.
"""

import contextlib
import copy
from collections import defaultdict

import torch

# As plans call them; other names are the optimizer's own.
_SHORT_NAMES = {
    "exp_avg": "m",
    "exp_avg_sq": "v",
    "max_exp_avg_sq": "vmax",
    "momentum_buffer": "momentum",
    "square_avg": "v",
    "grad_avg": "mean",
}


def keeps_counts_on_device(optimizer):
    """Are its step counts tensors that the update itself computes with?"""
    return any(group.get("fused") or group.get("capturable") for group in optimizer.param_groups)


class _NotedState(dict):
    """State of one parameter that remembers with what each entry began."""

    def __init__(self, view, entries=()):
        super().__init__(entries)
        self._view = view
        self.first = {}

    def __setitem__(self, key, value):
        if key not in self and key not in self.first:
            if self._view.is_host_number(value):
                self.first[key] = value.item()
            elif not isinstance(value, torch.Tensor):
                self.first[key] = copy.copy(value)
        super().__setitem__(key, value)

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *args, **kwargs):
        for key, value in dict(*args, **kwargs).items():
            self[key] = value


class OptimizerView:
    """One optimizer; `parameters` are those of all groups, in order."""

    def __init__(self, optimizer, holds_no_memory=lambda tensor: False):
        self.optimizer = optimizer
        self._holds_no_memory = holds_no_memory
        self.first = {}  # parameter -> host numbers of its state as the first step made them
        self.parameters = [one for group in optimizer.param_groups for one in group["params"]]

    def is_host_number(self, value):
        is_number = isinstance(value, torch.Tensor) and value.dim() == 0
        return (is_number and value.device.type == "cpu"
                and not keeps_counts_on_device(self.optimizer)
                and not self._holds_no_memory(value))

    @contextlib.contextmanager
    def noting_first_numbers(self):
        """While the first step runs, which makes state and changes its numbers at once."""
        state = self.optimizer.state
        factory = state.default_factory if isinstance(state, defaultdict) else None
        for parameter, entries in list(state.items()):
            state[parameter] = _NotedState(self, entries)
        if factory is dict:
            state.default_factory = lambda: _NotedState(self)
        try:
            yield
        finally:
            if factory is dict:
                state.default_factory = factory
            for parameter, entries in list(state.items()):
                if isinstance(entries, _NotedState):
                    self.first[parameter] = entries.first
                    state[parameter] = dict(entries)

    def is_same(self):
        """Does it still have the parameters that it had?"""
        now = [one for group in self.optimizer.param_groups for one in group["params"]]
        return len(now) == len(self.parameters) and all(
            a is b for a, b in zip(now, self.parameters, strict=True)
        )

    def state_of(self, position):
        """(names, tensors) that the update computes with on the device."""
        names, tensors = [], []
        for key, value in self.optimizer.state.get(self.parameters[position], {}).items():
            if isinstance(value, torch.Tensor) and not self.is_host_number(value):
                names.append(_SHORT_NAMES.get(key, str(key)))
                tensors.append(value)
        return names, tensors

    def step_count_of(self, position):
        return self.count_of(self.parameters[position])

    def count_of(self, parameter):
        """None where nothing counts the parameter's steps on the host."""
        step = self.optimizer.state.get(parameter, {}).get("step")
        if isinstance(step, (int, float)) or self.is_host_number(step):
            return float(step)
        return None

    def first_numbers_of(self, parameter):
        entries = self.optimizer.state.get(parameter)
        return entries.first if isinstance(entries, _NotedState) else self.first.get(parameter, {})

    def learning_rates(self):
        return [float(group.get("lr", 0.0)) for group in self.optimizer.param_groups]

    def set_learning_rates(self, rates):
        for group, rate in zip(self.optimizer.param_groups, rates, strict=False):
            if isinstance(group.get("lr"), torch.Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def take_numbers(self):
        return _Numbers(self)

    def take_state(self):
        """Which entries there are, and the objects in them."""
        return {parameter: dict(state) for parameter, state in self.optimizer.state.items()}

    def put_state_back(self, saved):
        state = self.optimizer.state
        for parameter in [one for one in state if one not in saved]:
            del state[parameter]
        for parameter, entries in saved.items():
            live = state[parameter]
            for key in [key for key in live if key not in entries]:
                del live[key]
            live.update(entries)


class _Numbers:
    """The host numbers of an optimizer at one moment."""

    def __init__(self, view):
        self._view = view
        self.options = [
            {key: _copied(value) for key, value in group.items() if key != "params"}
            for group in view.optimizer.param_groups
        ]
        self._state = []
        for parameter in view.parameters:
            kept = {}
            for key, value in view.optimizer.state.get(parameter, {}).items():
                if view.is_host_number(value):
                    kept[key] = value.item()
                elif not isinstance(value, torch.Tensor):
                    kept[key] = copy.copy(value)
            self._state.append(kept)

    def put_back(self):
        for group, options in zip(self._view.optimizer.param_groups, self.options, strict=False):
            for key, value in options.items():
                _put(group, key, value)
        for parameter, kept in zip(self._view.parameters, self._state, strict=True):
            state = self._view.optimizer.state.get(parameter)
            if state is None:
                continue
            first = self._view.first_numbers_of(parameter)
            for key, value in list(state.items()):
                was = kept[key] if key in kept else first.get(key)
                if was is None and key not in kept:
                    continue
                if self._view.is_host_number(value):
                    value.fill_(was)
                elif not isinstance(value, torch.Tensor):
                    state[key] = copy.copy(was)

    def same_options(self, other):
        return _plain(self.options) == _plain(other.options)


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
