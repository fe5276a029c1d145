# SPDX-License-Identifier: Apache-2.0
"""The file that a measuring script writes with --out: its rows, and what they were measured on.

An answer is an object with what, commit, card, driver, versions, command, date, finished, rows.
It is written whole after each row, one row a line. A script that is killed leaves the rows so far,
with "finished" false. tests/gpu/write_results.py makes the pages of results from answers.

STOWAGE_COMMIT names the commit where the sources are no git checkout. STOWAGE_ANSWER_COMMAND is the
command to record where another script starts this one.
"""

import datetime
import json
import os
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# Flags whose value is a path of the machine.
PATH_FLAGS = ("--out", "--program", "--faults", "--session", "--scratch", "--sanitizer")


def text_of(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def find_commit():
    given = os.environ.get("STOWAGE_COMMIT", "")
    return given or text_of(["git", "-C", HERE, "describe", "--always", "--dirty", "--exclude",
                             "*"])


def command_line(arguments):
    """As one types it in the repository's root, without the machine's paths."""
    words = ["python3", os.path.relpath(os.path.abspath(arguments[0]), ROOT)]
    rest = iter(arguments[1:])
    for word in rest:
        if word in PATH_FLAGS:
            next(rest, None)
        elif not word.startswith(tuple(f"{flag}=" for flag in PATH_FLAGS)):
            words.append(word)
    return shlex.join(words)


def describe(what, program, card=None):
    """All of an answer but its rows. `card`: what to say where no GPU was used."""
    try:
        seen = json.loads(text_of([program, "doctor", "--json"]))
    except ValueError:
        seen = {}
    gpu = (seen.get("gpu") or {}) if card is None else {}
    asked = text_of(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    name, _, driver = (asked.splitlines() or [""])[0].partition(", ")
    versions = {"torch": seen.get("torch"), **{key: gpu.get(key) for key in ("cuda", "cudnn")}}
    return {"what": what, "commit": find_commit() or "unknown",
            "card": card or gpu.get("name") or name,
            "driver": "" if card else gpu.get("driver") or driver,
            "versions": {key: str(value) for key, value in versions.items() if value},
            "command": os.environ.get("STOWAGE_ANSWER_COMMAND") or command_line(sys.argv),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}


def write_answer(path, answer):
    """What was there stays until all is written."""
    head = {key: value for key, value in answer.items() if key != "rows"}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in answer["rows"])
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        file.write("\n".join(["{", *lines, '"rows": [', *([rows] if rows else []), "]}", ""]))
    os.replace(f"{path}.part", path)


class Answer:
    """An answer in the making; without a path nothing is written."""

    def __init__(self, path, head):
        self.path, self.answer = path, {**head, "finished": False, "rows": []}
        self.write()

    def write(self):
        if self.path:
            write_answer(self.path, self.answer)

    def add(self, row):
        self.answer["rows"].append(row)
        self.write()

    def finish(self):
        self.answer["finished"] = True
        self.write()


def open_answer(path, what, program, card=None):
    return Answer(path, describe(what, program, card) if path else {})
