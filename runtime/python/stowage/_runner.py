# SPDX-License-Identifier: Apache-2.0
"""Steps by a plan."""

import json
import os

import torch

from . import _errors, _library, _progress
from ._without_memory import filling, weights_of


class OtherStep(Exception):  # noqa: N818 - for the package alone
    """The step would do something else than its plan. Nothing of it has run."""

    def __init__(self, error):
        super().__init__(str(error))
        self.error = error


class Runner:
    """Steps of one plan. Parameters and optimizer state are in its arena until `leave`.

    main: the Runner on whose state this one works, for a plan of a further step.
    """

    def __init__(self, plan, main=None):
        self.plan = plan
        self.captured = plan.captured
        self._first = main or self
        self.is_first = main is None
        self._process = os.getpid()
        self._ended = None  # what a step raised
        model = self.captured.model
        if main is not None:
            self.handle = self.captured.call(_library.Runner, plan.handle, [], main.handle, 0)
            return
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        with filling(model), _progress.phase("beginning the planned training"):
            self.handle = self.captured.call(_library.Runner, plan.handle, weights_of(model), None,
                                             _bytes_of_host())

    def step(self, tree):
        """One step on arguments that are shaped as captured.

        Raises OtherStep, and has done nothing, where the step would be another one; what the step
        raises, and its errors, when nothing can follow.
        """
        captured = self.captured
        if os.getpid() != self._process:
            raise _errors.InvalidArgument(
                "a planned step was called in a forked process, which has none of its threads: "
                "train in the process that began")
        ended = self._first._ended
        if ended is not None:
            raise _errors.InvalidArgument(
                f"the planned training ended when a step raised {type(ended).__name__}: call "
                "leave(), which gives model and optimizers the state of the step before, or "
                "load(folder), or discard(); the next step is captured anew") from ended
        captured.check_unchanged()
        tree_before, captured.tree = captured.tree, tree
        progress = captured.progress()
        inputs = [one.detach().cpu() for one in tree.tensors]
        captured.handle.set_input_values(inputs)
        is_other = not _are_same(tree.plain(), tree_before.plain())
        try:
            reports = captured.call(self.handle.step, inputs, is_other)
        except BaseException as error:
            captured.put_progress_back(progress)
            if self.handle.is_stopped():
                self._first._ended = error
            elif isinstance(error, _errors.StepChanged):
                captured.tree = tree_before
                raise OtherStep(error) from error
            raise
        return captured.result.fill(reports)

    def finish(self):
        self.captured.call(self.handle.finish)

    def end(self):
        """Of a further one: the training goes on without it."""
        self.handle.end()
        self.captured.release()

    def facts(self):
        return json.loads(self.captured.call(self.handle.facts))


def _bytes_of_host():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _are_same(some, others):
    """Are values that are no tensors equal, as far as they can be compared?"""
    if some.keys() != others.keys():
        return False
    for key, value in some.items():
        other = others[key]
        if value is other:
            continue
        try:
            if type(value) is not type(other) or not bool(value == other):
                return False
        except Exception:  # noqa: BLE001 - theirs, whatever it is
            return False
    return True
