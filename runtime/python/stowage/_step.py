# SPDX-License-Identifier: Apache-2.0
"""@stowage.step: a training step that runs by a plan."""

import functools
import json

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
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        model = self.captured.model
        with filling(model):
            self.handle = self.captured.call(_library.Runner, plan.handle, weights_of(model))

    def step(self, args, kwargs):
        captured = self.captured
        captured.check_unchanged()
        tree = Tree((args, kwargs))
        if tree.key() != captured.key:
            raise _errors.InvalidArgument(
                "the batch is not shaped like the one that the step was captured with: "
                + _describe_difference(captured.tree, tree))
        captured.tree = tree
        progress = captured.progress()
        inputs = [one.detach().cpu() for one in tree.tensors]
        captured.handle.set_input_values(inputs)
        try:
            reports = captured.call(self.handle.step, inputs)
        except BaseException:
            captured.put_progress_back(progress)
            raise
        return captured.result.fill(reports)

    def finish(self):
        self.captured.call(self.handle.finish)

    def facts(self):
        return json.loads(self.captured.call(self.handle.facts))


class PlannedStep(StateMethods):
    """What @stowage.step makes of a function. Calling it takes one planned step."""

    def __init__(self, function, model, optimizers, budget, host, device, changing_numbers):
        functools.update_wrapper(self, function)
        self._function = function
        self._model = model
        self._optimizers = optimizers
        self._budget = budget
        self._host = host
        self._device = device
        self._changing_numbers = changing_numbers
        self._captured = None
        self._runner = None

    def capture(self, *args, **kwargs):
        """The captured step, without a plan. Captures when it was not."""
        if self._captured is None:
            homes = Homes(self._model)
            self._captured = CapturedStep(self._function, self._model, self._optimizers, args,
                                          kwargs, self._device, self._changing_numbers)
            self._hold(homes)
        return self._captured

    def plan(self, *args, budget=None, host=None, **kwargs):
        """The plan for a batch like this one. Raises Infeasible with the smallest budget that works.

        budget, host: others than those of the step, to compare.
        """
        captured = self.capture(*args, **kwargs)
        return Plan(captured, budget or self._budget, host or self._host)

    def __call__(self, *args, **kwargs):
        self._refuse_inside_live("a step")
        self._begin(args, kwargs)
        return self._runner.step(args, kwargs)

    def _begin(self, args, kwargs):
        if self._runner is None:
            self._runner = Runner(self.plan(*args, **kwargs))
            self._load_pending()

    def facts(self):
        """Numbers of the running training: steps, peak_bytes, outside_bytes, trace_ns, ..."""
        return self._runner.facts() if self._runner is not None else {}


def step(model, optimizers, *, budget, host=None, device=None, changing_numbers=False):
    """Makes a training step one that runs by a plan within `budget`.

    model: torch.nn.Module. optimizers: one, or a list of all that the step steps.
    budget: bytes of device memory for the whole step, parameters and optimizer state included:
    "24GiB", or "60%peak" of what it needs unplanned. host: the most host memory for what is
    offloaded.
    device: "cuda" where there is a GPU, else "cpu"; or a GPU to plan for that is not here ("h200").
    changing_numbers: numbers that forward and backward compute with may change in later steps.
    The decorated function takes tensors in any containers and returns scalars, as tensors or
    otherwise.
    """
    listed = list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]
    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")

    def decorate(function):
        return PlannedStep(function, model, listed, budget, host, chosen, changing_numbers)

    return decorate


def _describe_difference(expected, found):
    if len(expected.tensors) != len(found.tensors):
        return f"found {len(found.tensors)} tensors, expected {len(expected.tensors)}"
    for name, a, b in zip(expected.names, expected.tensors, found.tensors, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype or a.stride() != b.stride():
            return (f"'{name}' is {list(b.shape)} of {b.dtype}, expected {list(a.shape)} of "
                    f"{a.dtype}")
    return "what is no tensor in it differs"
