# SPDX-License-Identifier: Apache-2.0
"""What is different in a process while it traces a step.

- Each optimizer's step() says when it begins and ends; schedulers, averaged models and gradient
  scalers say that they are used.
- torch.utils.checkpoint runs its function as it is: what to recompute is the plan's matter.
- Setting the state of a random number generator is refused: a plan does not do it.
- Where no GPU is, torch.cuda does not look for one.
One thread traces at a time; other threads notice nothing.
"""

import contextlib
import functools
import threading

import torch
import torch.utils.checkpoint as checkpoint_module
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.optim.swa_utils import AveragedModel

from ._errors import Unsupported

_active = threading.local()


def current():
    """The trace that runs on this thread; None."""
    return getattr(_active, "trace", None)


def _before_optimizer(optimizer, args, kwargs):
    trace = current()
    if trace is not None:
        trace.begin_optimizer(optimizer, args, kwargs)


def _after_optimizer(optimizer, args, kwargs):
    trace = current()
    if trace is not None:
        trace.end_optimizer(optimizer)


register_optimizer_step_pre_hook(_before_optimizer)
register_optimizer_step_post_hook(_after_optimizer)


class _BypassedCheckpoint:
    """In the place of CheckpointFunction."""

    @staticmethod
    def apply(function, preserve_rng_state, *args):
        current().note_bypass("torch.utils.checkpoint")
        return function(*args)


def _bypassed_without_reentry(*args, **kwargs):
    current().note_bypass("torch.utils.checkpoint")
    yield


class _GuardedGenerator:
    """In the place of torch's default generator, for code that asks torch for it by name."""

    def __init__(self, generator):
        self._generator = generator

    def __getattr__(self, name):
        if name in ("manual_seed", "seed", "set_state"):
            raise Unsupported(
                f"the step calls {name} of torch's random number generator (manual_seed, "
                "set_rng_state or fork_rng), which a plan does not do: seed before the step; where "
                "this is checkpointing by hand, leave it to the plan, whose recomputed ops draw the "
                "same numbers"
            )
        return getattr(self._generator, name)


class _Patches:
    def __init__(self):
        self._undo = []

    def set(self, owner, name, value):
        self._undo.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def undo(self):
        while self._undo:
            owner, name, value = self._undo.pop()
            setattr(owner, name, value)


def _subclasses(kind):
    for one in kind.__subclasses__():
        yield one
        yield from _subclasses(one)


def _note_calls(patches, kind, name, check=None):
    """The trace knows of each object whose method is called, before that."""
    if name not in vars(kind):
        return
    method = vars(kind)[name]

    @functools.wraps(method)
    def noted(self, *args, **kwargs):
        trace = current()
        if trace is None:
            return method(self, *args, **kwargs)
        if check is not None:
            check(self, name, args)
        with trace.changing(self):
            return method(self, *args, **kwargs)

    patches.set(kind, name, noted)


def _check_scaler(scaler, name, args):
    if name != "step" or not scaler.is_enabled():
        return
    optimizer = args[0] if args else None
    if not getattr(optimizer, "_step_supports_amp_scaling", False):
        raise Unsupported(
            f"GradScaler asks on the host whether {type(optimizer).__name__} may step, and a plan "
            "cannot wait for the answer: make the optimizer with fused=True, which decides on the "
            "device, or train in bfloat16 without a scaler")


def _begin_scaler(scaler, device):
    """As torch does it, with tensors that exist: the scaler keeps them when the plan is left."""
    scaler._scale = torch.tensor(scaler._init_scale, dtype=torch.float32, device=device)
    scaler._growth_tracker = torch.tensor(
        scaler._init_growth_tracker, dtype=torch.int32, device=device)


def _patch(patches, has_gpu):
    patches.set(checkpoint_module, "CheckpointFunction", _BypassedCheckpoint)
    patches.set(checkpoint_module, "_checkpoint_without_reentrant_generator",
                _bypassed_without_reentry)
    guarded = _GuardedGenerator(torch.random.default_generator)
    patches.set(torch.random, "default_generator", guarded)
    for kind in (LRScheduler, *_subclasses(LRScheduler)):
        _note_calls(patches, kind, "step")
    _note_calls(patches, AveragedModel, "update_parameters")
    for name in ("scale", "unscale_", "step", "update"):
        _note_calls(patches, torch.amp.GradScaler, name, _check_scaler)
    patches.set(torch.amp.GradScaler, "_lazy_init_scale_growth_tracker", _begin_scaler)
    if not has_gpu:
        patches.set(torch.cuda, "_lazy_init", lambda: None)


@contextlib.contextmanager
def tracing(trace, has_gpu):
    """`trace` is told what happens on this thread."""
    patches = _Patches()
    _active.trace = trace
    try:
        _patch(patches, has_gpu)
        yield
    finally:
        patches.undo()
        _active.trace = None
