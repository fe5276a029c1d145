#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts of this folder on this machine's GPU, within a number of seconds.

First what needs the GPU for itself (memory, launch modes by time), one after the other; then, side
by side, faults and bits of every model, in deterministic mode and as users run. Everything a part
says goes into OUT/<part>.log as it says it, so that what is cut off loses nothing. Prints a line
for each part when it ends. Exit code 1 when one failed or was cut off.

    all.py [--out OUT] [--program build/bin/stowage] [--faults build/faults/libstowage_cuda.so]
           [--session build/tests/gpu_session_test] [--seconds 500] [--only bits,faults]
           [--at-once 10] [--skip-code 0]

Without a GPU it says so and ends with the exit code --skip-code (as CTest's test "gpu" does).
"""

import argparse
import os
import signal
import subprocess
import sys
import time

from bits_table import MODELS
from preconditions import why_no_gpu

HERE = os.path.dirname(os.path.abspath(__file__))
FAULTS = ["delays", "waits", "signals", "memory"]
TIMED = ["llama_bfloat16", "lstm", "gpt2_bfloat16"]
ALONE_SECONDS = 240  # for one part


def script(options, name, *arguments):
    return [sys.executable, os.path.join(HERE, name), "--program", options.program, *arguments]


def parts_alone(options):
    yield "neighbour", script(options, "neighbour.py")
    yield "steady_memory", script(options, "steady_memory.py")
    yield "memcheck", script(options, "memcheck.py")
    if os.path.exists(options.session):
        yield "session", [os.path.abspath(options.session)]
    timed = ["--steps", "200", "--in-steps", "80%peak", "--runs", "3", "--json"]
    for model in TIMED:
        yield f"launch_{model}", script(options, "bits_table.py", "--only", model, *timed,
                                        "--budgets", "60", "--launch", "none,no_update,whole")
    # Hundreds of copies a step.
    yield "copies_gpt2", script(options, "bits_table.py", "--only", "gpt2_bfloat16", *timed,
                                "--budgets", "80,60", "--launch", "none,no_update",
                                "--allow", "offload,in-place-reuse,reorder")


def find_unknown(options):
    """Beginnings of --only that are no part's."""
    names = [name for name, _ in (*parts_alone(options), *parts_together(options))]
    names += ["session", *(f"faults_{check}" for check in FAULTS)]  # may be left out, which is said
    return [word for word in options.only if not any(name.startswith(word) for name in names)]


def parts_together(options):
    # What takes longest first.
    if os.path.exists(options.faults):
        for check in FAULTS:
            yield f"faults_{check}", script(options, "faults.py", "--faults", options.faults,
                                            "--only", check, "--seeds", "1")
    models = sorted(MODELS, key=lambda name: not name.startswith(("resnet", "llama")))
    every = ["--steps", "10", "--budgets", "100,70,50,40", "--launch", "none,no_update,whole"]
    for model in models:
        yield f"bits_{model}", script(options, "bits_table.py", "--only", model, *every, "--json")
    for model in models:
        yield f"users_{model}", script(options, "bits_table.py", "--only", model, *every, "--json",
                                       "--nondeterministic")


class Part:
    """A process that writes into a file of its own."""

    def __init__(self, options, name, command):
        self.name, self.path = name, os.path.join(options.out, f"{name}.log")
        self.begin = time.time()
        with open(self.path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT,
                                            env={**os.environ, "PYTHONUNBUFFERED": "1",
                                                 "STOWAGE_EXPECT_GPU": "1"},
                                            start_new_session=True)

    def is_over(self):
        return self.process.poll() is not None

    def finish(self, end):
        """Waits until then at most; did it pass?"""
        try:
            code = self.process.wait(max(end - time.time(), 0.1))
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)  # and the programs that it runs
            self.process.wait()
            code = "cut off"
        with open(self.path, encoding="utf-8", errors="replace") as log:
            lines = log.read().strip().splitlines()
        last = "" if not lines or lines[-1].startswith("{") else lines[-1][:160]
        print(f"{'ok ' if code == 0 else 'BAD'} {self.name}: exit {code}, {len(lines)} lines, "
              f"{time.time() - self.begin:.0f} s: {last}", flush=True)
        return code == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="gpu", help="folder for the logs; made if need be")
    parser.add_argument("--program", default="build/bin/stowage")
    parser.add_argument("--faults", default="build/faults/libstowage_cuda.so",
                        help="without this file, faults are left out, which is said")
    parser.add_argument("--session", default="build/tests/gpu_session_test",
                        help="likewise the test of the C++ session")
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--only", default="", type=lambda text: tuple(text.split(",")),
                        help="parts whose names begin with one of these")
    parser.add_argument("--at-once", type=int, default=10, help="processes side by side")
    parser.add_argument("--skip-code", type=int, default=0, help="exit code where no GPU is")
    parser.add_argument("--why", action="store_true", help="only say whether there is a GPU")
    options = parser.parse_args()
    unknown = find_unknown(options)
    if unknown:
        parser.error(f"--only {','.join(unknown)}: no part begins so")
    missing = why_no_gpu()
    if missing:
        print(f"skipped: no GPU here ({missing})", flush=True)
        return options.skip_code
    if options.why:
        print("will run: there is a GPU", flush=True)
        return 0
    os.makedirs(options.out, exist_ok=True)
    end, good = time.time() + options.seconds, True
    for what, path in (("faults", options.faults), ("the C++ session", options.session)):
        if not os.path.exists(path):
            print(f"--  no {path}: {what} left out", flush=True)
    for name, command in parts_alone(options):
        if name.startswith(options.only):
            part = Part(options, name, command)
            good &= part.finish(min(end, part.begin + ALONE_SECONDS))
    good &= run_together(options, end)
    return 0 if good else 1


def run_together(options, end):
    """More at once are slower altogether: each op's measurement waits for the others'."""
    waiting = [part for part in parts_together(options) if part[0].startswith(options.only)]
    running, good = [], True
    while running or waiting:
        while waiting and len(running) < options.at_once and time.time() < end:
            running.append(Part(options, *waiting.pop(0)))
        for part in [part for part in running if part.is_over() or time.time() >= end]:
            running.remove(part)
            good &= part.finish(end)
        if waiting and time.time() >= end:
            print(f"BAD not begun: {', '.join(name for name, _ in waiting)}", flush=True)
            return False
        time.sleep(0.2)
    return good


if __name__ == "__main__":
    sys.exit(main())
