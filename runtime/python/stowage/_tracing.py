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
import gc
import threading
import types

import torch
import torch.utils.checkpoint as checkpoint_module
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.optim.swa_utils import AveragedModel
from torch.overrides import TorchFunctionMode

from . import _library
from ._errors import Unsupported

_MOST_READ = 4096  # elements of one tolist()
_active = threading.local()


class _PausedCollector:
    """What the collector finalized while a step is traced (a loader, another training) would be
    traced, too. One for all threads."""

    def __init__(self):
        self._lock = threading.Lock()
        self._count = 0
        self._was_enabled = False

    def __enter__(self):
        with self._lock:
            if self._count == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._count += 1

    def __exit__(self, *error):
        with self._lock:
            self._count -= 1
            if self._count == 0 and self._was_enabled:
                gc.enable()


paused_collector = _PausedCollector()


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
        self._undo.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, value)

    def undo(self):
        while self._undo:
            owner, name, value = self._undo.pop()
            if value is None:
                delattr(owner, name)  # it was inherited
            else:
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
        with trace.changing(self, on_host=check is None):
            return method(self, *args, **kwargs)

    patches.set(kind, name, noted)


def _check_scaler(scaler, name, args):
    if scaler.is_enabled():
        raise Unsupported(
            "GradScaler decides by the gradients of each step whether and by how much it updates, "
            "which a plan cannot follow: train in bfloat16, which needs no scaler, or make it with "
            "GradScaler(enabled=False)")


def _made_on_host(factory, is_method):
    """torch.tensor and its like copy Python's numbers to a device where nothing sees it: while a
    step is traced they make the tensor on the host, and a copy to the device that is seen."""

    @functools.wraps(factory)
    def make(*args, **options):
        if current() is None:
            return factory(*args, **options)
        device = options.pop("device", None)
        if device is None:
            device = args[0].device if is_method else torch.get_default_device()
        position = 1 if is_method else 0
        data = args[position] if len(args) > position else options.get("data")
        if _is_of_the_step(data):
            made = _stacked(data).detach().to(device=device, dtype=options.get("dtype"))
            return made.requires_grad_() if options.get("requires_grad") else made
        if torch.device(device).type == "cpu" or isinstance(data, torch.Tensor):
            return factory(*args, device=device, **options)
        requires_grad = options.pop("requires_grad", False)
        made = factory(*args, device="cpu", **options).to(device)
        return made.requires_grad_() if requires_grad else made

    return make


def _is_of_the_step(data):
    """A list, or a list of such, of nothing but single elements that the step computes?"""
    if not isinstance(data, (list, tuple)) or not data:
        return False
    holds_no_memory = current().handle.holds_no_memory
    return all(one.dim() == 0 and holds_no_memory(one) if isinstance(one, torch.Tensor)
               else _is_of_the_step(one) for one in data)


def _stacked(data):
    return torch.stack([one if isinstance(one, torch.Tensor) else _stacked(one) for one in data])


def _patch_tensor_methods(patches):
    """tolist() reads memory."""
    tolist = torch.Tensor.tolist

    def read_each(self):
        try:
            return tolist(self)
        except RuntimeError:
            if current() is None or self.numel() > _MOST_READ:
                raise
        return self.item() if self.dim() == 0 else [read_each(one) for one in self.unbind()]

    patches.set(torch.Tensor, "tolist", read_each)


class _IndexByHost(TorchFunctionMode):
    """For steps of another device: lists in an index become tensors where nothing sees it.

    No patch of __getitem__: from then on, and for ever, Python would take a tensor for a sequence,
    and torch.tensor([loss, loss]) fails.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in _INDEXING and args[0].device.type != "cpu":
            args = (args[0], _lists_on_host(args[1]), *args[2:])
        return function(*args, **(kwargs or {}))


_INDEXING = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)


def _lists_on_host(index):
    if isinstance(index, tuple):
        return tuple(map(_lists_on_host, index))
    is_numbers = isinstance(index, list) and all(isinstance(one, (int, bool)) for one in index)
    return torch.tensor(index) if is_numbers and index else index


def _describe_missing_gpu(patches, device):
    """What code asks of a GPU to choose its ops."""
    capability = _library.ENVIRONMENT["capabilities"].get(device)
    if capability is None:
        return
    major, minor = divmod(capability, 10)
    found = types.SimpleNamespace(name=device, major=major, minor=minor)
    patches.set(torch.cuda, "get_device_capability", lambda *args, **kwargs: (major, minor))
    patches.set(torch.cuda, "get_device_properties", lambda *args, **kwargs: found)


def _patch(patches, has_gpu, device):
    patches.set(checkpoint_module, "CheckpointFunction", _BypassedCheckpoint)
    for name in ("_checkpoint_without_reentrant_generator",
                 "_checkpoint_without_reentrant_generator_impl"):  # from torch 2.15 on
        if hasattr(checkpoint_module, name):
            patches.set(checkpoint_module, name, _bypassed_without_reentry)
    guarded = _GuardedGenerator(torch.random.default_generator)
    patches.set(torch.random, "default_generator", guarded)
    for kind in (LRScheduler, *_subclasses(LRScheduler)):
        _note_calls(patches, kind, "step")
    _note_calls(patches, AveragedModel, "update_parameters")
    for name in ("scale", "unscale_", "step", "update"):
        _note_calls(patches, torch.amp.GradScaler, name, _check_scaler)
    for owner, name in ((torch, "tensor"), (torch, "as_tensor"), (torch.Tensor, "new_tensor")):
        patches.set(owner, name, _made_on_host(getattr(owner, name), owner is not torch))
    _patch_tensor_methods(patches)
    if not has_gpu:
        patches.set(torch.cuda, "_lazy_init", lambda: None)
        _describe_missing_gpu(patches, device)


@contextlib.contextmanager
def tracing(trace, has_gpu):
    """`trace` is told what happens on this thread."""
    patches = _Patches()
    _active.trace = trace
    try:
        _patch(patches, has_gpu, trace.device)
        # Scripted functions would be fused into kernels that nothing sees.
        indexing = contextlib.nullcontext() if trace.device == "cpu" else _IndexByHost()
        with torch.jit.optimized_execution(False), indexing:
            yield
    finally:
        patches.undo()
        _active.trace = None
