# SPDX-License-Identifier: Apache-2.0
"""Whether this machine has a GPU, asked of its driver alone: no Python package is needed."""

import ctypes
import sys

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
