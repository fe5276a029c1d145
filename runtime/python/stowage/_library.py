# SPDX-License-Identifier: Apache-2.0
"""Loads the library of the package into the process of the user's own torch.

The library is linked against libtorch alone, so it works with every Python that torch 2.11 is there
for, with CUDA or without.
"""

import ctypes
import json
import os

TORCH_VERSION = "2.11"


def _require_torch():
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f"stowage needs torch {TORCH_VERSION}, which is not installed: "
            f"pip install 'torch=={TORCH_VERSION}.*'"
        ) from error
    if not torch.__version__.startswith(TORCH_VERSION + "."):
        raise ImportError(
            f"stowage needs torch {TORCH_VERSION}, found torch {torch.__version__}: "
            f"pip install 'torch=={TORCH_VERSION}.*'"
        )
    return torch


def _folder_of_libraries():
    """`STOWAGE_LIBRARIES` names another folder than the package's own: a build tree's."""
    given = os.environ.get("STOWAGE_LIBRARIES")
    return given or os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")


def _load():
    torch = _require_torch()
    path = os.path.join(_folder_of_libraries(), "libstowage_core.so")
    if not os.path.exists(path):
        raise ImportError(
            f"stowage's library is missing, expected {path}: install the wheel again; in a build "
            "tree, name the folder that holds it in STOWAGE_LIBRARIES"
        )
    # Global, because the CUDA library, loaded when a GPU is used, takes what it needs from it.
    try:
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise ImportError(f"stowage's library does not load: {error}") from error
    return torch


torch = _load()
ENVIRONMENT = json.loads(torch.ops.stowage.environment())

Step = torch.classes.stowage.Step
Plan = torch.classes.stowage.Plan
Runner = torch.classes.stowage.Runner
WithoutMemory = torch.classes.stowage.WithoutMemory
