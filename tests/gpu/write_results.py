#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the pages of results from the answers of measuring scripts: tests/gpu/RESULTS.md, and the
marked blocks of tools/docs/results.md and README.md.

    write_results.py [--check] [--root FOLDER]
      --check   write nothing; exit 1, naming the files, when they are not what would be written

Answers are tests/gpu/results/*.json. A block of a page lies between the lines
`<!-- results:NAME begin -->` and `<!-- results:NAME end -->`. No number there is typed in.
Exit code 2: an answer or a page is malformed.
"""

import argparse
import collections
import os
import pathlib
import re
import sys
import textwrap

from result_answers import Malformed, join_answers, read_answers
from python_tables import python_tables
from ranks_tables import ranks_tables
from result_summary import summary, summary_rows
from result_tables import (CASES, NOT_MEASURED, bits_tables, bold, demo_tables, error_of,
                           faults_tables, gibibytes, host_updates_tables, large_tables, memcheck_tables, memory_tables,
                           name_of, of_case, per_cent, seconds, session_tables, small_tables, table)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ANSWERS, OUT = "tests/gpu/results", "tests/gpu/RESULTS.md"
# Section, kind, what its tables show, the tables.
SECTIONS = [
    ("Bits", "bits", "Each model is trained by its plan in these shares of its unplanned peak, in "
     "deterministic mode, and compared with plain libtorch byte for byte. Launch modes: `none` "
     "launches each op; `no_update` makes forward and backward one CUDA graph; `whole` the step.",
     bits_tables),
    ("Bits in default mode", "users", "The same without deterministic mode, compared wherever "
     "plain libtorch repeats itself.", bits_tables),
    ("Memory", "memory", "Device memory as the driver counts it while steps run, and beside a "
     "process that holds the rest of the GPU.", memory_tables),
    ("Faults", "faults", "Signals, injected failures and delays, and waits removed from a plan.",
     faults_tables),
    ("Memcheck", "memcheck", "Planned steps of a small GPT-2 under compute-sanitizer's memcheck.",
     memcheck_tables),
    ("Updates on the host", "host_updates",
     "The same training with all updates on the host and on the GPU.", host_updates_tables),
    ("Session", "session", "The C++ session in a training loop.", session_tables),
    ("Large models", "large", "Training in bf16 with AdamW in default mode: plain libtorch, what "
     "one does by hand, and plans.", large_tables),
    ("Large models, deterministic mode", "deterministic", "The same models for a few steps in a "
     "tight budget, compared with plain libtorch byte for byte.", large_tables),
    ("Small steps", "small", "Launch-bound steps: each plan runs several times in processes of its "
     "own.", small_tables),
    ("Python", "python", "Hugging Face models trained by the Python package: bits in deterministic "
     "mode beside plain PyTorch; a Llama of 1B (batch 4 x 4096) and LoRA on one of 8B (1 x 4096), "
     "bf16, through the decorator and through the Trainer; plans that take turns on one state; device "
     "memory released between steps (the first copy into memory that another process has just "
     "given back runs at half the rate: the driver clears it meanwhile). The memory of the device "
     "is what its driver counts, with 2 GiB of the user's beside the Trainer.", python_tables),
    ("Several GPUs", "ranks", "The same shapes trained by plans on all GPUs of a host, beside what "
     "users set: bf16, AdamW, 4096 tokens a row, a batch of its own for each rank. Memory is what "
     "a peer allocates (its allocator reserves more) and the whole of a plan's arena.",
     ranks_tables),
    ("Demonstration", "demo", "`tools/dev demo` trains GPT-2 on the CPU.", demo_tables),
]


def machine_of(answer):
    driver = f"driver {answer['driver']}" if answer["driver"] else ""
    versions = ", ".join(f"{name} {value}" for name, value in answer["versions"].items())
    return [part for part in (answer["card"], driver, versions) if part]


def command_lines(command):
    """As a shell takes it, in lines of at most 100 columns."""
    parts = textwrap.wrap(command, 94, break_long_words=False, break_on_hyphens=False)
    return " \\\n    ".join(parts).split("\n")


def provenance(results):
    """The commands, and what they ran on."""
    lines, seen = [], set()
    for answer in results.answers:
        machine = "; ".join(machine_of(answer))
        where = f"Commit {answer['commit']}; {machine}; {answer['date'][:10]}."
        if (answer["command"], where) in seen:
            continue
        seen.add((answer["command"], where))
        lines += ["```", *command_lines(answer["command"]), "```", *textwrap.wrap(where, 100)]
    return lines


def machines(found, kinds):
    """One line: on which cards, by which commits of which days."""
    commits = collections.defaultdict(lambda: collections.defaultdict(set))
    for kind in kinds:
        for answer in found[kind].answers:
            commits[answer["card"]][answer["date"][:10]].add(answer["commit"])
    return [f"{card}, commit{'s' if sum(map(len, days.values())) > 1 else ''} "
            + ", ".join(f"{', '.join(sorted(names))} ({day})" for day, names in sorted(days.items()))
            for card, days in sorted(commits.items())]


def make_page(found):
    lines = ["# Measured results", "", "<!-- written by tests/gpu/write_results.py -->", "",
             "The tables of the sections below, counted.",
             "", *summary(found)]
    for section, kind, shows, tables in SECTIONS:
        results = found[kind]
        lines += ["", f"## {section}", ""]
        lines += [*textwrap.wrap(shows, 100), ""]
        if not results:
            lines.append(f"{NOT_MEASURED.capitalize()}.")
            continue
        lines += [*provenance(results), "", *tables(results)]
    return "\n".join([*lines, ""])


# --- blocks of other pages ------------------------------------------------------------------------

def block_of(lines, found, kinds):
    if not any(found[kind] for kind in kinds):
        return [f"{NOT_MEASURED.capitalize()}."]
    return [*textwrap.wrap(f"Measured on {'; '.join(machines(found, kinds))}.", 100), "", *lines]


def large_block(found):
    lines = []
    for case, title in CASES.items():
        rows = [row for row in of_case(found["large"], case) if "step_s" in row]
        lines.append((bold(title), "", "", "") if rows else (bold(title), "not measured", "", ""))
        for row in rows:
            error = error_of(row)
            lines.append((name_of(row), gibibytes(row["peak_bytes"], 1), seconds(row["step_s"]),
                          error and f"{seconds(row['predicted_s'])} ({per_cent(error)})"))
    return block_of(table(["training in bf16 with AdamW", "device memory", "a step",
                           "predicted (error)"], lines), found, ["large"])


def best_of(rows):
    """Those that no other beats in memory and time as shown; of equal ones the first."""
    shown = {(round(row["peak_bytes"] / 2**30, 1), round(row["step_s"], 3)): row
             for row in reversed(rows)}
    return [row for (memory, time), row in shown.items()
            if not any(other != (memory, time) and other[0] <= memory and other[1] <= time
                       for other in shown)]


def short_rows(found, case):
    """Plain libtorch; the best of what one does by hand; plans with its bits: by memory, so that
    peers stand beside each other. None without anything to compare with."""
    rows = [row for row in of_case(found["large"], case) if "step_s" in row]
    plain = [row for row in rows if row["run"] == "eager" and not row.get("checkpointing")]
    hand = [row for row in rows if row["run"] != "planned" and row not in plain]
    most = plain[0]["peak_bytes"] if plain else float("inf")
    hand = best_of([row for row in hand if row["peak_bytes"] < most])
    plans = [row for row in rows if row["run"] == "planned" and not row.get("checkpointing")
             and "/" not in row["budget"]
             and row.get("out_bytes", 0) + row.get("in_bytes", 0) > 0]
    if not plain + hand:
        return []
    return plain + sorted(hand + plans, key=lambda row: -row["peak_bytes"])


def short_block(found):
    lines = []
    for case, title in CASES.items():
        rows = short_rows(found, case)
        lines += [(bold(title), "", "")] if rows else []
        lines += [(bold(name_of(row)) if row["run"] == "planned" else name_of(row),
                   gibibytes(row["peak_bytes"], 1), seconds(row["step_s"])) for row in rows]
    return block_of(table(["training in bf16 with AdamW", "device memory", "a step"], lines), found,
                    ["large"])


def checks_block(found):
    kinds = list(found)
    return block_of(table(["promised", "found"], [row[:2] for row in summary_rows(found)]), found,
                    kinds)


def demo_block(found):
    return block_of(demo_tables(found["demo"]), found, ["demo"])


def bits_block(found):
    """What is promised of each planned run."""
    return table(["promised", "found"], [(promise, text) for promise, text, section in
                                         summary_rows(found) if section.startswith("Bits")])


def ranks_block(found):
    return block_of(ranks_tables(found["ranks"]), found, ["ranks"])


BLOCKS = {"README.md": {"large": short_block, "bits": bits_block},
          "tools/docs/results.md": {"large": large_block, "checks": checks_block,
                                    "demo": demo_block},
          "tools/docs/ranks.md": {"ranks": ranks_block}}
BLOCK = re.compile(r"<!-- results:([\w-]+) begin -->\n.*?<!-- results:\1 end -->", re.DOTALL)


def fill_blocks(name, text, found):
    """The page with its blocks written anew."""
    makers = BLOCKS[name]
    there = BLOCK.findall(text)
    if sorted(there) != sorted(makers) or text.count("<!-- results:") != 2 * len(makers):
        raise Malformed(f"{name}: found the marked blocks {', '.join(there) or '(none)'}, expected "
                        f"each of {', '.join(makers)} once")
    return BLOCK.sub(lambda m: "\n".join([f"<!-- results:{m[1]} begin -->", *makers[m[1]](found),
                                          f"<!-- results:{m[1]} end -->"]), text)


def make_pages(root):
    """{path: text}, and whether there is any answer."""
    found = join_answers(read_answers(root / ANSWERS))
    pages = {OUT: make_page(found)}
    for name in BLOCKS:
        pages[name] = fill_blocks(name, (root / name).read_text(encoding="utf-8"), found)
    return pages, any(found.values())


def write_whole(path, text):
    """What was there stays until all is written."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true",
                        help="write nothing; exit 1 when a page differs")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="of the checkout")
    options = parser.parse_args()
    try:
        pages, measured = make_pages(options.root)
    except Malformed as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    differ = [name for name, text in pages.items() if not (options.root / name).exists()
              or (options.root / name).read_text(encoding="utf-8") != text]
    if not options.check:
        for name in differ:
            write_whole(options.root / name, pages[name])
        return 0
    if not measured:  # Nothing that blocks of other pages could be compared with.
        differ = [name for name in differ if name == OUT]
    for name in differ:
        print(f"error: {name}: found other figures than {ANSWERS} has; tests/gpu/write_results.py "
              "writes it", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
