# SPDX-License-Identifier: Apache-2.0
"""Trains one architecture plainly and by a plan, and compares all that is left, bit for bit."""

import time

import torch

import stowage

from . import table_of_signals  # noqa: F401 - adds its rows
from .table import TABLE

STEPS = 6
BUDGET = "50%peak"


def _begin(name):
    torch.manual_seed(0)
    case = TABLE[name]()
    case.model.train()
    optimizer = torch.optim.AdamW(case.model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))

    def train_step(batch):
        loss = case.model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(case.model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    torch.manual_seed(5)
    return case, optimizer, scheduler, train_step


def _train(case, scheduler, train_step):
    generator = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(STEPS):
        losses.append(train_step(case.batch(generator)).detach().clone())
        scheduler.step()
    return losses


def _same(a, b):
    """Bit for bit: a NaN equals itself."""
    if not isinstance(a, torch.Tensor):
        return a == b
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    as_bytes = [one.detach().contiguous().reshape(-1).view(torch.uint8) for one in (a, b)]
    return torch.equal(*as_bytes)


def _differences(case, other, optimizer, other_optimizer):
    """Names of all tensors that differ."""
    found = []
    for kind in ("named_parameters", "named_buffers"):
        pairs = zip(getattr(case.model, kind)(), getattr(other.model, kind)(), strict=True)
        found += [name for (name, a), (_, b) in pairs if not _same(a, b)]
    names = {one: name for name, one in case.model.named_parameters()}
    for a, b in zip(case.model.parameters(), other.model.parameters(), strict=True):
        first, second = optimizer.state.get(a, {}), other_optimizer.state.get(b, {})
        if first.keys() != second.keys():
            found.append(f"{names[a]}: state {sorted(first)} against {sorted(second)}")
            continue
        found += [f"{names[a]}.{key}" for key in first if not _same(first[key], second[key])]
    return found


def check_on_cpu(name, budget=BUDGET):
    """Six steps at half of the peak, against the same without us. A dictionary for JSON.

    Where no plan fits into that (one op alone needs more), in the smallest budget that works.
    Raises what a plain training raises: then the table's row is wrong, not the package.
    """
    case, optimizer, scheduler, train_step = _begin(name)
    losses = _train(case, scheduler, train_step)
    drawn = torch.get_rng_state()
    began = time.monotonic()
    other, other_optimizer, other_scheduler, other_step = _begin(name)
    made = {"captured_for_cpu": False, "budget": budget}
    planned = stowage.step(other.model, other_optimizer, budget=budget, device="cpu")(other_step)
    try:
        planned.plan(other.batch(torch.Generator().manual_seed(1)))
        made["captured_for_cpu"] = True
        found = _train(other, other_scheduler, planned)
    except stowage.Infeasible as error:
        if budget != BUDGET:
            return {**made, "result": "infeasible", "message": str(error)}
        planned.leave()
        return check_on_cpu(name, f"{error.smallest_budget}B")
    except stowage.Error as error:
        return {**made, "result": "refused", "message": str(error)}
    made["assumptions"] = dict(planned._captured.assumptions)
    made["same_rng"] = torch.equal(drawn, torch.get_rng_state())
    planned.leave()
    made["seconds"] = round(time.monotonic() - began, 2)
    if not all(_same(a, b) for a, b in zip(losses, found, strict=True)):
        return {**made, "result": "wrong", "message": f"losses {losses} against {found}"}
    different = _differences(case, other, optimizer, other_optimizer)
    if different or not made["same_rng"]:
        return {**made, "result": "wrong", "message": f"differ: {different}"}
    finite = all(bool(torch.isfinite(one)) for one in losses)
    return {**made, "result": "equal" if finite else "equal, not finite"}


def check_for_gpu(name, device="h200"):
    """Captured and planned for a GPU that is not here. In a process of its own."""
    torch.ops.stowage.plan_without_gpu(device)
    case, optimizer, _, train_step = _begin(name)
    planned = stowage.step(case.model, optimizer, budget="100%peak", device=device)(train_step)
    began = time.monotonic()
    try:
        planned.plan(case.batch(torch.Generator().manual_seed(1)))
    except stowage.Infeasible as error:
        return {"captured_for_gpu": True, "message_for_gpu": str(error)}
    except stowage.Error as error:
        return {"captured_for_gpu": False, "message_for_gpu": str(error)}
    return {"captured_for_gpu": True, "seconds_for_gpu": round(time.monotonic() - began, 2)}
