#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What comparing steps with their code costs: per cent of the step, for three models.

Each model is captured, measured and planned, then run turn by turn with no step compared and with
every step compared (`stowage run --check-every 1`). A compared step traces the model's forward,
backward and update once more, on a thread beside. Prints a table of medians over the rounds; exit
code 1 when a run failed.

    check_cost.py [--program build/bin/stowage] [--device cpu] [--only gpt2] [--rounds 5] [--out FILE]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

# By device: name, settings, steps. From a step of milliseconds to one of about a second.
MODELS = {
    "cpu": [
        ("lstm", [], 40),
        ("gpt2", ["layers=4", "hidden=256", "heads=4", "sequence=128", "context=128", "batch=8",
                  "vocabulary=2048"], 20),
        ("llama", ["layers=8", "hidden=512", "heads=8", "sequence=128", "batch=4",
                   "vocabulary=4096"], 8),
    ],
    "cuda": [
        ("lstm", [], 100),
        ("gpt2", ["preset=small", "batch=4", "sequence=512"], 60),
        ("llama", ["preset=llama3.2-1b", "precision=bfloat16", "batch=4", "sequence=4096"], 20),
    ],
}


def call(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments[:3])}: exit {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


def measure(options, folder, model, settings, steps):
    step, costs, plan = (os.path.join(folder, name) for name in ("s.stow", "c.json", "p.json"))
    sets = [word for setting in settings for word in ("--set", setting)]
    device = ["--nondeterministic", "--device", "cuda", "--target", options.target] if options.device == "cuda" else []
    call(options.program, "capture", model, *sets, *device, "-o", step, "-f", "-q")
    call(options.program, "profile", step, "-o", costs, "-f", "-q")
    call(options.program, "plan", step, "--budget", options.budget, "--costs", costs, "-o", plan, "-f", "-q")
    with open(step, encoding="utf-8") as file:
        nodes = sum(" = " in line for line in file)
    seconds = {0: [], 1: []}
    for _ in range(options.rounds):
        for every in seconds:
            answer = json.loads(call(options.program, "run", plan, "--steps", str(steps), "--costs", costs,
                                     "--check-every", str(every), "--json", "-q"))
            seconds[every].append(answer["step_ns"] / 1e9)
    ratios = [checked / plain for plain, checked in zip(seconds[0], seconds[1])]
    return {"model": model, "settings": settings, "lines": nodes, "step_s": statistics.median(seconds[0]),
            "checked_step_s": statistics.median(seconds[1]), "ratio": statistics.median(ratios),
            "ratios": ratios}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bin/stowage")
    parser.add_argument("--device", choices=sorted(MODELS), default="cpu")
    parser.add_argument("--target", default="h200", help="profile that steps for cuda are captured for")
    parser.add_argument("--budget", default="100%peak")
    parser.add_argument("--only", help="one model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", help="JSON file to write")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        print("| model | a step | every step compared | of the step |\n|--|--|--|--|", flush=True)
        for model, settings, steps in MODELS[options.device]:
            if options.only not in (None, model):
                continue
            row = measure(options, folder, model, settings, steps)
            rows.append(row)
            print(f"| {model} {' '.join(settings)} | {row['step_s'] * 1e3:.1f} ms | "
                  f"{row['checked_step_s'] * 1e3:.1f} ms | {(row['ratio'] - 1) * 100:+.1f} % "
                  f"({(min(row['ratios']) - 1) * 100:+.1f} to {(max(row['ratios']) - 1) * 100:+.1f}) |", flush=True)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump({"device": options.device, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
