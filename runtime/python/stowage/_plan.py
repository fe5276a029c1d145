# SPDX-License-Identifier: Apache-2.0
"""A plan as its maker sees it."""

import json

from . import _errors, _library, _progress
from ._html import bars, table
from ._sizes import format_size, parse_size

# Of assumptions, when a plan is printed.
_MOST_LINES = 3
_MOST_ANSWERS = 4


class Plan:
    """A verified schedule of a captured step within a budget.

    Printing it says what it does. Bytes and nanoseconds throughout.
    """

    def __init__(self, captured, budget, host=None):
        size, of_peak = parse_size(budget, "budget")
        limit, host_of_peak = (-1, False) if host is None else parse_size(host, "host")
        if host_of_peak:
            raise _errors.InvalidArgument(
                f"host: found {host!r}, expected bytes as a number or as '96GiB'")
        self.captured = captured
        shown = budget if of_peak else format_size(size)
        with _progress.phase(f"planning for {shown}"):
            self.handle = captured.call(_library.Plan, captured.handle, size, of_peak, limit)
        self._facts = json.loads(self.handle.summary_json())

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
    def assumptions(self):
        """What the step's code asked about its inputs: "file:line, in f" -> the answers. A batch
        with other answers may need another plan."""
        return {place: list(answers) for place, answers in self.captured.assumptions.items()}

    def to_dict(self):
        """The numbers of the command line's --json."""
        return json.loads(self.handle.summary_json())

    def save(self, path):
        """Writes the plan file, which the program `stowage` reads: the whole file or none."""
        self.captured.call(self.handle.save, str(path))

    def __str__(self):
        text = self.handle.summary_text()
        for what in sorted(self.captured.bypassed):
            text += f"bypassed   {what}: the plan decides what to recompute\n"
        assumptions = self.assumptions
        for place in list(assumptions)[:_MOST_LINES]:
            answers = ", ".join(f"{one:g}" for one in assumptions[place][:_MOST_ANSWERS])
            text += f"assumes    {answers} at {place}\n"
        if len(assumptions) > _MOST_LINES:
            text += f"assumes    {len(assumptions) - _MOST_LINES} more: plan.assumptions\n"
        return text

    def _repr_html_(self):
        rows = [line.split(None, 1) for line in str(self).splitlines() if line.strip()]
        sizes = {"unplanned": self.unplanned, "budget": self.budget, "peak": self.peak}
        return bars(sizes) + table(rows)

    def __repr__(self):
        return f"<stowage.Plan: {self.peak} of {self.budget} bytes>"
