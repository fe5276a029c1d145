#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts of this folder on this machine's GPU, within a number of seconds.

First what needs the GPU for itself (memory, launch modes by time, large models), one after the
other; then, side by side, faults and bits of every model, in deterministic mode and as users run.
Everything a part says goes into OUT/<part>.log as it says it, its answer into OUT/parts. When a
part ends, a line is printed and OUT/answers is written: an answer for each word of --only, or for
each kind without --only. Exit code 1 when a part failed or was cut off.

    all.py [--out OUT] [--program build/bin/stowage] [--faults build/faults/libstowage_cuda.so]
           [--session build/tests/gpu_session_test] [--seconds 500] [--only bits,faults]
           [--at-once 10] [--skip-code 0]

parts.py has the parts. Without a GPU it says so and ends with the exit code --skip-code (as CTest's
test "gpu" does).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time

from parts import (chosen_by, find_unknown, parts_alone, parts_large, parts_python,
                   parts_together)
from preconditions import command_line, describe, find_commit, why_no_gpu, write_answer

ALONE_SECONDS = 240  # for one part
LAST_SECONDS = 45  # before the end no large run is started
TOGETHER_SECONDS = 200  # what large runs leave to faults and bits


class Part:
    """A process that writes into files of its own."""

    def __init__(self, options, name, kind, command):
        self.name, self.kind, self.path = name, kind, os.path.join(options.out, f"{name}.log")
        self.word, self.program = chosen_by(options, name, kind), options.program
        self.answer_path = os.path.join(options.out, "parts", f"{name}.json")
        self.begin, self.state = time.time(), "cut off"
        if os.path.exists(self.answer_path):  # of an earlier call
            os.remove(self.answer_path)
        if kind == "session":
            command = [*command, f"--gtest_output=json:{self.answer_path}.gtest"]
        else:
            command = [*command, "--out", self.answer_path]
        with open(self.path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT,
                                            env={**os.environ, "PYTHONUNBUFFERED": "1",
                                                 "STOWAGE_ANSWER_COMMAND": command_line(sys.argv),
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
        self.state = self.find_state(code)
        print(f"{'ok ' if code == 0 else 'BAD'} {self.name}: exit {code}, {len(lines)} lines, "
              f"{time.time() - self.begin:.0f} s: {last}", flush=True)
        return code == 0

    def find_state(self, code):
        if self.kind == "session" and code != "cut off":
            write_session(self.program, self.answer_path)
        answer = self.answer()
        if answer and answer["finished"]:
            return "finished"
        return code if code == "cut off" else f"exit {code}"

    def answer(self):
        """None for one that never wrote any."""
        try:
            with open(self.answer_path, encoding="utf-8") as file:
                return json.load(file)
        except OSError:
            return None


def write_session(program, path):
    """GoogleTest's own answer as ours."""
    try:
        with open(f"{path}.gtest", encoding="utf-8") as file:
            suites = json.load(file)["testsuites"]
    except (OSError, ValueError):
        return
    rows = [{"test": f"{suite['name']}.{test['name']}",
             "verdict": "failed" if test.get("failures") else test["result"].lower()}
            for suite in suites for test in suite["testsuite"]]
    write_answer(path, {**describe("session", program), "command": command_line(sys.argv),
                        "finished": True, "rows": rows})


class Answers:
    """What parts answered: one file for each word of --only, or for each of a word's kinds."""

    def __init__(self, folder, not_begun):
        self.folder, self.done, self.not_begun = folder, [], not_begun  # [(name, word, kind)]
        os.makedirs(folder, exist_ok=True)

    def add(self, part):
        self.done.append(part)
        self.not_begun = [other for other in self.not_begun if other[0] != part.name]
        kinds = {(other.word, other.kind) for other in self.done}
        for word, kind in sorted(kinds):
            several = sum(other == word for other, _ in kinds) > 1
            name = word if word and not several else kind if not word else f"{word}_{kind}"
            self.write(os.path.join(self.folder, f"{name}.json"), word, kind)

    def write(self, path, word, kind):
        mine = [part for part in self.done if (part.word, part.kind) == (word, kind)]
        found = [answer for answer in (part.answer() for part in mine) if answer]
        if not found:
            return
        states = {part.name: part.state for part in mine}
        states.update({name: "not begun" for name, other, its in self.not_begun
                       if (other, its) == (word, kind)})
        write_answer(path, {**found[0], "finished": set(states.values()) == {"finished"},
                            "parts": states, "rows": [row for a in found for row in a["rows"]]})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="gpu", help="folder for logs and answers; made if need be")
    parser.add_argument("--program", default="build/bin/stowage")
    parser.add_argument("--faults", default="build/faults/libstowage_cuda.so",
                        help="without this file, faults are left out, which is said")
    parser.add_argument("--session", default="build/tests/gpu_session_test",
                        help="likewise the test of the C++ session")
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--only", default="", type=lambda text: tuple(text.split(",")),
                        help="parts whose names begin with one of these words, or whose "
                        "kind of answer it is; large, hugging_face, deterministic and python only so")
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
    os.makedirs(os.path.join(options.out, "parts"), exist_ok=True)
    if not find_commit():
        print("--  no git checkout: STOWAGE_COMMIT names the commit for answers", flush=True)
    for what, path in (("faults", options.faults), ("the C++ session", options.session)):
        if not os.path.exists(path):
            print(f"--  no {path}: {what} left out", flush=True)
    return 0 if run_all(options, time.time() + options.seconds) else 1


def run_all(options, end):
    alone, python, large, together = (
        [part for part in parts(options) if chosen_by(options, *part[:2]) is not None]
        for parts in (parts_alone, parts_python, parts_large, parts_together))
    answers = Answers(os.path.join(options.out, "answers"),
                      [(name, chosen_by(options, name, kind), kind)
                       for name, kind, _ in alone + python + large + together])
    good = True
    for name, kind, command in alone:
        part = Part(options, name, kind, command)
        good &= part.finish(min(end, part.begin + ALONE_SECONDS))
        answers.add(part)
    for name, kind, command in python:
        part = Part(options, name, kind, command)
        good &= part.finish(end)
        answers.add(part)
    last = end - (TOGETHER_SECONDS if together else 0)
    for name, kind, command in large:
        left = last - LAST_SECONDS - time.time()
        if left <= 0:
            print(f"BAD not begun: {name}", flush=True)
            good = False
            continue
        part = Part(options, name, kind, [*command, "--seconds", f"{left:.0f}"])
        good &= part.finish(last)
        answers.add(part)
    return run_together(options, together, answers, end) and good


def run_together(options, waiting, answers, end):
    """More at once are slower altogether: each op's measurement waits for the others'."""
    running, good = [], True
    while running or waiting:
        while waiting and len(running) < options.at_once and time.time() < end:
            running.append(Part(options, *waiting.pop(0)))
        for part in [part for part in running if part.is_over() or time.time() >= end]:
            running.remove(part)
            good &= part.finish(end)
            answers.add(part)
        if waiting and not running and time.time() >= end:
            print(f"BAD not begun: {', '.join(name for name, _, _ in waiting)}", flush=True)
            return False
        time.sleep(0.2)
    return good


if __name__ == "__main__":
    sys.exit(main())
