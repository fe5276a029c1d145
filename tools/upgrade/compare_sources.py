#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What changed between two versions of torch in the tables that its kernels for CUDA and its
backward formulas are generated from, and in what Python says of results and decompositions.

    compare_sources.py OLD NEW [--ours OPS.json]

Both are folders that hold the packages torch and torchgen (a site-packages). OPS.json is what
`stowage-op-list` prints: of results and decompositions, only ops that we name are then listed.
Prints a checklist in Markdown. Needs PyYAML. What kernels do inside is in none of these.
"""

import argparse
import os
import sys

import yaml

from checklist import print_sections
from compare_metas import compare_metas

# Tags that something of ours relies on.
TAGS = {"nondeterministic_seeded": "`random` of its row in ir/graph/op_table.cpp",
        "nondeterministic_bitwise": "`repeatable` of its row in ir/graph/op_table.cpp",
        "data_dependent_output": "runtime/capture/ops/op_facts.cpp",
        "dynamic_output_shape": "runtime/capture/ops/op_facts.cpp"}


def read(folder, name):
    path = os.path.join(folder, "torchgen/packaged", name)
    try:
        with open(path, encoding="utf-8") as file:
            return yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, yaml.YAMLError) as error:
        sys.exit(f"error: {path}: {error}; expected a folder that holds torch and torchgen")


def as_set(value):
    return set(value.split(",")) if isinstance(value, str) else set(value or ())


class Op:
    def __init__(self, entry):
        self.delegate = entry.get("structured_delegate")
        self.kernels = {}
        alone = {} if self.delegate else {"CompositeImplicitAutograd": ""}
        for keys, kernel in (entry.get("dispatch") or alone).items():
            self.kernels.update((key.strip(), kernel) for key in keys.split(","))
        self.tags = {tag.strip() for tag in as_set(entry.get("tags"))} & set(TAGS)


def read_ops(folder):
    entries = read(folder, "ATen/native/native_functions.yaml")
    ops = {entry["func"].split("(")[0]: Op(entry) for entry in entries}
    for op in ops.values():
        # A structured op has the kernels of the one that writes into its last argument.
        if op.delegate in ops:
            op.kernels = {**ops[op.delegate].kernels, **op.kernels}
    return ops


def decides_by_device(op):
    """One kernel on CUDA, made of other ops where a device has none."""
    return "CUDA" in op.kernels and "CompositeImplicitAutograd" in op.kernels


def read_formulas(folder):
    """The backward formulas of an op by its name."""
    return {entry["name"].split("(")[0]: {key: value for key, value in entry.items()
                                          if key not in ("name", "result", "dispatch")}
            for entry in read(folder, "autograd/derivatives.yaml")}


def compare_ops(old, new):
    deciding = [{name for name, op in ops.items() if decides_by_device(op)} for ops in (old, new)]
    lines = {"One kernel on CUDA, made of others elsewhere": [
        f"`{name}` {'is new' if name in deciding[1] else 'is gone'}: registerKernelsThatDecide in "
        "runtime/torch/internals/fake_gpu.cpp" for name in sorted(deciding[0] ^ deciding[1])]}
    kernels, tags = [], []
    for name in sorted(set(old) & set(new)):
        before, now = old[name].kernels.get("CUDA"), new[name].kernels.get("CUDA")
        if before != now:
            kernels.append(f"`{name}`: {before or 'none'} became {now or 'none'}")
        for tag in sorted(old[name].tags ^ new[name].tags):
            is_new = tag in new[name].tags
            tags.append(f"`{name}` is {'now' if is_new else 'no longer'} {tag}: {TAGS[tag]}")
    return {**lines, "Other kernels for CUDA": kernels, "Other properties": tags}


def compare_formulas(old, new):
    lines = []
    for name in sorted(set(old) & set(new)):
        for key in sorted(set(old[name]) | set(new[name]), key=str):
            before, now = old[name].get(key), new[name].get(key)
            if before != now:
                lines.append(f"`{name}`, `{key}`: `{before}` became `{now}`")
    return {"Other backward formulas: same bits? branches on values (backward_advice.cpp)?": lines}


def main():
    parser = argparse.ArgumentParser(description="tables of two versions of torch")
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--ours")
    options = parser.parse_args()
    changes = {**compare_ops(read_ops(options.old), read_ops(options.new)),
               **compare_formulas(read_formulas(options.old), read_formulas(options.new)),
               **compare_metas(options.old, options.new, options.ours)}
    print("# Kernels for CUDA, backward formulas, and what Python says of ops")
    print_sections(changes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
