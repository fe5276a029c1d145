#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command `stowage` of the Python package: runs its program with the user's own libtorch.

Neither torch nor the package is imported, which would take two seconds.
Exit code 4, with what to install, where torch is missing or another version.
"""

import importlib.util
import os
import re
import sys

TORCH_VERSION = "2.11"


def find_folder(package):
    """Where a package lies; None."""
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    return folders[0] if folders else None


def read_version(torch_folder):
    try:
        with open(os.path.join(torch_folder, "version.py"), encoding="utf-8") as file:
            found = re.search(r"^__version__ = '([^']+)'", file.read(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else "of unknown version"


def fail(found):
    print(f"error: stowage needs torch {TORCH_VERSION}, {found}: "
          f"pip install 'torch=={TORCH_VERSION}.*'", file=sys.stderr)
    sys.exit(4)


def library_folders():
    """Those of torch, and of the CUDA libraries that pip installs beside it."""
    torch = find_folder("torch")
    if torch is None:
        fail("which is not installed")
    version = read_version(torch)
    if not version.startswith(TORCH_VERSION + "."):
        fail(f"found torch {version}")
    beside = os.path.dirname(torch)
    folders = [os.path.join(torch, "lib"), os.path.join(beside, "nvidia", "cu13", "lib")]
    return [folder for folder in folders if os.path.isdir(folder)]


def main():
    folders = library_folders()
    package = find_folder("stowage")
    program = os.path.join(package or "", "bin", "stowage")
    if not os.access(program, os.X_OK):
        print(f"error: stowage's program is missing, expected {program}: install the wheel again",
              file=sys.stderr)
        sys.exit(4)
    before = os.environ.get("LD_LIBRARY_PATH")
    # An empty element would be the current directory.
    os.environ["LD_LIBRARY_PATH"] = ":".join([*folders, *([before] if before else [])])
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
