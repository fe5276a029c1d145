#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Llama shapes trained by plans on all GPUs of this machine, beside what users set today.

Of each case its peers run first (ranks_peers.py), then its budgets. The first plan has the costs
that `profile --ranks` measured, the others those that its steps had. Prints a line for each run;
with --out writes an answer for tests/gpu/results. Exit code 1 when a plan's run fails.

    ranks.py [CASE ...] [--program build/bin/stowage] [--target h100] [--steps 7]
        [--budgets 34GiB,55GiB] [--out FILE]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from answer import open_answer

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = {
    "llama8b": {"shape": "llama3.1-8b", "batch": 1, "peers": ["fsdp2", "fsdp2+checkpointing"],
                "budgets": ["34GiB", "55GiB", "14GiB"]},
    "llama1b": {"shape": "llama3.2-1b", "batch": 4, "peers": ["ddp", "ddp+checkpointing"],
                "budgets": ["34GiB", "24GiB"]},
    "llama8b_4": {"shape": "llama3.1-8b", "batch": 4, "peers": ["fsdp2+checkpointing"],
                  "budgets": ["53GiB"]},
}


class Failed(Exception):
    """A program said no."""


def count_gpus():
    try:
        asked = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True,
                               check=False)
    except OSError:
        return 0
    return len(asked.stdout.splitlines())


def ask(*words):
    """The answer of a verb, as JSON."""
    done = subprocess.run([*words, "--json", "-fq"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{words[1]}: exit code {done.returncode}: {done.stderr.strip()[:300]}")
    return json.loads(done.stdout)


def run_peers(case, options):
    """A row for each line that ranks_peers.py prints."""
    # That variable is for `stowage`: Python's torch finds its own libraries.
    own = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    done = subprocess.run([sys.executable, os.path.join(HERE, "ranks_peers.py"), *case["peers"],
                           "--shape", case["shape"], "--batch", str(case["batch"]), "--steps",
                           str(options.steps)], capture_output=True, text=True, check=False,
                          env=own)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for mode in set(case["peers"]) - {said["mode"] for said in answers}:
        why = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        yield {"run": "peer", "mode": mode, "ranks": options.ranks, "verdict": why[:300]}
    for said in answers:
        yield {"run": "peer", "mode": said["mode"], "ranks": said["ranks"],
               "verdict": said.get("error", "ran"),
               **{key: said[key] for key in ("step_s", "peak_bytes", "reserved_bytes")
                  if key in said}}


def run_plans(case, options, folder):
    program, ranks = options.program, ["--ranks", str(options.ranks)]
    step, plan, costs = (os.path.join(folder, name) for name in ("step.stow", "plan.json",
                                                                 "costs.json"))
    ask(program, "capture", "llama", "--set", f"preset={case['shape']}", "--set",
        f"batch={case['batch']}", "--set", "sequence=4096", "--set", "precision=bfloat16", "--set",
        "optimizer=stowage_adamw", "--device", "cuda", "--target", options.target, "-o", step)
    ask(program, "profile", step, *ranks, "-o", costs)
    known = "profile"
    for budget in options.budgets.split(",") if options.budgets else case["budgets"]:
        row = {"run": "planned", "budget": budget, "ranks": options.ranks, "costs": known}
        try:
            ask(program, "plan", step, *ranks, "--costs", costs, "--budget", budget, "-o", plan)
            measured = os.path.join(folder, f"{budget}.json")
            done = ask(program, "run", plan, *ranks, "--costs", costs, "--steps",
                       str(options.steps), "--costs-out", measured)
        except Failed as error:
            yield {**row, "verdict": str(error)}
            continue
        if known == "profile":
            known, costs = f"steps of {budget}", measured
        yield {**row, "verdict": "ran", "transport": done["transport"],
               "step_s": round(done["step_ns"] / 1e9, 5), "peak_bytes": done["peak_bytes"],
               "arena_bytes": done["arena_bytes"], "outside_bytes": done.get("outside_bytes"),
               "predicted_s": round(done["predicted"]["step_ns"] / 1e9, 5),
               "predicted_peak_bytes": done["predicted"]["peak_bytes"],
               "allocations_outside": done["allocations_outside"]}


def main():
    parser = argparse.ArgumentParser(description="Llama shapes on all GPUs, beside peers")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--program", default="build/bin/stowage")
    parser.add_argument("--target", default="h100")
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--budgets", help="instead of the case's: 34GiB,55GiB")
    parser.add_argument("--out")
    options = parser.parse_args()
    for unknown in set(options.cases) - set(CASES):
        parser.error(f"unknown case '{unknown}', expected one of {', '.join(CASES)}")
    options.ranks = count_gpus()
    if options.ranks < 2:
        print(f"error: found {options.ranks} GPUs, expected several", file=sys.stderr)
        return 4
    answer = open_answer(options.out, "ranks", options.program)
    good = True
    for name in options.cases or CASES:
        with tempfile.TemporaryDirectory() as folder:
            for rows in (run_peers(CASES[name], options), run_plans(CASES[name], options, folder)):
                for row in rows:
                    good = good and (row["run"] == "peer" or row["verdict"] == "ran")
                    print(name, json.dumps(row), flush=True)
                    answer.add({"case": name, **row})
    answer.finish()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
