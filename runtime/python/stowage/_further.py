# SPDX-License-Identifier: Apache-2.0
"""Further steps on the state of one training: other shapes of a batch, evaluations.

Each has a plan of its own, made when it is first needed and kept. The plans take turns in one
arena: when a turn begins, state moves to where that plan wants it, mostly within the device.
"""

import contextlib
import warnings

import torch

from . import _errors
from ._capture import CapturedStep
from ._plan import Plan
from ._runner import OtherStep, Runner
from ._sizes import parse_size
from ._tree import Tree


# Of one shape. A step that does something else each time has no plan.
_MOST_VARIANTS = 8


class Further:
    """Of one PlannedStep, `owner`: captured steps and runners by what runs and by its shape.

    A step may do one thing for some batches of a shape and another for others (a mask with padding
    or without): each is a variant, with a plan of its own.
    """

    def __init__(self):
        self._captured = {}  # by (what, shape): that of plan(), until it has a runner
        self._runners = {}  # by (what, shape): variants, the last one used first
        self._alone = set()  # what cannot work on the state of the others

    def adopt(self, what, tree, runner):
        """The first runner of all."""
        self._runners[what, tree.key()] = [runner]

    def is_alone(self, what, tree):
        return (what, tree.key()) in self._alone

    def count(self):
        """Plans that are kept."""
        return sum(len(variants) for variants in self._runners.values())

    def captured(self, owner, what, function, tree, trains=True):
        """Raises what CapturedStep raises."""
        key = (what, tree.key())
        if key not in self._captured:
            self._captured[key] = self._capture(owner, function, tree, trains)
        return self._captured[key]

    def step(self, owner, what, function, tree, trains=True):
        """One step by the plan for it, which is made where there is none.

        Raises CannotShare where a training step cannot work on the state of the others; what the
        step, its capture and its plan raise.
        """
        key = (what, tree.key())
        variants = self._runners.setdefault(key, [])
        other = None
        for position, runner in enumerate(variants):
            try:
                result = runner.step(tree)
            except OtherStep as error:
                other = error.error
                continue
            variants.insert(0, variants.pop(position))
            return result
        if other is not None:
            self._note_variant(owner, key, other)
        variants.insert(0, self._make(owner, key, function, tree, trains))
        return variants[0].step(tree)

    def end(self):
        """The first step has the state alone again."""
        for variants in self._runners.values():
            for runner in variants:
                if not runner.is_first:
                    runner.end()
        self._runners.clear()
        while self._captured:
            self._captured.popitem()[1].release()
        self._alone.clear()

    def _capture(self, owner, function, tree, trains):
        main = owner._captured
        if owner._runner is not None:
            main.call(owner._runner.handle.take_turn)
        return CapturedStep(
            function, owner._model, owner._optimizers, tree.args, tree.kwargs, owner._device,
            owner._changing_numbers, main=main, trains=trains)

    def _make(self, owner, key, function, tree, trains):
        main = owner._runner
        captured = self._captured.pop(key, None)
        try:
            if captured is None:
                captured = self._capture(owner, function, tree, trains)
            options = owner._options.replaced(budget=main.plan.budget)
            return Runner(Plan(captured, options), main)
        except (_errors.Unsupported, _errors.Infeasible) as error:
            if captured is not None:
                captured.release()
            # A budget in parts of the peak is another one for another shape.
            is_other = isinstance(error, _errors.Infeasible) and parse_size(
                owner._options.budget, "budget")[1]
            if not trains or not (is_other or "work on one state" in str(error)):
                raise
            self._alone.add(key)
            raise CannotShare from error

    def _note_variant(self, owner, key, error):
        if owner._new_shapes == "refuse" or len(self._runners[key]) >= _MOST_VARIANTS:
            raise error
        warnings.warn(
            f"a plan of its own is made for such batches, once, which takes seconds, because "
            f"{error}", stacklevel=5)


class CannotShare(Exception):  # noqa: N818 - for the package alone
    """A step that needs the state alone."""


@contextlib.contextmanager
def _in_eval(model):
    modes = [(one, one.training) for one in model.modules()]
    try:
        model.eval()
        yield
    finally:
        for module, trains in modes:
            module.training = trains


class PlannedEvaluation:
    """What `PlannedStep.evaluation` makes of a function."""

    def __init__(self, planned, function):
        self._planned = planned
        self._function = function

    def __call__(self, *args, **kwargs):
        """Results on the CPU, in the containers that the function returns."""
        planned = self._planned
        planned._refuse_inside_live("an evaluation")
        planned._refuse_pending("an evaluation")
        with _in_eval(planned._model):
            if not planned._is_running():
                return self._run_plainly(args, kwargs)
            if planned.ranks > 1:
                raise _errors.Unsupported(
                    "several ranks train, and an evaluation has no plan beside theirs: 'with "
                    "train_step.live() as model' evaluates on the CPU (on all ranks)")
            with planned._alone_on_this_thread("an evaluation"):
                return planned._further.step(planned, self, self._function,
                                             Tree((args, kwargs)), trains=False)

    def plan(self, *args, **kwargs):
        """The plan of an evaluation, without running it. The training step is captured before."""
        planned = self._planned
        if planned._captured is None:
            raise _errors.InvalidArgument(
                "an evaluation is planned beside a training step: call train_step.plan(batch) "
                "before")
        with _in_eval(planned._model):
            captured = planned._further.captured(planned, self, self._function,
                                                 Tree((args, kwargs)), False)
            return Plan(captured, planned._options)

    def _run_plainly(self, args, kwargs):
        self._planned._give_back()
        with torch.no_grad():
            result = Tree(self._function(*args, **kwargs))
        return result.fill([one.detach().cpu() for one in result.tensors])
