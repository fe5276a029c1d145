# SPDX-License-Identifier: Apache-2.0
"""Optimizers of torch.optim that no plan can hold, each with a way out.

Other optimizers need no entry: what cannot be captured of them is refused where it happens.
"""

import sys

import torch

from ._errors import Unsupported

_REASONS = (
    (torch.optim.LBFGS,
     "calls the loss as often as it wants, which a plan cannot hold: use another optimizer, or "
     "train with LBFGS without a plan"),
    (torch.optim.SparseAdam,
     "takes sparse gradients, whose size depends on the batch: use Embedding(sparse=False) and "
     "Adam"),
    (torch.optim.Adafactor,
     "reads norms of weights and updates on the host in each step (item()), which a plan cannot "
     "wait for: use another optimizer (AdamW; Muon for matrices holds less state), or train with "
     "Adafactor without a plan"),
)


def check_optimizer(optimizer, step_count):
    """Raises Unsupported. step_count(parameter): how many steps the optimizer counts; None."""
    for kind, reason in _REASONS:
        if isinstance(optimizer, kind):
            raise Unsupported(f"torch.optim.{kind.__name__} {reason}")
    _check_adafactor_of_transformers(optimizer)
    if isinstance(optimizer, torch.optim.RAdam):
        _check_radam(optimizer, step_count)


def _check_adafactor_of_transformers(optimizer):
    kind = getattr(sys.modules.get("transformers.optimization"), "Adafactor", ())
    if isinstance(optimizer, kind) and any(
            group["scale_parameter"] for group in optimizer.param_groups):
        raise Unsupported(
            "transformers.Adafactor with scale_parameter=True decides on the host by the norms of "
            "the weights, which a plan cannot wait for: use Adafactor(parameters, lr=1e-3, "
            "scale_parameter=False, relative_step=False), as Trainer's optim='adafactor' does")


def _check_radam(optimizer, step_count):
    """Its loop leaves the rectification out of the first steps: another update than later ones."""
    for group in optimizer.param_groups:
        runs_loop = group["foreach"] is False or (
            group["foreach"] is None and group["params"][0].device.type == "cpu")
        if group["capturable"] or not runs_loop:
            continue
        changes_at = _first_rectified_step(group["betas"][1])
        counts = [step_count(parameter) or 0 for parameter in group["params"]]
        if min(counts) + 1 < changes_at:
            raise Unsupported(
                f"torch.optim.RAdam computes another update from its step {changes_at} on, and has "
                f"counted {int(min(counts))}: use RAdam(foreach=True), which computes both in each "
                f"step, or take {changes_at - 1 - int(min(counts))} steps before the planned ones")


def _first_rectified_step(beta2):
    """The first step whose rho_t (Liu et al. 2020, algorithm 2) is above 5."""
    rho_inf = 2 / (1 - beta2) - 1
    step = 1
    while rho_inf > 5 and rho_inf - 2 * step * beta2**step / (1 - beta2**step) <= 5:
        step += 1
    return step
