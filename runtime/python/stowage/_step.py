# SPDX-License-Identifier: Apache-2.0
"""@stowage.step: a training step that runs by a plan."""

import functools
import json
import warnings

import torch

from . import _errors, _library
from ._capture import CapturedStep
from ._homes import Homes
from ._plan import Plan
from ._state import StateMethods
from ._tree import Tree
from ._without_memory import filling, weights_of


class Runner:
    """Steps of one plan. Parameters and optimizer state are in its arena until `leave`."""

    def __init__(self, plan):
        self.plan = plan
        self.captured = plan.captured
        self._ended = None  # what a step raised
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        model = self.captured.model
        with filling(model):
            self.handle = self.captured.call(_library.Runner, plan.handle, weights_of(model))

    def step(self, tree):
        """One step on arguments that are shaped as captured."""
        captured = self.captured
        if self._ended is not None:
            raise _errors.InvalidArgument(
                f"the planned training ended when a step raised {type(self._ended).__name__}: call "
                "leave(), which gives model and optimizers the state of the step before; the next "
                "step is captured anew") from self._ended
        captured.check_unchanged()
        captured.tree = tree
        progress = captured.progress()
        inputs = [one.detach().cpu() for one in tree.tensors]
        captured.handle.set_input_values(inputs)
        try:
            reports = captured.call(self.handle.step, inputs)
        except BaseException as error:
            captured.put_progress_back(progress)
            self._ended = error
            raise
        return captured.result.fill(reports)

    def finish(self):
        self.captured.call(self.handle.finish)

    def facts(self):
        return json.loads(self.captured.call(self.handle.facts))


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
        return Plan(captured, budget or self._budget, host or self._host)

    def __call__(self, *args, **kwargs):
        self._refuse_inside_live("a step")
        tree = Tree((args, kwargs))
        if self._captured is not None and tree.key() != self._captured.key:
            self._change_shape(tree)
        self._begin(args, kwargs)
        return self._runner.step(tree)

    def _change_shape(self, tree):
        """Another plan: the state waits on the host meanwhile."""
        difference = _describe_difference(self._captured.tree, tree)
        if self._new_shapes == "refuse":
            raise _errors.InvalidArgument(
                f"the batch is not shaped like the one that the step was captured with: {difference}")
        if tree.key() not in self._shapes_seen:
            self._shapes_seen.add(tree.key())
            warnings.warn(
                f"the batch has another shape ({difference}): the step is captured and planned anew, "
                "which takes seconds; batches of one shape (drop_last=True, padding to one length) "
                "need one plan, and new_shapes='refuse' makes this an error", stacklevel=3)
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
        """Numbers of the running training: steps, peak_bytes, outside_bytes, trace_ns, ..."""
        if self._runner is None:
            return {}
        facts = self._runner.facts()
        facts["steps"] += self._steps_before
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
    new_shapes: "plan" captures and plans anew for a batch of another shape; "refuse" raises
    InvalidArgument.
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
