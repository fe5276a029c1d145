# SPDX-License-Identifier: Apache-2.0
"""Results whose size follows from the values of a batch: an assumption, checked in each step."""

import pytest
import torch
from known_sizes import (
    CASES,
    bincount,
    ctc,
    make_batch,
    make_ctc_batch,
    one_hot,
    tensor_of_elements,
    train,
)

import stowage


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
    assert "known_sizes.py" in str(planned.raised)
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
