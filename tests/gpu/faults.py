#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a planned run on a GPU does when something goes wrong.

Signals, memory that is not there, copies that fail: each must end with the exit code and the words
below, in a given time. Then delays all over the step (the library of `ninja stowage_cuda_faults`):
the bits of every model must stay those of eager libtorch in every launch mode; and waits left out
one at a time: some must give other bits. Prints a row for each; exit code 1 when one went otherwise.

    faults.py --faults build/faults/libstowage_cuda.so [--program build/bin/stowage] [--only signals]
              [--seeds 3] [--drops 12] [--models lstm,llama] [--out FILE]
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from bits_table import MODELS, capture_arguments
from preconditions import expect_gpu, expect_known, expect_program, open_answer

SECONDS = 120  # for one run: more is a hang

MODES = ["none", "no_update", "whole"]
DIFFERENT = "DIFFERENT from the unplanned run"


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder, self.bad = options, folder, 0
        self.answer, self.check = open_answer(options.out, "faults", options.program), ""
        self.numbers = itertools.count()  # of plans

    def path(self, name):
        return os.path.join(self.folder, name)

    def call(self, arguments, faults=None):
        """(exit code, all it said); 'hang' for a run that did not end."""
        environment = dict(os.environ)
        if faults:
            environment["STOWAGE_CUDA_LIBRARY"] = os.path.abspath(self.options.faults)
            environment.update(faults)
        try:
            done = subprocess.run([self.options.program, *arguments], capture_output=True, text=True,
                                  check=False, timeout=SECONDS, env=environment)
        except subprocess.TimeoutExpired:
            return "hang", ""
        return done.returncode, done.stdout + done.stderr

    def record(self, good, **row):
        self.bad += not good
        self.answer.add({"check": self.check, **row, "good": bool(good)})

    def expect(self, what, found, code, words="", **more):
        fine = found[0] == code and words in found[1]
        said = {} if fine else {"said": found[1].strip()[-200:]}
        self.record(fine, what=what, expected=code, exit=found[0], **more, **said)
        text = found[1].strip().replace("\n", " | ")[:300]
        print(f"{'ok ' if fine else 'BAD'} {what}: exit {found[0]}: {text}", flush=True)

    def make(self, name, budget, *more):
        """A step's plan; (plan, costs) or None when it is not legal or does not fit."""
        step, costs = self.path(f"{name}.stow"), self.path(f"{name}.json")
        if not os.path.exists(step):
            for arguments in (capture_arguments(name, self.options.target, step),
                              ["profile", step, "-o", costs]):
                code, text = self.call(arguments)
                if code != 0:
                    raise SystemExit(f"{name}: {arguments[0]}: {text}")
        plan = self.path(f"{name}.{next(self.numbers)}.plan")
        code, text = self.call(["plan", step, "--budget", budget, "--costs", costs, "-o", plan,
                                *more])
        if code == 0:
            return plan, costs
        if code == 1 and ("rule V25" in text or "no schedule fits" in text):
            print(f"--  {name} {' '.join(more)}: not planned: {text.strip().splitlines()[0][:200]}",
                  flush=True)
            return None
        raise SystemExit(f"{name}: plan: exit {code}: {text}")


def check_signals(bench):
    plan, costs = bench.make("gpt2_bfloat16", "60%peak")
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        folder = bench.path(f"saved{code}")
        child = subprocess.Popen([bench.options.program, "run", plan, "--costs", costs, "--steps",
                                  "1000000", "--save", folder], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True)
        time.sleep(12)
        child.send_signal(number)
        try:
            text = child.communicate(timeout=SECONDS)[0]
        except subprocess.TimeoutExpired:
            child.kill()
            text = "hang"
        bench.expect(f"{number.name} finishes the step and saves", (child.returncode, text), code)
        bench.expect("and the checkpoint goes on",
                     bench.call(["run", plan, "--costs", costs, "--steps", "3", "--resume", folder]),
                     0, "loss")


def commands_of(plan):
    with open(plan, encoding="utf-8") as file:
        return json.load(file)["commands"]


def count_ops(plan, kind):
    return sum(command["op"] == kind for command in commands_of(plan))


def check_memory(bench):
    plan, costs = bench.make("gpt2_bfloat16", "4TiB")
    bench.expect("an arena larger than the device", bench.call(["run", plan, "--costs", costs]), 4,
                 "would fit")
    plan, costs = bench.make("gpt2_bfloat16", "50%peak")
    bench.expect("memory that cannot be pinned",
                 bench.call(["run", plan, "--costs", costs], {"STOWAGE_FAIL_PIN": "1"}), 4,
                 "--host")
    bench.expect("memory that libtorch gives away beside the plan is counted",
                 bench.call(["run", plan, "--costs", costs, "--steps", "6"],
                            {"STOWAGE_ALLOCATE": str(5 * count_ops(plan, "run"))}), 0,
                 " 1 allocations outside")
    slow = {"STOWAGE_DELAY_US": "2000"}  # much is under way when it fails
    for copy in ("0", "7", "1000"):
        bench.expect(f"copy {copy} fails",
                     bench.call(["run", plan, "--costs", costs],
                                {"STOWAGE_FAIL_COPY": copy, **slow}), 4, "starting a copy")
    plan, costs = bench.make("gpt2_bfloat16", "50%peak", "--launch", "whole")
    copies = count_ops(plan, "copy")
    for copy in (copies + 2, 2 * copies + 2):  # of steps that are recorded: the second, the third
        bench.expect(f"copy {copy} fails, in a graph",
                     bench.call(["run", plan, "--costs", costs],
                                {"STOWAGE_FAIL_COPY": str(copy), **slow}), 4, "starting a copy")


def compare(bench, plan, costs, faults):
    code, text = bench.call(["run", plan, "--costs", costs, "--steps", "4", "--compare-unplanned"],
                            {"STOWAGE_DELAY_US": "1000", **faults})
    return code, text


def delay_model(bench, name):
    """What was run and how it ended, by mode and seed."""
    done = []
    for mode in MODES:
        made = bench.make(name, "60%peak", "--launch", mode)
        for seed in range(bench.options.seeds if made else 0):
            done.append((mode, seed, compare(bench, *made, {"STOWAGE_DELAY_SEED": str(seed)})))
    return done


def check_delays(bench):
    delayed = set()
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        jobs = {pool.submit(delay_model, bench, name): name for name in bench.options.models}
        for job in concurrent.futures.as_completed(jobs):
            if not job.result():
                bench.record(False, what="no plan was run", model=jobs[job])
                print(f"BAD delays: {jobs[job]}: no plan of it was run", flush=True)
            for mode, seed, answer in job.result():
                bench.expect(f"delays: {jobs[job]} {mode} seed {seed}", answer, 0, "identical bits",
                             model=jobs[job], launch=mode, seed=seed)
                delayed.add(mode)
    if len(delayed) < len(MODES):
        bench.record(False, what=f"only {sorted(delayed)} were run")
        print(f"BAD only {sorted(delayed)} were run", flush=True)


def check_dropped_waits(bench):
    for name in ("lstm", "llama_bfloat16"):
        made = bench.make(name, "60%peak")
        bench.expect(f"{name} with all waits", compare(bench, *made, {"STOWAGE_DELAY_SEED": "1"}), 0,
                     "identical bits")
        count = count_waits(made[0])
        drops = min(bench.options.drops, count)
        # All over the step.
        waits = [count * drop // drops for drop in range(drops)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            found = dict(zip(waits, pool.map(
                lambda wait: compare(bench, *made, {"STOWAGE_DELAY_SEED": "1",
                                                    "STOWAGE_DROP_WAIT": str(wait)}), waits)))
        judge_dropped(bench, name, count, found)


def count_waits(plan):
    """Of one step, between streams."""
    commands = commands_of(plan)
    return sum(commands[other]["stream"] != command["stream"]
               for command in commands
               for other in command.get("wait", []) + command.get("prev", []))


def judge_dropped(bench, name, count, found):
    other = [wait for wait, answer in found.items() if answer[0] == 1 and DIFFERENT in answer[1]]
    failed = [wait for wait, answer in found.items() if answer[0] not in (0, 1, "hang")]
    hung = [wait for wait, answer in found.items() if answer[0] == "hang"]
    # A delay elsewhere may keep what a wait would have: not each one shows.
    enough = len(other) >= max(1, len(found) // 4)
    good = enough and not hung
    bench.record(good, model=name, waits=count, removed=len(found), differ=len(other),
                 failed=len(failed), hung=len(hung))
    print(f"{'ok ' if good else 'BAD'} {name}: of its {count} waits {list(found)} left out one at a "
          f"time: {other} give other bits, {failed} an error, {hung} did not end", flush=True)


CHECKS = {"signals": check_signals, "memory": check_memory, "delays": check_delays,
          "waits": check_dropped_waits}


def expect_injecting(parser, options):
    try:
        with open(options.faults, "rb") as library:
            injects = b"STOWAGE_DELAY_US" in library.read()
    except OSError as missing:
        parser.error(f"--faults {options.faults}: {missing.strerror}")
    if not injects:  # with it, nothing would be delayed, and every bit be right
        parser.error(f"--faults {options.faults}: injects nothing, expected the library of "
                     "'ninja stowage_cuda_faults'")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bin/stowage")
    parser.add_argument("--faults", default="build/faults/libstowage_cuda.so")
    parser.add_argument("--target", default="h200")
    parser.add_argument("--only", default=list(CHECKS), type=lambda text: text.split(","),
                        help="checks, separated by commas: " + ", ".join(CHECKS))
    parser.add_argument("--models", default=list(MODELS), type=lambda text: text.split(","),
                        help="for delays, separated by commas: " + ", ".join(MODELS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--drops", type=int, default=12)
    parser.add_argument("--out", help="answer to write, a JSON file")
    options = parser.parse_args()
    expect_known(parser, "--only", options.only, CHECKS)
    expect_known(parser, "--models", options.models, MODELS)
    expect_program(parser, options.program)
    expect_injecting(parser, options)
    expect_gpu()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        for name in options.only:
            bench.check = name
            CHECKS[name](bench)
    bench.answer.finish()
    print(json.dumps({"bad": bench.bad}), flush=True)
    return 1 if bench.bad else 0


if __name__ == "__main__":
    sys.exit(main())
