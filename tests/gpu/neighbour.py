#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A planned run beside a process that holds the rest of the GPU.

This process allocates all of the device but the plan's arena and what the plan says lies beside it:
the run must succeed. Then it takes 2 MiB more: the run must be refused (exit code 4, with the budget
that would fit) before its first step. Exit code 1 when one of them went otherwise.

    neighbour.py [--program build/bin/stowage] [--steps 4] [--budget 60%peak] [--out FILE]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

from bits_table import call, capture_arguments
from preconditions import expect_gpu, open_answer

# Recorded graphs take memory beside the arena, by the number of their commands.
RUNS = [("gpt2", "none"), ("gpt2_bfloat16", "whole"), ("llama_lora", "whole")]
GRAIN = 2 << 20  # what the driver allocates by


def leave_free(wanted):
    """A block such that at least `wanted` bytes are free, and less than GRAIN more."""
    import torch
    free, _ = torch.cuda.mem_get_info()
    return torch.empty((free - wanted) // GRAIN * GRAIN, dtype=torch.uint8, device="cuda")


def run(options, plan, costs):
    """(exit code, what it said)"""
    done = subprocess.run([options.program, "run", plan, "--costs", costs, "--steps",
                           str(options.steps), "--json"], capture_output=True, text=True,
                          check=False)
    answer = json.loads(done.stdout) if done.returncode == 0 else {}
    text = done.stderr.strip()
    print(f"  exit {done.returncode}: {answer.get('outside_bytes', '')} {text[:600]}", flush=True)
    return done.returncode, text


def beside(options, model, launch):
    """The row of a run, of one that must be refused, and of one with the budget that it names."""
    import torch
    with tempfile.TemporaryDirectory() as folder:
        step, costs, plan = (os.path.join(folder, name)
                             for name in ("step.stow", "costs.json", "plan.json"))
        call(options.program, *capture_arguments(model, options.target, step))
        call(options.program, "profile", step, "-o", costs)
        call(options.program, "plan", step, "--budget", options.budget, "--costs", costs,
             "--launch", launch, "-o", plan)
        with open(plan, encoding="utf-8") as file:
            written = json.load(file)
        arena, outside = written["budget_bytes"], written["target"]["outside_bytes"]
        block = leave_free(arena + outside)
        print(f"{model} {launch}: arena {arena}, beside it {outside}, free "
              f"{torch.cuda.mem_get_info()[0]}", flush=True)
        fits, _ = run(options, plan, costs)
        del block
        torch.cuda.empty_cache()
        block = leave_free(arena + outside - GRAIN)
        print(f"  free {torch.cuda.mem_get_info()[0]}", flush=True)
        refused, text = run(options, plan, costs)
        # A run that fails for memory in its first step has exit code 4, too, and names no budget.
        named = re.search(r"a budget of (device:\d+B) would fit", text)
        fits_then = None
        if named:
            call(options.program, "plan", step, "--budget", named[1], "--costs", costs, "--launch",
                 launch, "-f", "-o", plan)
            fits_then, _ = run(options, plan, costs)
        del block
        torch.cuda.empty_cache()
    return {"check": "neighbour", "model": model, "launch": launch, "arena_bytes": arena,
            "outside_bytes": outside, "exit": fits, "refused_exit": refused,
            "smaller_exit": fits_then,
            "good": fits == 0 and refused == 4 and fits_then == 0}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bin/stowage")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--budget", default="60%peak")
    parser.add_argument("--target", default="h200")
    parser.add_argument("--out", help="answer to write, a JSON file")
    options = parser.parse_args()
    expect_gpu()
    answer = open_answer(options.out, "memory", options.program)
    import torch
    torch.empty(1, device="cuda")
    bad = 0
    for model, launch in RUNS:
        row = beside(options, model, launch)
        bad += not row["good"]
        print(f"{'ok ' if row['good'] else 'BAD'} {model} {launch}", flush=True)
        answer.add(row)
    answer.finish()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
