#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`stowage demo` on this machine's CPU, as an answer for the page of results.

Prints a row; exit code 1 when the planned training's bits are not those of plain libtorch.

    demo.py [--program build/bin/stowage] [--out FILE]
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile

from answer import open_answer


def describe_cpu():
    names = []
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return f"{os.cpu_count()} cores of {names[0] if names else platform.machine()}, no GPU used"


def demo_row(answer):
    plan, run = answer["plan"], answer["run"]
    predicted, eager = plan["predicted"], run["unplanned"]
    return {"model": "gpt2", "verdict": "equal" if eager["identical"] else
            f"DIFFERENT: {eager['difference']}"[:300],
            "steps": run["steps"], "budget_bytes": plan["budget_bytes"],
            "unplanned_bytes": plan["unplanned_bytes"], "peak_bytes": predicted["peak_bytes"],
            "out_bytes": predicted["out_bytes"], "in_bytes": predicted["in_bytes"],
            "predicted_s": round(predicted["step_ns"] / 1e9, 4),
            "step_s": round(run["step_ns"] / 1e9, 4), "eager_s": round(eager["step_ns"] / 1e9, 4),
            "commands": plan["counts"]["commands"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bin/stowage")
    parser.add_argument("--out", help="answer to write, a JSON file")
    options = parser.parse_args()
    if not os.access(options.program, os.X_OK):
        parser.error(f"--program {options.program}: no such program")
    answer = open_answer(options.out, "demo", options.program, card=describe_cpu())
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([options.program, "demo", "--json", "--out",
                               os.path.join(folder, "demo")], capture_output=True, text=True,
                              check=False)
    if done.returncode not in (0, 1):
        print(f"error: demo: exit {done.returncode}: {done.stderr.strip()}", file=sys.stderr)
        return done.returncode
    row = demo_row(json.loads(done.stdout))
    print(json.dumps(row), flush=True)
    answer.add(row)
    answer.finish()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
