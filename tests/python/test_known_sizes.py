# SPDX-License-Identifier: Apache-2.0
"""Results whose size follows from the values of a batch: an assumption, checked in each step."""

import dataclasses

import pytest
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
    weight = torch.zeros(labels.shape)
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


def train(loss_of, batches, planned, budget="60%peak", new_shapes="plan"):
    torch.manual_seed(0)
    model = Tagger()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    def step(ids, labels):
        loss = loss_of(model, ids, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    run = step
    if planned:
        run = stowage.step(model, optimizer, budget=budget, device="cpu",
                           new_shapes=new_shapes)(step)
    made = Trained([], [])
    try:
        for batch in batches:
            made.losses.append(run(*batch).detach().clone())
    except stowage.Error as error:
        made.raised = error
    if planned:
        if made.losses:
            made.assumptions = dict(run._captured.assumptions)
            made.plans = run.facts().get("plans")
        run.leave()
    made.parameters = [one.detach().clone() for one in model.parameters()]
    return made


def is_same(a, b):
    pairs = zip(a.losses + a.parameters, b.losses + b.parameters, strict=True)
    return all(torch.equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("loss_of", CASES, ids=lambda one: one.__name__)
def test_same_sizes_elsewhere_give_the_same_bits(loss_of):
    make = make_ctc_batch if loss_of is ctc else make_batch
    batches = [make(seed) for seed in range(5)]
    planned = train(loss_of, batches, planned=True)
    assert planned.raised is None
    assert planned.assumptions and all("in " + loss_of.__name__ in one
                                       for one in planned.assumptions)
    assert is_same(train(loss_of, batches, planned=False), planned)


def batches_with_another_size(loss_of, other):
    if loss_of is ctc:
        batches = [make_ctc_batch(seed) for seed in range(3)]
        lengths = {"more": (3, 4, 3), "fewer": (2, 4, 2), "none": (0, 0, 0)}[other]
        bad = make_ctc_batch(9, lengths)
    elif loss_of in (one_hot, bincount):
        batches = [make_batch(seed, largest=12) for seed in range(3)]
        bad = {"more": make_batch(9, largest=19), "fewer": make_batch(9, largest=8),
               "none": make_batch(9, count=0)}[other]
    else:
        batches = [make_batch(seed) for seed in range(3)]
        bad = make_batch(9, count={"more": 15, "fewer": 4, "none": 0}[other])
    return batches, bad


@pytest.mark.parametrize("other", ["more", "fewer"])
@pytest.mark.parametrize("loss_of", CASES, ids=lambda one: one.__name__)
def test_another_size_gets_a_plan_of_its_own(loss_of, other):
    batches, bad = batches_with_another_size(loss_of, other)
    script = [*batches, bad, *batches, bad]
    with pytest.warns(UserWarning, match="a plan of its own"):
        planned = train(loss_of, script, planned=True, budget="100%peak")
    assert planned.raised is None and planned.plans == 2
    assert is_same(train(loss_of, script, planned=False), planned)


@pytest.mark.parametrize("other", ["more", "fewer", "none"])
@pytest.mark.parametrize("loss_of", CASES, ids=lambda one: one.__name__)
def test_another_size_is_refused_and_the_state_kept(loss_of, other):
    batches, bad = batches_with_another_size(loss_of, other)
    planned = train(loss_of, [*batches, bad, *batches], planned=True, new_shapes="refuse")
    assert isinstance(planned.raised, stowage.StepChanged)
    assert "in this batch" in str(planned.raised)
    assert "test_known_sizes.py" in str(planned.raised)
    assert is_same(train(loss_of, batches, planned=False), planned)


def test_elements_of_the_step_in_a_list_need_no_value():
    batches = [make_batch(seed, largest=12 + seed) for seed in range(4)]
    planned = train(tensor_of_elements, batches, planned=True, budget="100%peak")
    assert planned.raised is None and not planned.assumptions
    assert is_same(train(tensor_of_elements, batches, planned=False), planned)


def test_a_size_of_the_models_own_values_is_refused():
    def positive(model, ids, labels):
        scores = model(ids).mean(-1)
        return scores[scores > 0].square().mean()

    planned = train(positive, [make_batch(0)], planned=True)
    assert isinstance(planned.raised, stowage.Unsupported)
    assert "values of a mask" in str(planned.raised)
    assert "in positive" in str(planned.raised) or ", positive" in str(planned.raised)


def test_lengths_of_ctc_that_the_model_computes_are_refused():
    def ctc_of_scores(model, ids, labels):
        logs = model(ids).log_softmax(-1).transpose(0, 1)
        lengths = (logs.argmax(-1) > 0).sum(0)
        return torch.nn.functional.ctc_loss(logs, labels.clamp(min=1), lengths, lengths)

    planned = train(ctc_of_scores, [make_ctc_batch(0)], planned=True)
    assert isinstance(planned.raised, stowage.Unsupported)
    assert "from the step's inputs alone" in str(planned.raised)
    assert "ctc_of_scores" in str(planned.raised)


def test_a_mask_that_every_draw_passes_counts_all_elements():
    def all_drawn(model, ids, labels):
        return model(ids)[torch.rand(ids.shape) >= 0].square().mean()

    batches = [make_batch(seed) for seed in range(3)]
    planned = train(all_drawn, batches, planned=True)
    assert planned.raised is None
    assert is_same(train(all_drawn, batches, planned=False), planned)
