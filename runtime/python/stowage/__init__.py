# SPDX-License-Identifier: Apache-2.0
"""Stowage: training steps within a memory budget, with the same bits."""

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
from ._library import ENVIRONMENT
from ._plan import Plan
from ._step import PlannedStep, Runner, step

__version__ = ENVIRONMENT["stowage"]
__all__ = [
    "EnvironmentError",
    "Error",
    "FileError",
    "Infeasible",
    "InvalidArgument",
    "OutOfMemory",
    "Plan",
    "PlannedStep",
    "Runner",
    "StepChanged",
    "TorchError",
    "Unsupported",
    "step",
]
