#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the Python package's wheel from build trees in which `stowage_python` is built.

usage: tools/make_wheel.py --build DIR [--build DIR...] --out DIR

Each build is against another version of torch; the wheel serves all of them.

Metadata is that of pyproject.toml. The platform tag follows from the symbol versions that the
binaries need: the oldest manylinux whose glibc and libstdc++ have them. Prints the wheel's path.
The same build gives the same bytes. Exit code 4 where a tool is missing, or a binary needs a
library that neither manylinux nor torch has.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# From the user's torch, and what every manylinux system has (of that list, what C++ may need).
OF_TORCH = {"libtorch_cpu.so", "libc10.so", "libgomp.so.1"}
OF_SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0",
             "libstdc++.so.6", "libgcc_s.so.1", "libz.so.1", "ld-linux-x86-64.so.2"}
# Highest versions of libstdc++ and libgcc by the minor version of a manylinux, as auditwheel's
# policies have them. Systems older than the first are not looked at.
RUNTIMES = {
    28: {"GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)},
    31: {"GLIBCXX": (3, 4, 28), "CXXABI": (1, 3, 12), "GCC": (7, 0, 0)},
    34: {"GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (7, 0, 0)},
    35: {"GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)},
    39: {"GLIBCXX": (3, 4, 33), "CXXABI": (1, 3, 15), "GCC": (14, 0, 0)},
}


def fail(message):
    print(f"error: {message}", file=sys.stderr)
    sys.exit(4)


def run(*command):
    """What the command prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        fail(f"{command[0]} is not installed")
    if done.returncode != 0:
        fail(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def read_project():
    """The table [project] of pyproject.toml, with its version."""
    try:
        import tomllib
    except ImportError:
        version = sys.version.split()[0]
        fail(f"found Python {version}, expected 3.11 or newer to read pyproject.toml")
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    version = told["tool"]["scikit-build"]["metadata"]["version"]
    found = re.search(version["regex"], (ROOT / version["input"]).read_text())
    return {**told["project"], "version": found["value"]}


def binaries_below(folder):
    return sorted(path for path in folder.rglob("*")
                  if path.is_file() and path.open("rb").read(4) == b"\x7fELF")


def needed_versions(readelf_text):
    """Highest versions that a binary needs: {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 30), ...}."""
    highest = {}
    needs = readelf_text.partition(".gnu.version_r")[2]
    for family, text in re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)", needs):
        version = tuple(int(part) for part in text.split("."))
        highest[family] = max(version, highest.get(family, version))
    return highest


def oldest_manylinux(needed):
    """The minor version of the oldest manylinux_2_* that has `needed`."""
    major, minor = needed.get("GLIBC", (2, 0))[:2]
    if major != 2:
        fail(f"found glibc {major}, expected 2")
    for runtime, has in RUNTIMES.items():
        if all(needed.get(family, (0,)) <= version for family, version in has.items()):
            return max(minor, runtime)
    fail(f"no known manylinux has the C++ runtime that the binaries need: {needed}")


def platform_tag(folder):
    """Of all binaries below `folder`, which have to be for x86-64."""
    needed = {}
    for path in binaries_below(folder):
        libraries = set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", path)))
        strange = sorted(libraries - OF_TORCH - OF_SYSTEM)
        if strange:
            fail(f"{path.name} needs {', '.join(strange)}, which not every system has: "
                 "install the static library, or see runtime/python/older_systems.cpp")
        for family, version in needed_versions(run("readelf", "-VW", path)).items():
            needed[family] = max(version, needed.get(family, version))
        if "X86-64" not in run("readelf", "-hW", path):
            fail(f"{path.name} is not for x86-64")
    return f"manylinux_2_{oldest_manylinux(needed)}_x86_64"


def metadata_of(project):
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        *(f"License-File: {name}" for name in project["license-files"]),
        *(f"Classifier: {one}" for one in project["classifiers"]),
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {one}" for one in project["dependencies"]),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + (ROOT / project["readme"]).read_text()


def write_wheel(path, files):
    """files: {name in the wheel: (bytes, is executable)}. The record comes last."""
    record_name = next(name for name in files if name.endswith("/WHEEL"))[:-len("WHEEL")] + "RECORD"
    record = ""
    for name, (data, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    everything = {**files, record_name: ((record + f"{record_name},,\n").encode(), False)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (data, is_executable) in everything.items():
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o100755 if is_executable else 0o100644) << 16
            archive.writestr(info, data)


def make_wheel(builds, out):
    project = read_project()
    stem = f"{project['name']}-{project['version']}"
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for count, build in enumerate(builds, start=1):
            run("cmake", "--install", build, "--component", "python", "--strip", "--prefix", folder)
            if len(list(folder.glob("stowage/torch-*/lib/libstowage_core.so"))) != count:
                fail(f"{build} installs no libstowage_core.so of its own, expected a build with "
                     "STOWAGE_RUNTIME=ON for another torch")
        tag = f"py3-none-{platform_tag(folder)}"
        files = {str(path.relative_to(folder)): (path.read_bytes(), os.access(path, os.X_OK))
                 for path in sorted(folder.rglob("*")) if path.is_file()}
    # pip puts the user's Python into a first line of this form.
    launcher = (ROOT / "runtime/python/launch_program.py").read_text().partition("\n")[2]
    files[f"{stem}.data/scripts/stowage"] = (f"#!python\n{launcher}".encode(), True)
    for name in project["license-files"]:
        files[f"{stem}.dist-info/licenses/{name}"] = ((ROOT / name).read_bytes(), False)
    files[f"{stem}.dist-info/METADATA"] = (metadata_of(project).encode(), False)
    wheel = f"Wheel-Version: 1.0\nGenerator: make_wheel\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files[f"{stem}.dist-info/WHEEL"] = (wheel.encode(), False)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{stem}-{tag}.whl"
    write_wheel(path, files)
    return path


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--build", type=pathlib.Path, required=True, action="append")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    print(make_wheel(arguments.build, arguments.out))


if __name__ == "__main__":
    main()
