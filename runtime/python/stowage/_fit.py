# SPDX-License-Identifier: Apache-2.0
"""How large a batch fits: the question before a machine is rented."""

import torch

from . import _errors
from ._capture import CapturedStep
from ._html import table
from ._plan import Plan
from ._sizes import format_size, parse_size
from ._tree import Tree

_MOST = 2**20


class Fit:
    """What `fit` found.

    largest: the largest size that fits; 0 when none does. rows: one dict for each size that was
    tried and fits, in order: "size", "tokens", "peak_bytes", "step_ns", "ns_per_token".
    next_budget: bytes with which one more would fit; None where the search ended at its limit.
    """

    def __init__(self, vary, budget, rows, next_budget):
        self.vary = vary
        self.budget = budget
        self.rows = rows
        self.largest = max((row["size"] for row in rows), default=0)
        self.next_budget = next_budget

    def _repr_html_(self):
        rows = [[str(row["size"]), format_size(row["peak_bytes"]), f"{row['step_ns'] / 1e6:.2f} ms",
                 f"{row['ns_per_token'] / 1e3:.2f} us"] for row in self.rows]
        last = [[line] for line in str(self).splitlines()[1 + len(rows):]]
        return table(rows, [self.vary, "peak", "step", "per token"]) + table(last)

    def __str__(self):
        lines = [f"{self.vary:>10}  {'peak':>12}  {'step':>12}  per token"]
        for row in self.rows:
            lines.append(
                f"{row['size']:>10}  {format_size(row['peak_bytes']):>12}  "
                f"{row['step_ns'] / 1e6:>9.2f} ms  {row['ns_per_token'] / 1e3:.2f} us")
        found = f"largest that fits in {self.budget}: {self.largest}" if self.rows else (
            f"nothing fits in {self.budget}")
        lines.append(found)
        if self.next_budget is not None:
            lines.append(f"{self.largest + 1} would take {format_size(self.next_budget)}")
        return "\n".join(lines)


def fit(train_step, *args, budget=None, vary="batch", most=4096, **kwargs):
    """The largest batch, or the longest sequence, that fits in a budget, with the time per token.

    train_step: what @stowage.step made; it must not be running. args, kwargs: an example of its
    arguments; tensors of other sizes are made from it by repeating its rows (its positions).
    budget: as for `step`, in bytes; default: the step's own. vary: "batch" changes the first
    dimension, "sequence" the second one, of all tensors that have the example's size there.
    most: the largest size that is tried.
    Sizes are captured and planned, not run: no GPU is needed for a step of another device.
    Raises Unsupported and whatever the step itself raises.
    """
    if vary not in ("batch", "sequence"):
        raise _errors.InvalidArgument(f"vary: found {vary!r}, expected 'batch' or 'sequence'")
    if most < 1 or most > _MOST:
        raise _errors.InvalidArgument(f"most: found {most}, expected 1 to {_MOST}")
    if parse_size(budget or train_step._budget, "budget")[1]:
        raise _errors.InvalidArgument(
            "found a budget as a share of the peak, which grows with the batch, expected bytes: "
            "fit(train_step, batch, budget='24GiB')")
    if train_step._runner is not None:
        raise _errors.InvalidArgument(
            "the step is running, expected one that is not: call its leave() before, or fit another")
    train_step._give_back()
    search = _Search(train_step, args, kwargs, budget, vary)
    largest = search.find(most)
    return Fit(vary, budget or train_step._budget, search.rows(), search.budget_of(largest + 1))


class _Search:
    def __init__(self, train_step, args, kwargs, budget, vary):
        self._step = train_step
        self._tree = Tree((args, kwargs))
        self._budget = budget or train_step._budget
        self._dimension = 0 if vary == "batch" else 1
        self._size = _size_of(self._tree, self._dimension, vary)
        self._found = {}  # by size: a row, or the Infeasible

    def find(self, most):
        """Doubles while it fits, then halves the distance."""
        fits, fails = 0, 1
        while fails <= most and self._try(fails):
            fits, fails = fails, min(2 * fails, most) if fails < most else most + 1
        while fails - fits > 1:
            middle = (fits + fails) // 2
            if self._try(middle):
                fits = middle
            else:
                fails = middle
        return fits

    def rows(self):
        return [row for _, row in sorted(self._found.items()) if isinstance(row, dict)]

    def budget_of(self, size):
        found = self._found.get(size)
        return found.smallest_budget if isinstance(found, _errors.Infeasible) else None

    def _try(self, size):
        if size not in self._found:
            self._found[size] = self._plan(size)
        return isinstance(self._found[size], dict)

    def _plan(self, size):
        tensors = [_resized(one, self._dimension, self._size, size) for one in self._tree.tensors]
        args, kwargs = self._tree.fill(tensors)
        step = self._step
        captured = CapturedStep(step._function, step._model, step._optimizers, args, kwargs,
                                step._device, step._changing_numbers)
        try:
            plan = Plan(captured, self._budget, step._host)
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
    """Elements of the first two dimensions of the first tensor."""
    count = 1
    for size in tensors[0].shape[:2]:
        count *= size
    return count
