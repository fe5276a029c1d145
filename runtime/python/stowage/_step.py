# SPDX-License-Identifier: Apache-2.0
"""@stowage.step: a training step that runs by a plan."""

import contextlib
import functools
import threading
import warnings
import weakref

import torch

from . import _errors
from ._capture import CapturedStep
from ._further import CannotShare, Further, PlannedEvaluation
from ._homes import Homes
from ._options import PlanOptions
from ._plan import Plan
from ._runner import Runner
from ._state import StateMethods
from ._tree import Tree


_steps_of = weakref.WeakKeyDictionary()  # model -> the step that captured it last
_STEP = "step"  # what runs, for Further


class PlannedStep(StateMethods):
    """What @stowage.step makes of a function. Calling it takes one planned step."""

    def __init__(self, function, model, optimizers, options, device, changing_numbers, new_shapes,
                 ranks):
        functools.update_wrapper(self, function)
        self._function = function
        self._model = model
        self._optimizers = optimizers
        self._options = options
        self._device = device
        self._changing_numbers = changing_numbers
        self._new_shapes = new_shapes
        self.ranks = ranks
        self._shapes_seen = set()
        self._steps_before = 0
        self._captured = None
        self._runner = None
        self._further = Further()
        self._in_use = threading.Lock()

    def capture(self, *args, **kwargs):
        """The captured step, without a plan. Captures when it was not."""
        if self._captured is None:
            self._take_over()
            homes = Homes(self._model)
            self._captured = CapturedStep(self._function, self._model, self._optimizers, args,
                                          kwargs, self._device, self._changing_numbers,
                                          ranks=self.ranks)
            self._hold(homes)
            self._shapes_seen.add(self._captured.key)
        return self._captured

    def _take_over(self):
        """The model may still be that of an earlier planned step (a cell that runs again)."""
        of_model = _steps_of.get(self._model)
        earlier = of_model() if of_model is not None else None
        if earlier is not None and earlier is not self and earlier._captured is not None:
            if earlier._is_running():
                warnings.warn(
                    "an earlier planned training of this model ends here, as by its leave(); steps "
                    "of one model that take turns are planned anew each time", stacklevel=4)
            earlier.leave()
        _steps_of[self._model] = weakref.ref(self)

    def plan(self, *args, budget=None, host=None, allow=None, disk=None, **kwargs):
        """The plan for a batch like this one. Raises Infeasible with the smallest budget that works,
        and with what else would do.

        budget, host, allow, disk: others than those of the step, to compare.
        """
        captured = self.capture(*args, **kwargs)
        tree = Tree((args, kwargs))
        if tree.key() != captured.key:
            captured = self._further.captured(self, _STEP, self._function, tree)
        options = self._options.replaced(budget=budget, host=host, allow=allow, disk=disk)
        return Plan(captured, options, ways=True)

    def evaluation(self, function):
        """Makes of `function` an evaluation by a plan, on the state of this training.

            @train_step.evaluation
            def evaluate(batch):
                return model(**batch).logits

        It runs with the model in eval() and without gradients, within the same budget; nothing
        leaves the arena for it but what has no room beside its plan. The function takes tensors in
        any containers and returns tensors of any shape; they come back on the CPU. One plan for
        each shape of a batch, made when it first comes. Before the first training step, and after
        leave(), it runs as it is. Raises Unsupported for what no plan can hold, Infeasible,
        InvalidArgument for backward() in it.
        """
        return PlannedEvaluation(self, function)

    def __call__(self, *args, **kwargs):
        self._refuse_inside_live("a step")
        with self._alone_on_this_thread("a step"):
            return self._step(args, kwargs)

    @contextlib.contextmanager
    def _alone_on_this_thread(self, what):
        if not self._in_use.acquire(blocking=False):
            raise _errors.InvalidArgument(
                f"found {what} while another runs (on another thread, or in the step itself): one "
                "training takes one step at a time")
        try:
            yield
        finally:
            self._in_use.release()

    def _step(self, args, kwargs):
        tree = Tree((args, kwargs))
        if self._runner is None:
            if self._captured is not None and tree.key() != self._captured.key:
                self._capture_again(tree)
            self._begin(args, kwargs)
        if not self._further.is_alone(_STEP, tree):
            self._note_shape(tree)
            try:
                return self._further.step(self, _STEP, self._function, tree)
            except CannotShare:
                pass
        self._capture_again(tree)
        self._begin(args, kwargs)
        return self._runner.step(tree)

    def _note_shape(self, tree):
        if tree.key() in self._shapes_seen:
            return
        difference = _describe_difference(self._captured.tree, tree)
        if self._new_shapes == "refuse" or self.ranks > 1:
            why = "; several ranks have one shape (drop_last=True, padding)" if self.ranks > 1 else ""
            raise _errors.InvalidArgument(
                "the batch is not shaped like the one that the step was captured with: "
                f"{difference}{why}")
        self._shapes_seen.add(tree.key())
        warnings.warn(
            f"the batch has another shape ({difference}): a plan of its own is made, once, which "
            "takes seconds; batches of one shape (drop_last=True, padding to one length) need one "
            "plan, and new_shapes='refuse' makes this an error", stacklevel=3)

    def _capture_again(self, tree):
        """A plan that cannot work beside the others: the state waits on the host meanwhile."""
        self._note_shape(tree)
        homes = self._homes
        if self._runner is not None:
            self._steps_before += self._runner.facts()["steps"]
        self._give_back(to_homes=self._runner is None)
        self.capture(*tree.args, **tree.kwargs)
        self._homes = homes

    def _begin(self, args, kwargs):
        if self._runner is None:
            self._runner = Runner(self.plan(*args, **kwargs))
            self._further.adopt(_STEP, self._captured.tree, self._runner)
            self._load_pending()

    def facts(self):
        """Numbers of the running training: steps, plans, peak_bytes, outside_bytes, trace_ns, ..."""
        if self._runner is None:
            return {}
        facts = self._runner.facts()
        facts["steps"] += self._steps_before
        facts["plans"] = self._further.count()
        return facts


def step(model, optimizers, *, budget, host=None, allow=None, disk=None, verify_disk=False,
         device=None, changing_numbers=False, new_shapes="plan", ranks=None):
    """Makes a training step one that runs by a plan within `budget`.

    model: torch.nn.Module. optimizers: one, or a list of all that the step steps.
    budget: bytes of device memory for the whole step, parameters and optimizer state included:
    "24GiB", or "60%peak" of what it needs unplanned. host: the most host memory for what is
    offloaded.
    disk: a folder and bytes there for what the host has no room for: "/scratch:500GiB", or
    ("/scratch", "500GiB"). They are reserved from the first step on, in one file without a name.
    verify_disk: compares checksums of what is read there with what was written.
    allow: what the plan may do: "offload", "recompute", "in-place-reuse", "reorder", "row-blocks",
    or "none"; several words in a list, or with commas; default: all. Unless it is named,
    "host-step" is not done; alone it comes on top of all others. It lets updates run on the host:
    on a GPU their bits are those of the CPU's kernels.
    device: "cuda" where there is a GPU, else "cpu"; or a GPU to plan for that is not here ("h200").
    changing_numbers: numbers that forward and backward compute with may change in later steps.
    new_shapes: "plan" makes a plan for each shape of a batch, when it first comes; "refuse" raises
    InvalidArgument for another one.
    ranks: processes that train together, each with its part of parameters, gradients and optimizer
    state, and with batches of its own; default: all that torchrun started. All begin with the same
    model, and make the same calls. 1: this process trains alone.
    The decorated function takes tensors in any containers and returns scalars, as tensors or
    otherwise.
    """
    if new_shapes not in ("plan", "refuse"):
        raise _errors.InvalidArgument(f"new_shapes: found {new_shapes!r}, expected 'plan' or 'refuse'")
    if hasattr(model, "_orig_mod"):
        raise _errors.Unsupported(
            "the model is from torch.compile, whose kernels a plan cannot hold: give the model "
            "itself (model._orig_mod), and call it in the step")
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        raise _errors.Unsupported(
            "the model is in DistributedDataParallel: give the model itself (model.module), and call "
            "it in the step; processes that torchrun started average their gradients")
    listed = list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]
    chosen = _device_of(device)
    options = PlanOptions(budget, host, allow, disk, verify_disk)
    together = _ranks_of(ranks)

    def decorate(function):
        return PlannedStep(function, model, listed, options, chosen, changing_numbers, new_shapes,
                           together)

    return decorate


def _device_of(device):
    """As the library names it."""
    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    name = str(device).lower()
    kind, _, index = name.partition(":")
    if kind == "cuda" and index:
        here = torch.cuda.current_device() if torch.cuda.is_available() else 0
        if index != str(here):
            raise _errors.InvalidArgument(
                f"device: found '{device}', expected 'cuda', the current GPU ({here}): choose another "
                "by torch.cuda.set_device() or CUDA_VISIBLE_DEVICES before")
        return kind
    return name


def _ranks_of(ranks):
    """How many processes train together."""
    if ranks == 1:
        return 1
    try:
        launched = torch.ops.stowage.launched_ranks()
    except RuntimeError as error:
        raise _errors.from_library(error) or error from None
    if ranks not in (None, launched):
        raise _errors.InvalidArgument(
            f"ranks: found {ranks!r}, expected {launched}, as many processes as the launcher started"
            + ("" if launched == 1 else ", or 1 to train alone"))
    return launched


def _describe_difference(expected, found):
    if len(expected.tensors) != len(found.tensors):
        return f"found {len(found.tensors)} tensors, expected {len(expected.tensors)}"
    for name, a, b in zip(expected.names, expected.tensors, found.tensors, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype or a.stride() != b.stride():
            return (f"'{name.split('.')[-1]}' is {list(b.shape)} of {b.dtype}, expected {list(a.shape)} of "
                    f"{a.dtype}")
    return "what is no tensor in it differs"
