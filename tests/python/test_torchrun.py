# SPDX-License-Identifier: Apache-2.0
"""Programs that torchrun starts find each other by its store."""

import os
import subprocess
import sys

PROGRAM = os.path.join(os.environ["STOWAGE_BUILD"], "tests", "launch_test")
TEST = "UnderALauncher.JoinsTheOtherRanks"


def test_ranks_find_each_other():
    ranks = 3
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks),
         "--standalone", "--no-python", PROGRAM, f"--gtest_filter={TEST}"],
        capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(f"[       OK ] {TEST}") == ranks, done.stdout + done.stderr
