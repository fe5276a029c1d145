#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What changed in libtorch's ops between two versions, and which of our rules that touches.

    compare_ops.py OLD.json NEW.json

Both are what `stowage-op-list` prints, built against one version each. Prints a checklist in
Markdown: first what touches something of ours, each with what to look at; then what we know nothing
of. Kernels for CUDA and the contents of kernels are not in these lists.
"""

import argparse
import json
import sys

from checklist import looks, print_sections


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        return found["torch"], found["ops"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"error: {path}: {error}; expected what stowage-op-list prints")


def kernels(op):
    return ", ".join(op["kernels"]) or "none"


def compare(old, new):
    """(heading, lines) of each kind of change."""
    both = sorted(set(old) & set(new))
    touched = {"Gone, and named by us": [], "Another schema, and named by us": [],
               "Other kernels, and a shape rule of ours": [],
               "Results are found in another way": []}
    rest = {"Gone": [], "New": [], "Another schema": []}
    for name in sorted(set(old) - set(new)):
        if old[name]["ours"]:
            touched["Gone, and named by us"].append(f"`{name}`: {looks(old[name]['ours'])}")
        else:
            rest["Gone"].append(f"`{name}`")
    for name in sorted(set(new) - set(old)):
        rest["New"].append(f"`{name}` (results by {new[name]['results_by']})")
    for name in both:
        before, now = old[name], new[name]
        if before["schema"] != now["schema"]:
            change = f"`{name}`: `{before['schema']}` is now `{now['schema']}`"
            if now["ours"]:
                touched["Another schema, and named by us"].append(f"{change}: {looks(now['ours'])}")
            else:
                rest["Another schema"].append(change)
        if before["kernels"] != now["kernels"] and "shape rule" in now["ours"]:
            touched["Other kernels, and a shape rule of ours"].append(
                f"`{name}`: {kernels(before)} became {kernels(now)}")
        if before["results_by"] != now["results_by"]:
            touched["Results are found in another way"].append(
                f"`{name}`: by {before['results_by']}, now by {now['results_by']}")
    return touched, rest


def main():
    parser = argparse.ArgumentParser(description="ops of two versions of libtorch")
    parser.add_argument("old")
    parser.add_argument("new")
    options = parser.parse_args()
    (before, old), (now, new) = read(options.old), read(options.new)
    touched, rest = compare(old, new)
    print(f"# From torch {before} to torch {now}\n\n{len(old)} ops, now {len(new)}. "
          f"{sum(map(len, touched.values()))} changes touch something of ours.")
    print_sections(touched)
    print("\n# What nothing of ours names")
    print_sections(rest, mark="-")
    return 0


if __name__ == "__main__":
    sys.exit(main())
