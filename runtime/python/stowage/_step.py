# SPDX-License-Identifier: Apache-2.0
"""@stowage.step: a training step that runs by a plan."""

import functools
import warnings

import torch

from . import _errors
from ._capture import CapturedStep
from ._further import Further, PlannedEvaluation
from ._homes import Homes
from ._plan import Plan
from ._runner import Runner
from ._state import StateMethods
from ._tree import Tree


class PlannedStep(StateMethods):
    """What @stowage.step makes of a function. Calling it takes one planned step."""

    def __init__(self, function, model, optimizers, budget, host, device, changing_numbers,
                 new_shapes):
        functools.update_wrapper(self, function)
        self._function = function
        self._model = model
        self._optimizers = optimizers
        self._budget = budget
        self._host = host
        self._device = device
        self._changing_numbers = changing_numbers
        self._new_shapes = new_shapes
        self._shapes_seen = set()
        self._steps_before = 0
        self._captured = None
        self._runner = None
        self._further = Further()

    def capture(self, *args, **kwargs):
        """The captured step, without a plan. Captures when it was not."""
        if self._captured is None:
            homes = Homes(self._model)
            self._captured = CapturedStep(self._function, self._model, self._optimizers, args,
                                          kwargs, self._device, self._changing_numbers)
            self._hold(homes)
            self._shapes_seen.add(self._captured.key)
        return self._captured

    def plan(self, *args, budget=None, host=None, **kwargs):
        """The plan for a batch like this one. Raises Infeasible with the smallest budget that works.

        budget, host: others than those of the step, to compare.
        """
        captured = self.capture(*args, **kwargs)
        tree = Tree((args, kwargs))
        if tree.key() != captured.key:
            captured = self._further.captured(self, "step", self._function, tree)
        return Plan(captured, budget or self._budget, host or self._host)

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
        tree = Tree((args, kwargs))
        runner = self._runner_of(tree)
        if runner is None:
            if self._captured is not None and tree.key() != self._captured.key:
                self._capture_again(tree)
            self._begin(args, kwargs)
            runner = self._runner
        return runner.step(tree)

    def _runner_of(self, tree):
        """The runner of a batch of this shape, if there can be one beside others."""
        if self._runner is None:
            return None
        key = tree.key()
        if key == self._captured.key:
            return self._runner
        self._note_shape(tree)
        return self._further.runner(self, "step", self._function, tree)

    def _note_shape(self, tree):
        if tree.key() in self._shapes_seen:
            return
        difference = _describe_difference(self._captured.tree, tree)
        if self._new_shapes == "refuse":
            raise _errors.InvalidArgument(
                f"the batch is not shaped like the one that the step was captured with: {difference}")
        self._shapes_seen.add(tree.key())
        warnings.warn(
            f"the batch has another shape ({difference}): a plan of its own is made, once, which "
            "takes seconds; batches of one shape (drop_last=True, padding to one length) need one "
            "plan, and new_shapes='refuse' makes this an error", stacklevel=4)

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
            self._load_pending()

    def facts(self):
        """Numbers of the running training: steps, plans, peak_bytes, outside_bytes, trace_ns, ..."""
        if self._runner is None:
            return {}
        facts = self._runner.facts()
        facts["steps"] += self._steps_before
        facts["plans"] = 1 + self._further.count()
        return facts


def step(model, optimizers, *, budget, host=None, device=None, changing_numbers=False,
         new_shapes="plan"):
    """Makes a training step one that runs by a plan within `budget`.

    model: torch.nn.Module. optimizers: one, or a list of all that the step steps.
    budget: bytes of device memory for the whole step, parameters and optimizer state included:
    "24GiB", or "60%peak" of what it needs unplanned. host: the most host memory for what is
    offloaded.
    device: "cuda" where there is a GPU, else "cpu"; or a GPU to plan for that is not here ("h200").
    changing_numbers: numbers that forward and backward compute with may change in later steps.
    new_shapes: "plan" makes a plan for each shape of a batch, when it first comes; "refuse" raises
    InvalidArgument for another one.
    The decorated function takes tensors in any containers and returns scalars, as tensors or
    otherwise.
    """
    if new_shapes not in ("plan", "refuse"):
        raise _errors.InvalidArgument(f"new_shapes: found {new_shapes!r}, expected 'plan' or 'refuse'")
    listed = list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]
    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")

    def decorate(function):
        return PlannedStep(function, model, listed, budget, host, chosen, changing_numbers,
                           new_shapes)

    return decorate


def _describe_difference(expected, found):
    if len(expected.tensors) != len(found.tensors):
        return f"found {len(found.tensors)} tensors, expected {len(expected.tensors)}"
    for name, a, b in zip(expected.names, expected.tensors, found.tensors, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype or a.stride() != b.stride():
            return (f"'{name.split('.')[-1]}' is {list(b.shape)} of {b.dtype}, expected {list(a.shape)} of "
                    f"{a.dtype}")
    return "what is no tensor in it differs"
