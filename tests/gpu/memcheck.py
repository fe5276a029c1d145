#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compute-sanitizer's memcheck on planned steps of a small model, in every launch mode.

Prints a row for each mode; exit code 1 when one had errors or did not run.

    memcheck.py [--program build/bin/stowage] [--sanitizer compute-sanitizer] [--steps 3]
                [--budget 60%peak] [--launch none,no_update,whole] [--out FILE]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

from bits_table import call
from preconditions import expect_gpu, open_answer

MODEL = ["gpt2", "layers=4", "hidden=256", "heads=4", "vocabulary=2048", "context=128",
         "sequence=128", "batch=8", "dropout=0.1", "precision=bfloat16", "optimizer=stowage_adamw"]
CLEAN = "ERROR SUMMARY: 0 errors"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bin/stowage")
    parser.add_argument("--sanitizer", default="compute-sanitizer")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--budget", default="60%peak")
    parser.add_argument("--launch", default="none,no_update,whole", type=lambda text: text.split(","))
    parser.add_argument("--target", default="h200")
    parser.add_argument("--out", help="answer to write, a JSON file")
    options = parser.parse_args()
    expect_gpu()
    answer = open_answer(options.out, "memcheck", options.program)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        step, costs, plan = (os.path.join(folder, name) for name in ("s.stow", "c.json", "p.json"))
        settings = [part for word in MODEL[1:] for part in ("--set", word)]
        call(options.program, "capture", MODEL[0], *settings, "--device", "cuda", "--target",
             options.target, "-o", step)
        call(options.program, "profile", step, "-o", costs)
        for launch in options.launch:
            call(options.program, "plan", step, "--budget", options.budget, "--costs", costs,
                 "--launch", launch, "-f", "-o", plan)
            with open(plan, encoding="utf-8") as file:
                copies = sum(command["op"] == "copy" for command in json.load(file)["commands"])
            done = subprocess.run([options.sanitizer, "--tool", "memcheck", options.program, "run",
                                   plan, "--costs", costs, "--steps", str(options.steps)],
                                  capture_output=True, text=True, check=False)
            fine = done.returncode == 0 and CLEAN in done.stdout + done.stderr
            bad += not fine
            last = (done.stdout + done.stderr).strip().splitlines()[-1:]
            print(f"{'ok ' if fine else 'BAD'} {launch}: {copies} copies a step, exit "
                  f"{done.returncode}: {last}", flush=True)
            errors = re.search(r"ERROR SUMMARY: (\d+) error", done.stdout + done.stderr)
            answer.add({"launch": launch, "copies": copies, "exit": done.returncode,
                        "errors": int(errors[1]) if errors else None, "good": fine})
    answer.finish()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
