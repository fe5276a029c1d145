# SPDX-License-Identifier: Apache-2.0
"""Loads the library of the package into the process of the user's own torch.

Each is linked against one version of libtorch alone, so it works with every Python that this torch
is there for, with CUDA or without. The package has a folder torch-VERSION for each.
"""

import ctypes
import json
import os
import re

_HERE = os.path.dirname(os.path.abspath(__file__))


def _versions_here():
    """The torch versions that this package has libraries for, oldest first."""
    names = (name.removeprefix("torch-") for name in os.listdir(_HERE)
             if re.fullmatch(r"torch-\d+\.\d+\.\d+", name))
    return sorted(names, key=lambda version: [int(part) for part in version.split(".")])


def _refuse(versions, found):
    raise ImportError(f"stowage needs torch {' or '.join(versions)}, {found}: "
                      f"pip install 'torch=={versions[-1]}'")


def _without_build(version):
    """"2.11.0" of "2.11.0+cu130"; what comes before a release is another version."""
    return version.partition("+")[0]


def _version_of(folder):
    """As a list: the torch version that a build tree's libraries are for; [] where it does not say."""
    try:
        with open(os.path.join(folder, "torch_version.txt"), encoding="utf-8") as file:
            return [file.read().strip()]
    except OSError:
        return []


def _require_torch(versions):
    try:
        import torch
    except ImportError:
        if not versions:
            raise
        _refuse(versions, "which is not installed")
    if versions and _without_build(torch.__version__) not in versions:
        _refuse(versions, f"found torch {torch.__version__}")
    return torch


def _load():
    # STOWAGE_LIBRARIES names another folder than the package's own: a build tree's.
    folder = os.environ.get("STOWAGE_LIBRARIES")
    torch = _require_torch(_version_of(folder) if folder else _versions_here())
    if not folder:
        folder = os.path.join(_HERE, f"torch-{_without_build(torch.__version__)}", "lib")
    path = os.path.join(folder, "libstowage_core.so")
    if not os.path.exists(path):
        raise ImportError(
            f"stowage's library is missing, expected {path}: install the wheel again; in a build "
            "tree, name the folder that holds it in STOWAGE_LIBRARIES"
        )
    # Global, because the CUDA library, loaded when a GPU is used, takes what it needs from it.
    try:
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise ImportError(
            f"stowage's library does not load into torch {torch.__version__}: {error}"
        ) from error
    return torch


torch = _load()
ENVIRONMENT = json.loads(torch.ops.stowage.environment())
if _without_build(torch.__version__) != ENVIRONMENT["torch"]:
    _refuse([ENVIRONMENT["torch"]], f"found torch {torch.__version__}")

Step = torch.classes.stowage.Step
Plan = torch.classes.stowage.Plan
Runner = torch.classes.stowage.Runner
WithoutMemory = torch.classes.stowage.WithoutMemory
