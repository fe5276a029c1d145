# SPDX-License-Identifier: Apache-2.0
"""A plan as its maker sees it."""

import json
import time

from . import _library, _notebook, _progress
from ._sizes import format_size, parse_size

_MOST_PLACES = 3  # of assumptions that are listed
_MOST_ANSWERS = 4  # of each
_QUICK = 1.0  # seconds that printing may take


class Plan:
    """A verified schedule of a captured step within a budget.

    Printing it says what it does; a notebook shows memory over the step as well. Bytes and
    nanoseconds throughout.
    """

    def __init__(self, captured, options, ways=False):
        """options: PlanOptions. ways: an Infeasible says what else would do, in a few times as long."""
        request = options.request(ways)
        size, of_peak = parse_size(options.budget, "budget")
        self.captured = captured
        shown = options.budget if of_peak else format_size(size)
        begin = time.monotonic()
        with _progress.phase(f"planning for {shown}"):
            self.handle = captured.call(_library.Plan, captured.handle, request)
        self._seconds = time.monotonic() - begin
        self._facts = json.loads(self.handle.summary_json())
        self._smallest = None

    @property
    def budget(self):
        """Bytes of the arena."""
        return self._facts["budget_bytes"]

    @property
    def peak(self):
        """The highest byte of the arena that a step uses."""
        return self._facts["predicted"]["peak_bytes"]

    @property
    def step_ns(self):
        """Predicted time of a step."""
        return self._facts["predicted"]["step_ns"]

    @property
    def unplanned(self):
        """Bytes that the step needs at once when nothing is moved or recomputed."""
        return self._facts.get("unplanned_bytes", 0)

    @property
    def smallest_budget(self):
        """Bytes of the smallest arena that works for this step; takes about as long as planning.

        0 where the limit of host memory is what keeps it from being smaller. The step must be
        captured still.
        """
        if self._smallest is None:
            with _progress.phase("finding the smallest budget"):
                self._smallest = self.captured.call(self.handle.smallest_budget)
        return self._smallest

    @property
    def assumptions(self):
        """What the step's code asked about its inputs: "file:line, in f" -> the answers.

        A batch with other answers may need another plan.
        """
        return {place: list(answers) for place, answers in self.captured.assumptions.items()}

    def to_dict(self):
        """The numbers of the command line's --json."""
        return json.loads(self.handle.summary_json())

    def save(self, path):
        """Writes the plan file, which the program `stowage` reads: the whole file or none."""
        self.captured.call(self.handle.save, str(path))

    def smallest_budget_text(self):
        """In words; who prints a plan does not wait for it. "" when it cannot be found any more."""
        if self._smallest is None and not self.handle.is_captured():
            return ""
        if self._smallest is None and self._seconds > _QUICK:
            return "plan.smallest_budget finds the smallest budget that works"
        if self.smallest_budget == 0:
            return "as the host's memory allows"
        return f"{format_size(self.smallest_budget)} is the smallest budget that works"

    def assumption_lines(self):
        """The first ones, and how many more there are."""
        places = list(self.assumptions.items())
        lines = []
        for place, answers in places[:_MOST_PLACES]:
            lines.append(", ".join(f"{one:g}" for one in answers[:_MOST_ANSWERS]) + f" at {place}")
        if len(places) > len(lines):
            lines.append(f"{len(places) - len(lines)} more: plan.assumptions")
        return lines

    def __str__(self):
        text = self.handle.summary_text()
        smallest = self.smallest_budget_text()
        if smallest:
            text += f"smallest   {smallest}\n"
        for what in sorted(self.captured.bypassed):
            text += f"bypassed   {what}: the plan decides what to recompute\n"
        for line in self.assumption_lines():
            text += f"assumes    {line}\n"
        return text

    def __repr__(self):
        return f"<stowage.Plan: {self.peak} of {self.budget} bytes>"

    def _repr_html_(self):
        return _notebook.plan_html(self)
