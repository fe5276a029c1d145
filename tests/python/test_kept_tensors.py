# SPDX-License-Identifier: Apache-2.0
"""Tensors of one step that its Python code keeps for later ones: refused, never other bits."""

import planned_training as tools  # noqa: F401 - sets torch up
import pytest
import torch

import stowage


class _Keeps:
    def __init__(self):
        self.kept = None

    def first_batch(self, x):
        if self.kept is None:
            self.kept = x
        return x - self.kept

    def first_mean(self, x):
        if self.kept is None:
            self.kept = x.mean(0)
        return x - self.kept

    def batch_before(self, x):
        before, self.kept = self.kept, x
        return x if before is None else x - before

    def not_read_again(self, x):
        self.kept = x.mean(0)
        return x - self.kept


def train(how, planned):
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    keeps = _Keeps()

    def step(x):
        loss = model(getattr(keeps, how)(x)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    if planned:
        step = stowage.step(model, optimizer, budget="100%peak", device="cpu")(step)
    generator = torch.Generator().manual_seed(1)
    return [step(torch.randn(4, 8, generator=generator)).item() for _ in range(5)]


@pytest.mark.parametrize("how", ["first_batch", "first_mean", "batch_before"])
def test_what_an_earlier_step_made_is_refused(how):
    with pytest.raises((stowage.Unsupported, stowage.StepChanged)):
        train(how, planned=True)


def test_what_no_later_step_reads_is_no_matter():
    assert train("not_read_again", planned=True) == train("not_read_again", planned=False)
