# SPDX-License-Identifier: Apache-2.0
"""What the library asks of an optimizer: its state by parameter, and its numbers on the host.

Host numbers are the options of the groups (learning rates and the like), and what the state holds
that is no tensor of the device: Python's numbers, and tensors without a dimension on the CPU (step
counts), unless the optimizer is fused or capturable and computes with those on the device. They can
be taken, compared and put back, so that a capture and a refused step leave no trace.
"""

import copy

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


def keeps_counts_on_device(group):
    """Are the step counts of this group tensors that the update itself computes with?"""
    return bool(group.get("fused") or group.get("capturable"))


def is_host_number(value, group):
    return (
        isinstance(value, torch.Tensor)
        and value.dim() == 0
        and value.device.type == "cpu"
        and not keeps_counts_on_device(group)
    )


class OptimizerView:
    """One optimizer; `parameters` are those of all groups, in order."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self._groups = []
        self.parameters = []
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self.parameters.append(parameter)
                self._groups.append(group)

    def is_same(self):
        """Does it still have the parameters that it had?"""
        now = [one for group in self.optimizer.param_groups for one in group["params"]]
        return len(now) == len(self.parameters) and all(
            a is b for a, b in zip(now, self.parameters, strict=True)
        )

    def state_of(self, position):
        """(names, tensors) that the update computes with on the device."""
        group = self._groups[position]
        names, tensors = [], []
        for key, value in self.optimizer.state.get(self.parameters[position], {}).items():
            if isinstance(value, torch.Tensor) and not is_host_number(value, group):
                names.append(_SHORT_NAMES.get(key, str(key)))
                tensors.append(value)
        return names, tensors

    def step_count_of(self, position):
        """None where nothing counts the parameter's steps on the host."""
        state = self.optimizer.state.get(self.parameters[position], {})
        step = state.get("step")
        if isinstance(step, (int, float)) or is_host_number(step, self._groups[position]):
            return float(step)
        return None

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
        for parameter, group in zip(view.parameters, view._groups, strict=True):
            kept = {}
            for key, value in view.optimizer.state.get(parameter, {}).items():
                if is_host_number(value, group):
                    kept[key] = value.item()
                elif not isinstance(value, torch.Tensor):
                    kept[key] = copy.copy(value)
            self._state.append(kept)

    def put_back(self):
        for group, options in zip(self._view.optimizer.param_groups, self.options, strict=False):
            for key, value in options.items():
                _put(group, key, value)
        for parameter, group, kept in zip(
            self._view.parameters, self._view._groups, self._state, strict=True
        ):
            state = self._view.optimizer.state.get(parameter)
            if state is None:
                continue
            for key, value in list(state.items()):
                if is_host_number(value, group):
                    value.fill_(kept.get(key, 0))
                elif key in kept:
                    state[key] = copy.copy(kept[key])

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


class SchedulerWatch:
    """Finds the schedulers that a step steps, and what they held before it first did."""

    def __init__(self):
        self._before = {}  # scheduler -> its state before the capture

    def note(self, scheduler):
        if scheduler not in self._before:
            self._before[scheduler] = copy.deepcopy(_scheduler_state(scheduler))

    def schedulers(self):
        return list(self._before)

    def rewind(self):
        for scheduler, state in self._before.items():
            scheduler.__dict__.update(copy.deepcopy(state))

    def take(self):
        return {one: copy.deepcopy(_scheduler_state(one)) for one in self._before}

    @staticmethod
    def put_back(taken):
        for scheduler, state in taken.items():
            scheduler.__dict__.update(copy.deepcopy(state))


def _scheduler_state(scheduler):
    """Numbers and lists of numbers; not the optimizer, nor functions."""
    return {
        key: value
        for key, value in scheduler.__dict__.items()
        if isinstance(value, (int, float, bool, str, list, tuple, type(None)))
        and not callable(value)
    }
