# SPDX-License-Identifier: Apache-2.0
"""A training that torchrun starts, or the same by plain PyTorch in one process; for test_ranks.py.

ranks_trainer.py planned FOLDER WHAT: each rank writes its losses and what it comes to.
`train_plainly` holds a model for each rank and averages their gradients in rank order.
"""

import os
import sys

import torch
from torch import nn

STEPS = 6


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 24)
        self.inner = nn.Sequential(nn.Linear(24, 100), nn.GELU(), nn.Dropout(0.2), nn.Linear(100, 24),
                                   nn.BatchNorm1d(24))
        self.head = nn.Linear(24, 50, bias=False)

    def forward(self, tokens):
        return self.head(self.inner(self.embed(tokens)))


def make(rank):
    """Model, optimizer and scheduler; from now on the generator is the rank's."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(3)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    torch.manual_seed(100 + rank)
    return model, optimizer, scheduler


def batch_of(rank, step):
    generator = torch.Generator().manual_seed(1000 * rank + step)
    return torch.randint(0, 50, (16,), generator=generator)


def loss_of(model, tokens):
    loss = nn.functional.cross_entropy(model(tokens), (tokens + 1) % 50)
    loss.backward()
    return loss


def average(models):
    for parameters in zip(*(model.parameters() for model in models), strict=True):
        mean = parameters[0].grad.clone()
        for other in parameters[1:]:
            mean += other.grad
        mean /= len(models)
        for one in parameters:
            one.grad.copy_(mean)


def train_plainly(count, steps=STEPS):
    """By rank: losses, state_dict() of the model, of the optimizer."""
    ranks = [make(rank) for rank in range(count)]
    generators = []
    for rank in range(count):
        torch.manual_seed(100 + rank)
        generators.append(torch.get_rng_state())
    losses = [[] for _ in ranks]
    for step in range(steps):
        for rank, (model, _, _) in enumerate(ranks):
            torch.set_rng_state(generators[rank])
            losses[rank].append(loss_of(model, batch_of(rank, step)).item())
            generators[rank] = torch.get_rng_state()
        average([model for model, _, _ in ranks])
        for _, optimizer, scheduler in ranks:
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
    return [(losses[rank], model.state_dict(), optimizer.state_dict())
            for rank, (model, optimizer, _) in enumerate(ranks)]


def plan(rank, what):
    import stowage

    model, optimizer, scheduler = make(rank)
    if what == "other_values" and rank == 1:
        with torch.no_grad():
            model.head.weight.mul_(2)

    @stowage.step(model, optimizer, budget="60%peak", device="cpu")
    def train_step(tokens):
        loss = loss_of(model, tokens)
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        return loss

    train_step.optimizer = optimizer
    return train_step


def main(folder, what):
    rank = int(os.environ["RANK"])
    train_step = plan(rank, what)
    losses = []
    for step in range(STEPS):
        if what == "dies" and rank == 1 and step == 3:
            os._exit(9)
        if what == "shape" and rank == 1 and step == 3:
            train_step(batch_of(rank, step)[:8])
        if what == "rate" and step == 3:
            train_step.optimizer.param_groups[0]["lr"] *= 1 + rank
        if what == "leave" and step == 3:
            train_step.leave()
        if what == "resume" and step == 3:
            train_step.save(os.path.join(folder, "saved"))
            train_step.leave()
            torch.manual_seed(7)
            train_step = plan(rank, what)
            train_step.load(os.path.join(folder, "saved"), batch_of(rank, step))
        losses.append(train_step(batch_of(rank, step)).item())
    with train_step.live() as model:
        looked = {name: value.clone() for name, value in model.state_dict().items()}
    facts = train_step.facts()
    state = train_step.state_dict()
    torch.save({"losses": losses, "looked": looked, "model": state["model"],
                "optimizer": state["optimizer"], "facts": facts}, f"{folder}/rank{rank}.pt")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
