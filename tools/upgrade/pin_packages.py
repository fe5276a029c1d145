#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the packages, with checksums, that tests of the Python package run with for one torch.

usage: tools/upgrade/pin_packages.py TORCH_VERSION

The newest of each that goes with that torch, as pip resolves them; nothing is installed. Exit code
4 where pip cannot resolve them, or resolves them differently for two versions of Python. To be run
by the oldest of them: what pip asks of other packages follows from the Python that runs it.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

PYTHONS = ("3.11", "3.12", "3.13")
ASKED = ("transformers", "peft", "accelerate", "pytest", "safetensors", "numpy", "pip")
HEAD = """\
# Packages that the tests of the Python package run with beside torch {torch}, for Python 3.11, 3.12
# and 3.13. Read by tools/dev python, made by tools/upgrade/pin_packages.py. Asked for: torch
# {asked}; the rest follows from them.
"""


def fail(message):
    print(f"error: {message}", file=sys.stderr)
    sys.exit(4)


def resolve(torch, python):
    """{name: (version, SHA-256)} of all packages for one version of Python."""
    with tempfile.TemporaryDirectory() as scratch:
        report = pathlib.Path(scratch) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "-q",
                   "--report", report, "--target", scratch, "--only-binary=:all:",
                   "--implementation", "cp", "--python-version", python]
        for minor in range(28, 16, -1):
            command += ["--platform", f"manylinux_2_{minor}_x86_64"]
        command += ["--platform", "manylinux2014_x86_64", f"torch=={torch}", *ASKED]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            fail(f"pip ended with {done.returncode}:\n{done.stderr}")
        found = {}
        for one in json.loads(report.read_text())["install"]:
            name = re.sub(r"[-_.]+", "-", one["metadata"]["name"]).lower()
            digest = one["download_info"]["archive_info"]["hashes"]["sha256"]
            found[name] = (one["metadata"]["version"], digest)
        return found


def main():
    if len(sys.argv) != 2 or not re.fullmatch(r"\d+\.\d+\.\d+", sys.argv[1]):
        print("usage: tools/upgrade/pin_packages.py TORCH_VERSION", file=sys.stderr)
        sys.exit(2)
    if f"{sys.version_info[0]}.{sys.version_info[1]}" != PYTHONS[0]:
        fail(f"found Python {sys.version.split()[0]}, expected {PYTHONS[0]}")
    found = {python: resolve(sys.argv[1], python) for python in PYTHONS}
    lines = [HEAD.format(torch=sys.argv[1], asked=" ".join(ASKED)).rstrip()]
    for name in sorted(set().union(*found.values())):
        versions = {told[name][0] for told in found.values() if name in told}
        if len(versions) > 1:
            fail(f"{name}: found {', '.join(sorted(versions))} for different versions of Python, "
                 "expected one")
        digests = sorted({told[name][1] for told in found.values() if name in told})
        hashes = " \\\n".join(f"  --hash=sha256:{one}" for one in digests)
        lines.append(f"{name}=={versions.pop()} \\\n{hashes}")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
