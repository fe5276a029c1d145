# SPDX-License-Identifier: Apache-2.0
"""Further steps on the state of one training: other shapes of a batch, evaluations.

Each has a plan of its own, made when it is first needed and kept. The plans take turns in one
arena: when a turn begins, state moves to where that plan wants it, mostly within the device.
"""

import torch

from . import _errors
from ._capture import CapturedStep
from ._plan import Plan
from ._runner import Runner
from ._sizes import parse_size
from ._tree import Tree


class Further:
    """Of one PlannedStep, `owner`: captured steps and runners by what runs and by its shape."""

    def __init__(self):
        self._captured = {}
        self._runners = {}
        self._alone = set()  # what cannot work on the state of the others

    def captured(self, owner, what, function, tree, trains=True):
        """Raises what CapturedStep raises."""
        key = (what, tree.key())
        if key not in self._captured:
            main = owner._captured
            if owner._runner is not None:
                main.call(owner._runner.handle.take_turn)
            self._captured[key] = CapturedStep(
                function, owner._model, owner._optimizers, tree.args, tree.kwargs, owner._device,
                owner._changing_numbers, main=main, trains=trains)
        return self._captured[key]

    def runner(self, owner, what, function, tree, trains=True):
        """None where a training step cannot work on the state of the others."""
        key = (what, tree.key())
        if key in self._runners:
            return self._runners[key]
        if key in self._alone:
            return None
        main = owner._runner
        try:
            captured = self.captured(owner, what, function, tree, trains)
            plan = Plan(captured, main.plan.budget, owner._host)
            self._runners[key] = Runner(plan, main)
        except (_errors.Unsupported, _errors.Infeasible) as error:
            captured = self._captured.pop(key, None)
            if captured is not None:
                captured.release()
            # A budget in parts of the peak is another one for another shape.
            is_other = isinstance(error, _errors.Infeasible) and parse_size(
                owner._budget, "budget")[1]
            if not trains or not (is_other or "work on one state" in str(error)):
                raise
            self._alone.add(key)
            return None
        return self._runners[key]

    def count(self):
        """Plans that are kept."""
        return len(self._runners)

    def end(self):
        """The first step has the state alone again."""
        while self._runners:
            self._runners.popitem()[1].end()
        while self._captured:
            self._captured.popitem()[1].release()
        self._alone.clear()


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
        modes = [(one, one.training) for one in planned._model.modules()]
        try:
            planned._model.eval()
            if not planned._is_running():
                return self._run_plainly(args, kwargs)
            tree = Tree((args, kwargs))
            return planned._further.runner(planned, self, self._function, tree, False).step(tree)
        finally:
            for module, trains in modes:
                module.training = trains

    def plan(self, *args, **kwargs):
        """The plan of an evaluation, without running it. The training step is captured before."""
        planned = self._planned
        if planned._captured is None:
            raise _errors.InvalidArgument(
                "an evaluation is planned beside a training step: call train_step.plan(batch) "
                "before")
        modes = [(one, one.training) for one in planned._model.modules()]
        try:
            planned._model.eval()
            captured = planned._further.captured(planned, self, self._function,
                                                 Tree((args, kwargs)), False)
            return Plan(captured, planned._budget, planned._host)
        finally:
            for module, trains in modes:
                module.training = trains

    def _run_plainly(self, args, kwargs):
        self._planned._give_back()
        with torch.no_grad():
            result = Tree(self._function(*args, **kwargs))
        return result.fill([one.detach().cpu() for one in result.tensors])
