#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do copies run beside compute? Offload plans on this machine's CPU, over links of several speeds.

A GPT-2 of 4 layers is captured and measured for one thread, in steps, so that a core is left for
copies. Then, for each link speed: a plan that may only offload, run with copies throttled to that
speed, turn by turn with a plan that copies nothing, since a shared machine is now fast, now slow.
Medians over the rounds. "link" is the time of all copies, one after the other. They leave in the
forward pass and come back in the backward pass, so a step that keeps nothing else waiting takes
max(compute, link); one whose copies ran between its ops takes the sum. Prints a table; exit code 1
when a run failed.

    overlap.py [--program build/bin/stowage] [--budget 60%peak] [--speeds 50,100,200,400] [--steps 8]
               [--rounds 5]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

SETTINGS = ["layers=4", "hidden=256", "heads=4", "sequence=128", "context=128", "batch=8", "vocabulary=2048"]


def call(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments[:2])}: exit {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


def step_seconds(options, plan, costs, *more):
    answer = json.loads(call(options.program, "run", plan, "--steps", str(options.steps), "--costs",
                             costs, "--threads", "1", "--json", "-q", *more))
    return answer["step_ns"] / 1e9


def turn_by_turn(options, runs):
    """By run: its step's seconds, the median over the rounds."""
    rounds = [[step_seconds(options, *run) for run in runs] for _ in range(options.rounds)]
    return [statistics.median(column) for column in zip(*rounds)]


def make_plan(options, step, costs, plan, budget, allow):
    call(options.program, "plan", step, "--budget", budget, "--allow", allow, "--threads", "1",
         "--costs", costs, "-o", plan, "-f", "-q")
    with open(plan, encoding="utf-8") as file:
        return json.load(file)["predicted"]


def write_slow(costs, slow, speed):
    with open(costs, encoding="utf-8") as file:
        table = json.load(file)
    for link in ("d2h", "h2d"):
        table["links"][link]["bytes_per_s"] = speed * 1_000_000
    with open(slow, "w", encoding="utf-8") as file:
        json.dump(table, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bin/stowage")
    parser.add_argument("--budget", default="60%peak")
    parser.add_argument("--speeds", default="50,100,200,400", help="MB/s, separated by commas",
                        type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        step, costs, slow, still, plan = (os.path.join(folder, name) for name in (
            "step.stow", "costs.json", "slow.json", "still.json", "plan.json"))
        settings = [part for word in SETTINGS for part in ("--set", word)]
        call(options.program, "capture", "gpt2", *settings, "-o", step, "-q")
        call(options.program, "profile", step, "--threads", "1", "--in-steps", "200%peak", "-o",
             costs, "-q")
        make_plan(options, step, costs, still, "200%peak", "none")
        print(f"budget {options.budget}, {options.rounds} rounds of {options.steps} steps, medians")
        print("  MB/s   out MiB    in MiB  compute s   link s  predicted s  measured s  of max  of sum")
        for speed in options.speeds:
            write_slow(costs, slow, speed)
            claim = make_plan(options, step, slow, plan, options.budget, "offload")
            link = (claim["out_bytes"] + claim["in_bytes"]) / (speed * 1e6)
            compute, took = turn_by_turn(options, [(still, costs), (plan, slow, "--throttle-links")])
            print(f"{speed:>6} {claim['out_bytes'] / 2**20:>9.1f} {claim['in_bytes'] / 2**20:>9.1f}"
                  f" {compute:>10.3f} {link:>8.3f} {claim['step_ns'] / 1e9:>12.3f} {took:>11.3f}"
                  f" {took / max(compute, link):>7.2f} {took / (compute + link):>7.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
