#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""In what the captured steps of the example models differ between two versions of torch.

    compare_captures.py OLD NEW

Both are programs `stowage`, built against one version each. All models, in each precision they
have, for the CPU and for two GPUs that need not be there, deterministic and not. Prints a list in
Markdown: a line for each capture that differs, with the ops that only one of them has, or with what
one of them says against it.
"""

import argparse
import collections
import json
import re
import subprocess
import sys

DEVICES = (["--device", "cpu"], *(
    ["--device", "cuda", "--target", target, *more]
    for target in ("h100", "rtx4090") for more in ([], ["--nondeterministic"])))


def ask(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def captures_of(program):
    """The arguments of each."""
    done = ask(program, "capture", "--list", "--json")
    if done.returncode != 0:
        sys.exit(f"error: {program} capture --list: {done.stderr.strip()}")
    for model in json.loads(done.stdout)["models"]:
        choices = [setting.get("choices", []) for setting in model["settings"]
                   if setting["name"] == "precision"]
        for precision in choices[0] if choices else [None]:
            for device in DEVICES:
                chosen = ["--set", f"precision={precision}"] if precision else []
                yield [model["name"], *chosen, *device]


def graph_of(program, arguments):
    """Its lines, without the version of torch and the checksum over it; or what was wrong."""
    done = ask(program, "capture", *arguments, "-q", "-o", "-")
    if done.returncode != 0:
        return [f"refused: {done.stderr.strip()}"]
    text = re.sub(r' producer="[^"]*"', "", done.stdout)
    return [line for line in text.splitlines() if not line.startswith("// checksum ")]


def ops_in(lines):
    return collections.Counter(found[1] for line in lines
                               if (found := re.search(r"= ([\w:]+(?:\.\w+)+)\(", line)))


def difference(old, new):
    """ "" where the graphs are the same."""
    if old == new:
        return ""
    refusals = [f"{name} {lines[0]}" for name, lines in (("old", old), ("new", new))
                if lines[:1] and lines[0].startswith("refused: ")]
    if refusals:
        return "; ".join(refusals)
    before, now = ops_in(old), ops_in(new)
    parts = [f"{sign}{count} {op}" for sign, some in (("-", before - now), ("+", now - before))
             for op, count in sorted(some.items())]
    return ", ".join(parts) or "the same ops with other arguments or sizes"


def main():
    parser = argparse.ArgumentParser(description="captured steps of two versions of torch")
    parser.add_argument("old")
    parser.add_argument("new")
    options = parser.parse_args()
    print("# Captured steps")
    count = same = 0
    for arguments in captures_of(options.old):
        found = difference(graph_of(options.old, arguments), graph_of(options.new, arguments))
        count += 1
        same += not found
        if found:
            print(f"- `{' '.join(arguments)}`: {found}", flush=True)
    print(f"\n{same} of {count} are the same.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
