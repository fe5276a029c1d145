#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A planned run beside a process that holds the rest of the GPU.

This process allocates all of the device but the plan's arena and what the plan says lies beside it:
the run must succeed. Then it takes 2 MiB more: the run must be refused (exit code 4) before its
first step. Exit code 1 when one of them went otherwise.

    neighbour.py [--program build/bin/stowage] [--steps 4] [--budget 60%peak]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import torch

GRAIN = 2 << 20  # what the driver allocates by


def leave_free(wanted):
    """A block such that at least `wanted` bytes are free, and less than GRAIN more."""
    free, _ = torch.cuda.mem_get_info()
    return torch.empty((free - wanted) // GRAIN * GRAIN, dtype=torch.uint8, device="cuda")


def run(options, plan, costs):
    done = subprocess.run([options.program, "run", plan, "--costs", costs, "--steps",
                           str(options.steps), "--json"], capture_output=True, text=True,
                          check=False)
    answer = json.loads(done.stdout) if done.returncode == 0 else {}
    print(f"exit {done.returncode}: {answer.get('outside_bytes', '')} {done.stderr.strip()[:600]}",
          flush=True)
    return done.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bin/stowage")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--budget", default="60%peak")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        step, costs, plan = (os.path.join(folder, name)
                             for name in ("step.stow", "costs.json", "plan.json"))
        for arguments in (["capture", "gpt2", "--set", "preset=demo", "--device", "cuda", "--target",
                           "h200", "-o", step],
                          ["profile", step, "-o", costs],
                          ["plan", step, "--budget", options.budget, "--costs", costs, "-o", plan]):
            subprocess.run([options.program, *arguments], check=True, stdout=subprocess.DEVNULL)
        with open(plan, encoding="utf-8") as file:
            written = json.load(file)
        arena, outside = written["budget_bytes"], written["target"]["outside_bytes"]
        torch.empty(1, device="cuda")
        block = leave_free(arena + outside)
        print(f"arena {arena}, beside it {outside}, free {torch.cuda.mem_get_info()[0]}", flush=True)
        fits = run(options, plan, costs)
        del block
        torch.cuda.empty_cache()
        block = leave_free(arena + outside - GRAIN)
        print(f"free {torch.cuda.mem_get_info()[0]}", flush=True)
        refused = run(options, plan, costs)
        del block
    return 0 if fits == 0 and refused == 4 else 1


if __name__ == "__main__":
    sys.exit(main())
