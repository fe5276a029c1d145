# SPDX-License-Identifier: Apache-2.0
"""How large a batch fits: the question before a machine is rented."""

import torch

from . import _errors, _notebook, _progress
from ._capture import CapturedStep
from ._plan import Plan
from ._sizes import format_duration, format_size, parse_size
from ._tree import Tree

_MOST = 2**20


class Fit:
    """What `fit` found. Printing it, or showing it in a notebook, lists the rows.

    largest: the largest size that fits; 0 when none does.
    rows: one dict for each size that was tried and fits, in order: "size", "tokens", "peak_bytes",
    "step_ns", "ns_per_token".
    larger: the same for the largest sizes that fit in larger budgets ("budget_bytes"), and nothing
    but size 0 where none does.
    next_size: the size that follows. next_budget: bytes in which it would fit; None where the search
    ended at its limit, or where it lacks host memory (next_host says how much it would take).
    """

    def __init__(self, vary, budget, search, larger, unit):
        own = parse_size(budget, "budget")[0]
        self.vary = vary
        self.budget = budget
        self.rows = search.rows(own)
        self.larger = larger
        self.unit = unit  # "token", or "example" for images and the like
        self.largest = max((row["size"] for row in self.rows), default=0)
        self.is_limit = self.largest == search.last
        self.next_size = search.size_after(self.largest)
        lacking = search.lacking(self.next_size, own)
        self.next_budget = lacking.get("device")
        self.next_host = lacking.get("host")

    def to_dict(self):
        """What `stowage fit --json` answers for an example model."""
        facts = {"vary": self.vary, "budget_bytes": parse_size(self.budget, "budget")[0],
                 "largest": self.largest, "unit": self.unit, "rows": self.rows,
                 "larger": self.larger}
        if self.next_budget is not None:
            facts["next_budget_bytes"] = self.next_budget
        if self.next_host is not None:
            facts["next_host_bytes"] = self.next_host
        return facts

    def heading(self):
        return ("budget", self.vary, "peak", "step", f"per {self.unit}")

    def cells(self):
        """Of the table, as text."""
        own = self._own_budget()
        cells = [(own, *_numbers(row)) for row in self.rows]
        return cells + [(format_size(row["budget_bytes"]), *_numbers(row)) for row in self.larger]

    def words(self):
        """The answer in sentences."""
        budget = self._own_budget()
        words = [f"largest {self.vary} that fits in {budget}: {self.largest}" if self.rows else
                 f"nothing fits in {budget}"]
        if self.is_limit:
            words[0] += ", the most that was tried"
        if self.next_budget is not None:
            words.append(f"{self.next_size} would take {format_size(self.next_budget)}")
        if self.next_host is not None:
            words.append(
                f"{self.next_size} would take {format_size(self.next_host)} of host memory")
        return words

    def _own_budget(self):
        return format_size(parse_size(self.budget, "budget")[0])

    def __str__(self):
        lines = [_line(self.heading()), *(_line(row) for row in self.cells()), *self.words()]
        return "\n".join(lines)

    def __repr__(self):
        return f"<stowage.Fit: {self.vary} {self.largest} in {self._own_budget()}>"

    def _repr_html_(self):
        return _notebook.fit_html(self)


def _numbers(row):
    if row["size"] == 0:
        return "nothing fits", "", "", ""
    return (str(row["size"]), format_size(row["peak_bytes"]), format_duration(row["step_ns"]),
            format_duration(round(row["ns_per_token"])))


def _line(cells):
    return "".join(f"{cell:>{14 if i else 12}}" for i, cell in enumerate(cells)).rstrip()


def fit(train_step, *args, budget=None, vary="batch", most=4096, multiple_of=1, larger=(1.25, 1.5),
        **kwargs):
    """The largest batch, or the longest sequence, that fits in a budget, with the time per token.

    train_step: what @stowage.step made; it must not be running. args, kwargs: an example of its
    arguments; tensors of other sizes are made from it by repeating its rows (its positions).
    budget: as for `step`, in bytes; default: the step's own, as are host, allow and disk. vary: "batch" changes the first
    dimension, "sequence" the second one, of all tensors that have the example's size there.
    most: the largest size that is tried; multiple_of: only multiples of it are, 2 or more where a
    model cannot train on one row. larger: budgets, as multiples, to say the same of.
    Sizes are captured and planned, not run: no GPU is needed for a step of another device.
    Raises Unsupported and whatever the step itself raises.
    """
    budget = budget or train_step._options.budget
    if vary not in ("batch", "sequence"):
        raise _errors.InvalidArgument(f"vary: found {vary!r}, expected 'batch' or 'sequence'")
    if most < 1 or most > _MOST:
        raise _errors.InvalidArgument(f"most: found {most}, expected 1 to {_MOST}")
    if multiple_of < 1 or multiple_of > most:
        raise _errors.InvalidArgument(
            f"multiple_of: found {multiple_of}, expected 1 to {most}, the most that is tried")
    if any(factor <= 1 for factor in larger):
        raise _errors.InvalidArgument(f"larger: found {larger!r}, expected numbers above 1")
    own, of_peak = parse_size(budget, "budget")
    if of_peak:
        raise _errors.InvalidArgument(
            "found a budget as a share of the peak, which grows with the batch, expected bytes: "
            "fit(train_step, batch, budget='24GiB')")
    if train_step._runner is not None:
        raise _errors.InvalidArgument(
            "the step is running, expected one that is not: call its leave() before, or fit another")
    train_step._give_back()
    sizes = _Sizes(train_step, args, kwargs, vary)
    search = FitSearch(sizes.plan, most, multiple_of)
    search.find(own)
    beyond = [search.row_with(int(own * factor)) for factor in sorted(larger)]
    return Fit(vary, budget, search, beyond, sizes.unit)


class FitSearch:
    """The largest size for budgets, by as few plans as possible. Written like
    tools/planning/fit_search.h, which has a test that both find the same.

    plan_for(size, budget): a row, or an Infeasible. What fits also fits in more, and every
    smaller size does.
    """

    def __init__(self, plan_for, most, multiple_of=1):
        self._plan_for = plan_for
        self._step = multiple_of
        self.last = most // multiple_of * multiple_of
        self._found = {}  # (size, budget) -> row or Infeasible

    def find(self, budget):
        """Begins with what other budgets have told. Doubles while sizes fit, then halves."""
        step, beyond = self._step, self.last + self._step
        fits, fails = 0, beyond
        for (size, of), found in self._found.items():
            infeasible = isinstance(found, _errors.Infeasible)
            is_told = infeasible and found.space == "device"
            if is_told and found.smallest_budget <= budget or not infeasible and of <= budget:
                fits = max(fits, size)
            elif is_told or infeasible and of >= budget:
                fails = min(fails, size)
        while fails == beyond and fits < self.last:
            size = min(max(2 * fits, step), self.last)
            if self._try(size, budget):
                fits = size
            else:
                fails = size
        while fails - fits > step:
            middle = (fits + fails) // (2 * step) * step
            if self._try(middle, budget):
                fits = middle
            else:
                fails = middle
        return fits

    def rows(self, budget):
        return [row for (_, of), row in sorted(self._found.items(), key=lambda one: one[0])
                if of == budget and isinstance(row, dict)]

    def row_with(self, budget):
        """The row of the largest size, with its budget."""
        largest = self.find(budget)
        while largest > 0 and not self._try(largest, budget):
            largest -= self._step
        return {"budget_bytes": budget, **self._found.get((largest, budget), {"size": 0})}

    def size_after(self, size):
        return size + self._step

    def lacking(self, size, budget):
        """{space: bytes that `size` would take}; empty when it was not tried."""
        found = self._found.get((size, budget))
        if not isinstance(found, _errors.Infeasible):
            return {}
        return {found.space: found.smallest_budget}

    def _try(self, size, budget):
        if (size, budget) not in self._found:
            self._found[(size, budget)] = self._plan_for(size, budget)
        return isinstance(self._found[(size, budget)], dict)


class _Sizes:
    """Plans of the step with arguments of other sizes."""

    def __init__(self, train_step, args, kwargs, vary):
        self._step = train_step
        self._tree = Tree((args, kwargs))
        self._vary = vary
        self._dimension = 0 if vary == "batch" else 1
        self._size = _size_of(self._tree, self._dimension, vary)
        self.unit = "token" if self._tree.tensors[0].dim() in (2, 3) else "example"

    def plan(self, size, budget):
        tensors = [_resized(one, self._dimension, self._size, size) for one in self._tree.tensors]
        args, kwargs = self._tree.fill(tensors)
        step = self._step
        with _progress.phase(f"{self._vary} {size}"):
            try:
                captured = CapturedStep(step._function, step._model, step._optimizers, args, kwargs,
                                        step._device, step._changing_numbers)
            except Exception as error:
                if size != self._size and hasattr(error, "add_note"):  # Python 3.11
                    error.add_note(
                        f"stowage.fit tried a {self._vary} of {size}: where the model takes no such "
                        "size, most= and multiple_of= limit what is tried")
                raise
            try:
                plan = Plan(captured, step._options.replaced(budget=budget))
            except _errors.Infeasible as error:
                return error
            finally:
                captured.release()
        tokens = _tokens_of(tensors)
        return {"size": size, "tokens": tokens, "peak_bytes": plan.peak, "step_ns": plan.step_ns,
                "ns_per_token": plan.step_ns / tokens}


def _size_of(tree, dimension, vary):
    for tensor in tree.tensors:
        if tensor.dim() > dimension:
            return tensor.shape[dimension]
    raise _errors.InvalidArgument(
        f"found no tensor with {dimension + 1} dimensions among the arguments, expected one whose "
        f"size is the {vary}'s")


def _resized(tensor, dimension, before, after):
    """The tensor with `after` rows where it has `before`."""
    if tensor.dim() <= dimension or tensor.shape[dimension] != before:
        return tensor
    return tensor.index_select(dimension, torch.arange(after, device=tensor.device) % before)


def _tokens_of(tensors):
    """Elements of the first two dimensions of the first tensor; of images and the like, examples."""
    sizes = tensors[0].shape[:2] if tensors[0].dim() in (2, 3) else tensors[0].shape[:1]
    count = 1
    for size in sizes:
        count *= size
    return count
