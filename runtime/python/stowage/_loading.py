# SPDX-License-Identifier: Apache-2.0
"""load_state_dict() of a model or an optimizer whose values are those of a planned training.

Torch's own method runs on stand-ins with memory; then the values go into the arena, and the
training goes on with the plan that it has.
"""

import copy
from collections import defaultdict

import torch

from ._reachable import tensors_in


def load_model(owner, module, call):
    """`call` loads into `module`, a part of the planned model. Nothing is taken when it raises."""
    captured, put = owner._captured, owner._runner.handle.put_values
    with owner.live():
        result = call()
        tensors = [*module.parameters(), *module.buffers()]
        values = [one.detach() for one in tensors]
    captured.call(put, tensors, values)
    return result


def load_optimizer(owner, optimizer, state_dict):
    """False where the state has another form than the one that the plan has: nothing was taken."""
    loaded = _load_into_stand_in(optimizer, state_dict)
    view = next(one for one in owner._captured.views if one.optimizer is optimizer)
    pairs = [(optimizer.state.get(parameter, {}), loaded.state.get(stand_in, {}))
             for group, other in zip(optimizer.param_groups, loaded.param_groups, strict=True)
             for parameter, stand_in in zip(group["params"], other["params"], strict=True)]
    has_others = any(not isinstance(one, torch.Tensor) for one in loaded.state)
    if has_others or not all(_are_alike(view, live, given) for live, given in pairs):
        return False
    tensors, values = [], []
    for live, given in pairs:
        for key, value in given.items():
            if not isinstance(value, torch.Tensor):
                live[key] = copy.copy(value)
            elif view.is_host_number(live[key]):
                live[key].copy_(value)
            else:
                tensors.append(live[key])
                values.append(value.cpu())
    owner._captured.call(owner._runner.handle.put_values, tensors, values)
    for group, other in zip(optimizer.param_groups, loaded.param_groups, strict=True):
        group.update({key: value for key, value in other.items() if key != "params"})
    return True


def _load_into_stand_in(optimizer, state_dict):
    """An optimizer like it, with parameters of no elements on the CPU, that loads instead of it."""
    stand_in = copy.copy(optimizer)
    stand_in.__dict__.pop("load_state_dict", None)
    stand_in.__dict__.pop("state_dict", None)
    stand_in.state = defaultdict(dict)
    stand_in.param_groups = [
        {**group, "params": [torch.empty(0, dtype=one.dtype) for one in group["params"]]}
        for group in optimizer.param_groups
    ]
    stand_in.load_state_dict(state_dict)
    return stand_in


def _are_alike(view, live, given):
    if list(live) != list(given):
        return False
    for key, value in given.items():
        held = live[key]
        if isinstance(held, torch.Tensor) != isinstance(value, torch.Tensor):
            return False
        if not isinstance(value, torch.Tensor) and any(tensors_in(value)):
            return False
        if not isinstance(value, torch.Tensor) or view.is_host_number(held):
            continue
        if (held.shape, held.dtype) != (value.shape, value.dtype):
            return False
    return True
