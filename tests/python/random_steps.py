# SPDX-License-Identifier: Apache-2.0
"""Training steps made at random from a seed: models, optimizers, schedulers, and host code.

`case_of(seed)` gives what planned_training.py takes, and batches; the same for each call.
"""

import dataclasses
import random

import torch
from planned_training import Training
from torch import nn
from torch.optim import lr_scheduler

ROWS, WIDTH = 6, 8


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    ids: torch.Tensor
    y: torch.Tensor


class Block(nn.Module):
    def __init__(self, draw):
        super().__init__()
        kind = draw.choice(["linear", "conv", "norm", "layernorm", "tied", "attention", "gru"])
        self.kind = kind
        self.linear = nn.Linear(WIDTH, WIDTH, bias=draw.random() < 0.7)
        self.drop = nn.Dropout(draw.choice([0.0, 0.2]))
        self.act = draw.choice([torch.relu, torch.tanh, nn.functional.gelu, torch.sigmoid])
        if kind == "conv":
            self.conv = nn.Conv1d(1, 1, 3, padding=1)
        if kind == "norm":
            self.norm = nn.BatchNorm1d(WIDTH)
        if kind == "layernorm":
            self.norm = nn.LayerNorm(WIDTH)
        if kind == "attention":
            self.mix = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        if kind == "gru":
            self.mix = nn.GRUCell(WIDTH, WIDTH)
        self.register_buffer("seen", torch.zeros(WIDTH), persistent=draw.random() < 0.5)
        self.updates_seen = draw.random() < 0.4
        self.residual = draw.random() < 0.5

    def forward(self, x):
        before = x
        x = self.linear(x)
        if self.kind == "conv":
            x = self.conv(x.unsqueeze(1)).squeeze(1)
        elif self.kind in ("norm", "layernorm"):
            x = self.norm(x)
        elif self.kind == "tied":
            x = x @ self.linear.weight
        elif self.kind == "attention":
            x = self.mix(x[None], x[None], x[None], need_weights=False)[0][0]
        elif self.kind == "gru":
            x = self.mix(x, before)
        if self.updates_seen:
            with torch.no_grad():
                self.seen.lerp_(x.float().mean(0), 0.1)
            x = x - self.seen
        x = self.drop(self.act(x))
        return x + before if self.residual else x


class Model(nn.Module):
    def __init__(self, draw):
        super().__init__()
        self.embed = nn.Embedding(11, WIDTH)
        self.blocks = nn.ModuleList(Block(draw) for _ in range(draw.randint(1, 4)))
        self.last = nn.Linear(WIDTH, 11)
        if draw.random() < 0.3:
            self.last.weight = self.embed.weight
        if draw.random() < 0.3:
            self.blocks[0].linear.weight.requires_grad_(False)
        self.cached = None
        self.caches = draw.random() < 0.3

    def forward(self, x, ids):
        x = x + self.embed(ids)
        if self.caches:
            if self.cached is None:
                self.cached = torch.linspace(0.5, 1.5, WIDTH)
            x = x * self.cached
        for block in self.blocks:
            x = block(x)
        return self.last(x)


def _optimizers(draw, model):
    parameters = [one for one in model.parameters() if one.requires_grad]
    makers = [
        lambda group: torch.optim.SGD(group, lr=0.05, momentum=draw.choice([0, 0.9])),
        lambda group: torch.optim.AdamW(group, lr=1e-2, amsgrad=draw.random() < 0.3),
        lambda group: torch.optim.Adam(group, lr=1e-2, foreach=draw.choice([None, True, False])),
        lambda group: torch.optim.AdamW(group, lr=1e-2, fused=True),
        lambda group: torch.optim.RMSprop(group, lr=1e-3), lambda group: torch.optim.NAdam(group),
        lambda group: torch.optim.Adagrad(group), lambda group: torch.optim.Adamax(group),
        lambda group: torch.optim.AdamW(group, lr=torch.tensor(1e-2)),
    ]
    if draw.random() < 0.25 and len(parameters) > 2:
        return [draw.choice(makers)(parameters[::2]), draw.choice(makers)(parameters[1::2])]
    if draw.random() < 0.4:
        half = len(parameters) // 2
        groups = [{"params": parameters[:half], "weight_decay": 0.1}, {"params": parameters[half:]}]
        return [draw.choice(makers)(groups)]
    return [draw.choice(makers)(parameters)]


def _scheduler(draw, optimizer):
    make = draw.choice([
        None, lambda one: lr_scheduler.LambdaLR(one, lambda step: 1 / (1 + step)),
        lambda one: lr_scheduler.CosineAnnealingLR(one, T_max=5),
        lambda one: lr_scheduler.StepLR(one, 2, 0.5),
        lambda one: lr_scheduler.LinearLR(one, 0.1, 1.0, 4)])
    return make(optimizer) if make else None


def _loss(draw):
    kind = draw.choice(["cross", "square", "smooth"])

    def loss(logits, y):
        if kind == "cross":
            return nn.functional.cross_entropy(logits, y)
        target = nn.functional.one_hot(y, 11).to(logits.dtype)
        square = nn.functional.mse_loss if kind == "square" else nn.functional.smooth_l1_loss
        return square(logits, target)

    return loss


class Loop:
    """The step of one training, a method of an object that keeps things."""

    def __init__(self, draw, model):
        self.model = model
        self.optimizers = _optimizers(draw, model)
        self.scheduler = _scheduler(draw, self.optimizers[0])
        self.scheduler_inside = draw.random() < 0.5
        self.loss = _loss(draw)
        self.parts = draw.choice([1, 1, 2, 3])
        self.clip = draw.choice([None, None, "norm", "value", "foreach"])
        self.set_to_none = draw.random() < 0.7
        self.zero_first = draw.random() < 0.3
        self.returns = draw.choice(["loss", "item", "float", "dict", "none"])
        self.autocast = draw.random() < 0.2
        self.penalty = draw.random() < 0.2
        self.noise = draw.random() < 0.2
        self.average = None
        if draw.random() < 0.3:
            self.average = [one.detach().clone() for one in model.parameters()]
            self.average_by = draw.choice(["lerp", "copy"])
        self.logs = draw.random() < 0.5
        self.log = []
        self.count = 0

    def forward(self, x, ids, y):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            loss = self.loss(self.model(x, ids), y)
            if self.penalty:
                loss = loss + 1e-3 * sum(one.square().sum() for one in self.model.parameters())
        return loss

    def zero(self):
        for one in self.optimizers:
            one.zero_grad(set_to_none=self.set_to_none)

    def step(self, batch):
        self.count += 1
        x, ids, y = _taken_apart(batch)
        if self.zero_first:
            self.zero()
        total = 0.0
        for a, b, c in zip(x.chunk(self.parts), ids.chunk(self.parts), y.chunk(self.parts),
                           strict=True):
            loss = self.forward(a, b, c) / self.parts
            total = total + loss.detach()
            loss.backward()
        self.change_gradients()
        for one in self.optimizers:
            one.step()
        if self.scheduler is not None and self.scheduler_inside:
            self.scheduler.step()
        if not self.zero_first:
            self.zero()
        if self.average is not None:
            self.move_average()
        if self.logs and self.count % 3 == 0:
            self.log.append((self.count, total.item()))
        return {"loss": lambda: total, "item": total.item, "float": lambda: float(total),
                "none": lambda: None,
                "dict": lambda: {"loss": total, "twice": [total * 2, self.count]}}[self.returns]()

    def change_gradients(self):
        parameters = [one for one in self.model.parameters() if one.grad is not None]
        if self.noise:
            for one in parameters:
                one.grad.add_(torch.randn_like(one.grad), alpha=1e-3)
        if self.clip == "value":
            nn.utils.clip_grad_value_(parameters, 0.05)
        elif self.clip is not None:
            nn.utils.clip_grad_norm_(parameters, 0.5, foreach=True if self.clip != "norm" else None)

    @torch.no_grad()
    def move_average(self):
        for kept, one in zip(self.average, self.model.parameters(), strict=True):
            if self.average_by == "lerp":
                kept.lerp_(one, 0.2)
            else:
                kept.copy_(0.9 * kept + 0.1 * one)


def _taken_apart(batch):
    if isinstance(batch, dict):
        return batch["x"], batch["ids"], batch["y"]
    return (batch.x, batch.ids, batch.y) if isinstance(batch, Batch) else batch


def case_of(seed):
    """(case, makes a model, batches)."""

    def make_model():
        return Model(random.Random(seed))

    def case(model):
        loop = Loop(random.Random(seed + 1), model)
        after = None
        if loop.scheduler is not None and not loop.scheduler_inside:
            after = lambda position, loss: loop.scheduler.step()  # noqa: E731
        kept = {"log": loop.log, "count": _Count(loop)}
        if loop.average is not None:
            kept["average"] = loop.average
        if loop.scheduler is not None:
            kept["scheduler"] = loop.scheduler
        return Training(loop.optimizers, loop.step, after, kept)

    return case, make_model, lambda count: list(_batches(seed, count))


class _Count:
    def __init__(self, loop):
        self._loop = loop

    def state_dict(self):
        return self._loop.count


def _batches(seed, count):
    form = random.Random(seed + 2).choice(["tuple", "list", "dict", "dataclass"])
    is_transposed = random.Random(seed + 3).random() < 0.3
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        x = torch.randn(WIDTH, ROWS, generator=generator).t()
        x = x if is_transposed else x.contiguous()
        ids = torch.randint(0, 11, (ROWS,), generator=generator, dtype=torch.int64)
        y = torch.randint(0, 11, (ROWS,), generator=generator)
        yield ({"tuple": (x, ids, y), "list": [x, ids, y], "dict": {"x": x, "ids": ids, "y": y},
                "dataclass": Batch(x, ids, y)}[form],)
