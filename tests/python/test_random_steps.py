# SPDX-License-Identifier: Apache-2.0
"""Steps made at random: plain PyTorch's bits."""

import pytest
import stowage
from planned_training import begin, check_same, left_by, take_steps
from random_steps import case_of


def check(seed, budget="60%peak", steps=6):
    case, make_model, batches = case_of(seed)
    data = batches(steps)
    model, training = begin(case, make_model)
    expected = left_by(model, training, take_steps(training.step, training, data))
    model, training = begin(case, make_model)
    while True:
        train_step = stowage.step(model, training.optimizers, budget=budget, device="cpu")(
            training.step)
        try:
            train_step.plan(*data[0])
            break
        except stowage.Infeasible as error:
            train_step.leave()
            budget = error.smallest_budget
    returned = take_steps(train_step, training, data)
    train_step.leave()
    check_same(left_by(model, training, returned), expected)


@pytest.mark.filterwarnings("ignore:the step writes")
@pytest.mark.parametrize("seed", range(12))
def test_has_plain_bits(seed):
    check(seed)
