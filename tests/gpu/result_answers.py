# SPDX-License-Identifier: Apache-2.0
"""Answers of measuring scripts, read and joined by kind, for write_results.py.

A row that a later answer has again replaces the earlier one, unless that was bad: a bad row goes
only when its file does. A part that was cut off counts as such until an answer has it finished.
"""

import collections
import json
import pathlib

from bits_table import is_expected

HEAD = ("what", "commit", "card", "driver", "versions", "command", "date", "rows")
# Which fields say that two rows are of the same thing.
KEYS = {"bits": ("model", "budget", "launch"), "users": ("model", "budget", "launch"),
        "memory": ("check", "model", "launch"), "memcheck": ("launch",), "session": ("test",),
        "faults": ("check", "what", "model", "launch", "seed"),
        "large": ("case", "checkpointing", "run", "budget", "mode", "costs"),
        "deterministic": ("case", "run", "budget"),
        "small": ("model", "allow", "budget", "launch"), "demo": ("model",),
        "python": ("check", "case"), "host_updates": ("model",),
        "ranks": ("case", "run", "mode", "budget")}
GOOD_WORDS = ("equal", "ran", "not legal", "does not fit")


class Malformed(Exception):
    """A file that is no answer."""


def read_answer(path):
    try:
        answer = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Malformed(f"{path}: {error}") from error
    if not isinstance(answer, dict):
        raise Malformed(f"{path}: found no object, expected an answer")
    missing = [key for key in HEAD if key not in answer]
    if missing:
        raise Malformed(f"{path}: found no field '{missing[0]}', expected {', '.join(HEAD)}")
    if answer["what"] not in KEYS:
        raise Malformed(f"{path}: found the kind '{answer['what']}', expected one of "
                        f"{', '.join(KEYS)}")
    return answer


def read_answers(folder):
    """By kind, the earliest answer first."""
    answers = collections.defaultdict(list)
    found = [(read_answer(path), path.stem) for path in sorted(pathlib.Path(folder).glob("*.json"))]
    for answer, stem in sorted(found, key=lambda pair: (pair[0]["date"], pair[1])):
        answers[answer["what"]].append({"parts": default_parts(answer, stem), **answer})
    return answers


def default_parts(answer, stem):
    return {stem: "finished" if answer.get("finished", True) else "cut off"}


def is_bad(kind, row):
    """Not as promised. What was not run for want of time is not bad, and neither is a peer's
    failure."""
    if row.get("run") in ("hugging_face", "peer") or is_left_out(row):
        return False
    if kind in ("bits", "users"):
        return not is_expected(row)
    if "good" in row:
        return not row["good"]
    if kind == "session":
        return row["verdict"] not in ("completed", "skipped")
    return not row["verdict"].startswith(GOOD_WORDS)


def is_left_out(row):
    return row.get("verdict", "").startswith("not run")


def key_of(kind, row):
    if row.get("smallest"):  # its bytes follow from costs, which differ each time
        row = {**row, "budget": "smallest"}
    return tuple(row.get(field) for field in KEYS[kind])


class Results:
    """All rows of a kind, and which parts were not finished."""

    def __init__(self, kind, answers):
        self.kind, self.answers, self.states = kind, answers, {}
        rows = {}
        for answer in answers:
            self.states.update(answer["parts"])
            seen = collections.Counter()
            for row in answer["rows"]:
                key = key_of(kind, row)
                seen[key] += 1
                key = (*key, seen[key])
                if key in rows and is_left_out(row):
                    continue
                while key in rows and is_bad(kind, rows[key]):
                    key = (*key, "again")
                rows[key] = row
        self.rows = list(rows.values())
        self.bad = [row for row in self.rows if is_bad(kind, row)]

    def __bool__(self):
        return bool(self.answers)

    def unfinished(self):
        return [f"{name} ({state})" for name, state in sorted(self.states.items())
                if state != "finished"]


def join_answers(answers):
    return {kind: Results(kind, answers.get(kind, [])) for kind in KEYS}
