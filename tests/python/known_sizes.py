# SPDX-License-Identifier: Apache-2.0
"""Steps in which the size of a result follows from the values of their batch, and their training."""

import dataclasses

import torch

import stowage

torch.set_num_threads(1)
CLASSES = 20
IGNORED = -100


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(CLASSES, 8)
        self.last = torch.nn.Linear(8, CLASSES)

    def forward(self, ids):
        return self.last(self.embedding(ids))


def mask_as_index(model, ids, labels):
    chosen = labels != IGNORED
    return torch.nn.functional.cross_entropy(model(ids)[chosen], labels[chosen])


def masked_select(model, ids, labels):
    return model(ids).masked_select((labels != IGNORED)[..., None]).square().mean()


def where(model, ids, labels):
    row, column = torch.where(labels != IGNORED)
    return torch.nn.functional.cross_entropy(model(ids)[row, column], labels[row, column])


def assign_by_mask(model, ids, labels):
    chosen = labels != IGNORED
    weight = torch.zeros(labels.shape, device=labels.device)
    weight[chosen] = labels[chosen] / CLASSES
    return (model(ids).mean(-1) * weight).square().mean()


def repeat_interleave(model, ids, labels):
    return model(ids).sum(1).repeat_interleave((labels != IGNORED).sum(-1), 0).square().mean()


def one_hot(model, ids, labels):
    hot = torch.nn.functional.one_hot(labels.clamp(min=0))
    return (model(ids)[..., :1] * hot).square().mean()


def bincount(model, ids, labels):
    return (model(ids).mean() * torch.bincount(labels.clamp(min=0).reshape(-1))).square().mean()


def unique(model, ids, labels):
    values, inverse, counts = labels.unique(return_inverse=True, return_counts=True)
    weight = values.clamp(min=0) * counts / CLASSES
    return (model(ids).mean(-1) * weight[inverse]).square().mean()


def tensor_of_elements(model, ids, labels):
    first = torch.tensor([one.max() + 1 for one in labels], device=ids.device)
    return (model(ids).mean((1, 2)) * first).square().mean()


def ctc(model, ids, labels):
    chosen = labels > 0
    logs = model(ids).log_softmax(-1, dtype=torch.float32).transpose(0, 1)
    lengths = torch.full_like(ids[:, 0], ids.shape[1])
    return torch.nn.functional.ctc_loss(
        logs, labels.masked_select(chosen), lengths, chosen.sum(-1), zero_infinity=True)


CASES = [mask_as_index, masked_select, where, assign_by_mask, repeat_interleave, one_hot, bincount,
         unique, ctc]


def make_batch(seed, count=9, largest=CLASSES - 1):
    """`count` labels at random places, from the largest down."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.full((21,), IGNORED)
    labels[torch.randperm(21, generator=generator)[:count]] = largest - torch.arange(count) % 13
    return torch.randint(0, CLASSES, (3, 7), generator=generator), labels.reshape(3, 7)


def make_ctc_batch(seed, lengths=(2, 4, 3)):
    """Rows of as many labels, in other places each time."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.full((3, 7), IGNORED)
    for row, length in enumerate(lengths):
        places = torch.randperm(7, generator=generator)[:length]
        labels[row, places] = torch.randint(1, CLASSES, (length,), generator=generator)
    return torch.randint(0, CLASSES, (3, 7), generator=generator), labels


@dataclasses.dataclass
class Trained:
    losses: list
    parameters: list
    raised: object = None
    assumptions: object = None
    plans: int = 0


def train(loss_of, batches, planned, budget="60%peak", new_shapes="plan", device="cpu"):
    torch.manual_seed(0)
    model = Tagger().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    def step(ids, labels):
        loss = loss_of(model, ids, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    run = step
    if planned:
        run = stowage.step(model, optimizer, budget=budget, device=device,
                           new_shapes=new_shapes)(step)
    made = Trained([], [])
    try:
        for batch in batches:
            made.losses.append(run(*(one.to(device) for one in batch)).detach().cpu())
    except stowage.Error as error:
        made.raised = error
    if planned:
        if made.losses:
            made.assumptions = dict(run._captured.assumptions)
            made.plans = run.facts().get("plans")
        run.leave()
    made.parameters = [one.detach().cpu().clone() for one in model.parameters()]
    return made
