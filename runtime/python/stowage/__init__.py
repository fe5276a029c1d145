# SPDX-License-Identifier: Apache-2.0
"""Stowage: training steps within a memory budget, with the same bits."""

# First: it says what is missing.
from ._library import ENVIRONMENT

from . import hf
from ._errors import (
    EnvironmentError,
    Error,
    FileError,
    Infeasible,
    InvalidArgument,
    OutOfMemory,
    StepChanged,
    TorchError,
    Unsupported,
)
from ._fit import Fit, fit
from ._plan import Plan
from ._step import PlannedStep, Runner, step
from ._without_memory import load_pretrained, without_memory

__version__ = ENVIRONMENT["stowage"]
__all__ = [
    "EnvironmentError",
    "Error",
    "FileError",
    "Fit",
    "Infeasible",
    "InvalidArgument",
    "OutOfMemory",
    "Plan",
    "PlannedStep",
    "Runner",
    "StepChanged",
    "TorchError",
    "Unsupported",
    "fit",
    "hf",
    "load_pretrained",
    "step",
    "without_memory",
]
