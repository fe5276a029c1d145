#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Step times of large models on many GPUs, on paper: plans from the profile's estimates.

Captures Llama shapes for a target, plans them for so many ranks, and writes the table of
tools/docs/scaling.md. No GPU takes part. The link is one of three: what two H100 of one host were
measured to have between them, or rates that others have published for eight GPUs a host with
400 Gb/s each.

    scaling.py [--program build/bin/stowage] [--only NAME] [--write]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "tools", "docs", "scaling.md")
BEGIN, END = "<!-- written by tools/bench/scaling.py -->", "<!-- end -->"

# Between the GPUs of a host the profile's. Between hosts, bytes that a rank receives in a second:
# a gather brings each host a part once and passes it on inside (NCCL issue 1218: 200 GB/s of
# 256 H100); an all_to_all brings a rank its own parts over its own adapter (nccl-tests issue 290:
# 46 to 48 GB/s of 400 Gb/s).
GATHERED, EXCHANGED, LATENCY = 200e9, 47e9, "60us"
HOST = 8

CASES = {
    "8B": ("llama3.1-8b", [(8, "76GiB", []), (64, "76GiB", []), (512, "76GiB", []),
                           (8, "22GiB", [])]),
    "70B": ("llama3-70b", [(8, "76GiB", []), (64, "76GiB", []), (512, "76GiB", []),
                           (8, "22GiB", [])]),
}


def run(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"error: {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return done


def link(ranks):
    """One rate for the gathers of forward and backward and the exchange of gradients: of three
    equal parts, two are gathered."""
    if ranks <= HOST:
        return []
    rate = 3 / (2 / GATHERED + 1 / EXCHANGED)
    return ["--between-ranks", f"{round(rate / 1e9)}GB:{LATENCY}"]


def binds(plan):
    """What a step takes longest for, beside its ops."""
    predicted = plan["predicted"]
    stalls = {"ranks": "the link between ranks", "h2d": "prefetches", "d2h": "offloads"}
    most = max(stalls, key=lambda name: predicted["stall_ns"].get(name, 0))
    waits = predicted["stall_ns"].get(most, 0)
    if waits < 0.02 * predicted["step_ns"]:
        return "compute"
    return f"{stalls[most]}: {waits / predicted['step_ns']:.0%} of the step"


def row(program, folder, name, step, case):
    ranks, budget, more = case
    out = os.path.join(folder, "plan.json")
    done = run(program, "plan", step, "--ranks", str(ranks), "--budget", budget, *link(ranks),
               "--time-limit", "60", *more, "-f", "-o", out)
    if done.returncode == 1:
        smallest = re.search(r"budget that works: (\d+)B", done.stderr)
        least = f"{int(smallest[1]) / 2**30:.1f} GiB at least" if smallest else "does not fit"
        return [name, ranks, budget, least, "", "", ""]
    with open(out, encoding="utf-8") as file:
        plan = json.load(file)
    predicted = plan["predicted"]
    host = plan["spaces"]["host"]["arena_bytes"] / 2**30
    seconds = predicted["step_ns"] / 1e9
    return [name, ranks, budget, f"{seconds:.2f} s", f"{4096 / seconds:.0f}", f"{host:.0f} GiB",
            binds(plan)]


def table(program, only):
    lines = ["| model | GPUs | budget each | step | tokens/s a GPU | host memory each | what binds |",
             "|--|--|--|--|--|--|--|"]
    with tempfile.TemporaryDirectory() as folder:
        for name, (preset, cases) in CASES.items():
            if only not in ("", name):
                continue
            step = os.path.join(folder, "step.stow")
            run(program, "capture", "llama", "--set", f"preset={preset}", "--set", "batch=1",
                "--set", "sequence=4096", "--set", "precision=bfloat16", "--set",
                "optimizer=stowage_adamw", "--device", "cuda", "--target", "h100", "-fq", "-o", step)
            for case in cases:
                cells = row(program, folder, name, step, case)
                lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
                print(lines[-1], flush=True)
    return lines


def main():
    parser = argparse.ArgumentParser(description="step times on many GPUs, on paper")
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "bin", "stowage"))
    parser.add_argument("--only", default="", choices=["", *CASES])
    parser.add_argument("--write", action="store_true", help="the page")
    options = parser.parse_args()
    lines = table(options.program, options.only)
    if options.write:
        with open(PAGE, encoding="utf-8") as file:
            text = file.read()
        head, rest = text.split(BEGIN)
        tail = rest.split(END)[1]
        text = head + "\n".join([BEGIN, "", *lines, "", END]) + tail
        with open(PAGE + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(PAGE + ".new", PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
