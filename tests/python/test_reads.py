# SPDX-License-Identifier: Apache-2.0
"""What host code reads in a step: values that it logs, and questions that it asks of inputs."""

import pytest
import torch
from planned_training import Net, Training, batches, begin, check_equal, loss_of, planned

import stowage


def logging_each(period):
    def case(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        log, seen = [], {"steps": 0}

        def step(x, y):
            loss = loss_of(model, x, y)
            other = (loss * 2).detach()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            seen["steps"] += 1
            if seen["steps"] % period == 0:
                log.append(loss.item())
            if seen["steps"] % 2 == 0:
                log.append(other.item())
            return loss

        return Training([optimizer], step, kept={"log": log})

    return case


@pytest.mark.parametrize("period", [1, 2, 3])
def test_logs_values_in_some_steps(period):
    check_equal(logging_each(period), steps=7)


def test_a_value_that_no_captured_step_read_is_refused():
    with pytest.raises(stowage.StepChanged, match="read it in each step"):
        check_equal(logging_each(7), steps=8)


class Asking(Net):
    """One line asks a question of each part."""

    def forward(self, x):
        answers = [bool((part > -100).all()) for part in x.split(2)]
        return super().forward(x) * (1.0 if all(answers) else 2.0)


def test_each_question_of_a_line_is_an_assumption():
    model, training = begin(lambda model: Training(
        [torch.optim.SGD(model.parameters(), lr=0.1)], lambda x, y: _step(model, training, x, y)),
        Asking)
    train_step = planned(model, training)
    x, y = next(batches(1))
    train_step(x, y)
    (answers,) = train_step._captured.assumptions.values()
    assert answers == [1, 1, 1, 1]
    x[4] = -200
    with pytest.warns(UserWarning, match=r"question 3 of 4\) found 0, and 1 when"):
        train_step(x, y)  # a plan of its own


def _step(model, training, x, y):
    loss = loss_of(model, x, y)
    loss.backward()
    training.optimizers[0].step()
    training.optimizers[0].zero_grad()
    return loss
