# SPDX-License-Identifier: Apache-2.0
"""Steps by a plan."""

import json
import os

import torch

from . import _errors, _library
from ._without_memory import filling, weights_of


class Runner:
    """Steps of one plan. Parameters and optimizer state are in its arena until `leave`.

    main: the Runner on whose state this one works, for a plan of a further step.
    """

    def __init__(self, plan, main=None):
        self.plan = plan
        self.captured = plan.captured
        self._first = main or self
        self._ended = None  # what a step raised
        model = self.captured.model
        if main is not None:
            self.handle = self.captured.call(_library.Runner, plan.handle, [], main.handle, 0)
            return
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        with filling(model):
            self.handle = self.captured.call(_library.Runner, plan.handle, weights_of(model), None,
                                             _bytes_of_host())

    def step(self, tree):
        """One step on arguments that are shaped as captured."""
        captured = self.captured
        ended = self._first._ended
        if ended is not None:
            raise _errors.InvalidArgument(
                f"the planned training ended when a step raised {type(ended).__name__}: call "
                "leave(), which gives model and optimizers the state of the step before; the next "
                "step is captured anew") from ended
        captured.check_unchanged()
        captured.tree = tree
        progress = captured.progress()
        inputs = [one.detach().cpu() for one in tree.tensors]
        captured.handle.set_input_values(inputs)
        try:
            reports = captured.call(self.handle.step, inputs)
        except BaseException as error:
            captured.put_progress_back(progress)
            self._first._ended = error
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
