#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command `stowage` of the Python package: runs its program with the user's own libtorch.

Neither torch nor the package is imported, which would take two seconds.
Exit code 4, with what to install, where torch is missing or another version.
"""

import glob
import importlib.util
import os
import re
import sys


def find_folder(package):
    """Where a package lies; ""."""
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    return folders[0] if folders else ""


def read_version(torch_folder):
    try:
        with open(os.path.join(torch_folder, "version.py"), encoding="utf-8") as file:
            found = re.search(r"^__version__ = '([^']+)'", file.read(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else "of unknown version"


def versions_in(package_folder):
    """The torch versions that the package has programs for, oldest first."""
    names = os.listdir(package_folder) if package_folder else []
    versions = [name.removeprefix("torch-") for name in names
                if re.fullmatch(r"torch-\d+\.\d+\.\d+", name)]
    return sorted(versions, key=lambda version: [int(part) for part in version.split(".")])


def fail(message):
    print(f"error: {message}", file=sys.stderr)
    sys.exit(4)


def check_version(torch_folder, versions):
    """The one of `versions` that torch is."""
    whole = read_version(torch_folder) if torch_folder else ""
    version = whole.partition("+")[0]
    if version not in versions:
        found = f"found torch {whole}" if torch_folder else "which is not installed"
        fail(f"stowage needs torch {' or '.join(versions)}, {found}: "
             f"pip install 'torch=={versions[-1]}'")
    return version


def library_folders(torch_folder):
    """Those of torch, and of the CUDA libraries that pip installs beside it."""
    beside = os.path.dirname(torch_folder)
    folders = [os.path.join(torch_folder, "lib"),
               *sorted(glob.glob(os.path.join(glob.escape(beside), "nvidia", "cu[0-9]*", "lib")))]
    return [folder for folder in folders if os.path.isdir(folder)]


def main():
    package = find_folder("stowage")
    versions = versions_in(package)
    if not versions:
        fail(f"stowage's program is missing, expected {os.path.join(package, 'torch-VERSION')}: "
             "install the wheel again")
    torch = find_folder("torch")
    version = check_version(torch, versions)
    program = os.path.join(package, f"torch-{version}", "bin", "stowage")
    if not os.access(program, os.X_OK):
        fail(f"stowage's program is missing, expected {program}: install the wheel again")
    folders = library_folders(torch)
    before = os.environ.get("LD_LIBRARY_PATH")
    # An empty element would be the current directory.
    os.environ["LD_LIBRARY_PATH"] = ":".join([*folders, *([before] if before else [])])
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
