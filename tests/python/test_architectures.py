# SPDX-License-Identifier: Apache-2.0
"""Some of the architectures of Hugging Face: planned training gives the bits of plain training.

All of them: `python -m architectures.run`, which writes a table.
"""

import pytest

from architectures import run
from architectures.table import TABLE

# siglip and funnel: layouts that only libtorch's own kernels find, where strides are ambiguous.
CASES = ["gpt2", "llama", "t5", "bert", "mixtral", "mamba", "vit", "siglip", "funnel"]


@pytest.mark.parametrize("name", CASES)
def test_equals_plain_training(name):
    row = run.run_one(name, "cpu", seconds=60)
    assert row.get("result") == "equal", row


def test_captures_for_a_gpu():
    row = run.run_one("llama", "gpu", seconds=60)
    assert row.get("captured_for_gpu"), row


def test_names_are_unique():
    assert len(TABLE) >= 100
