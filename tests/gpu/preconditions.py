# SPDX-License-Identifier: Apache-2.0
"""What the scripts of this folder need before they begin: a GPU (asked of its driver alone: no
Python package is needed), a program, names that they know. What writes
answers (tools/bench/answer.py) is imported from here as well."""

import ctypes
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(HERE)), "tools", "bench"))

# Only now is its folder known.
from answer import command_line, describe, find_commit, open_answer, write_answer

EXIT_ENVIRONMENT = 4  # as the programs'


def why_no_gpu():
    """What is missing; "" when there is one."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as missing:
        return str(missing)
    count = ctypes.c_int()
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status != 0:
        return f"the driver says error {status}"
    return "" if count.value > 0 else "the driver knows no GPU"


def expect_gpu():
    """Ends the script where there is none."""
    missing = why_no_gpu()
    if missing:
        print(f"error: no GPU here ({missing})", file=sys.stderr)
        sys.exit(EXIT_ENVIRONMENT)


def expect_known(parser, flag, chosen, known):
    unknown = [name for name in chosen if name not in known]
    if unknown:
        parser.error(f"{flag} {','.join(unknown)}: not known; there are {', '.join(known)}")


def expect_program(parser, path):
    if not os.access(path, os.X_OK):
        parser.error(f"--program {path}: no such program")
