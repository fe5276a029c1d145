# SPDX-License-Identifier: Apache-2.0
"""What host code reads in a step: values that it logs, and questions that it asks of inputs."""

import pytest
import torch
from planned_training import Training, check_equal, loss_of

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
