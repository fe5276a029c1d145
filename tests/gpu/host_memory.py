#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Host memory of a planned run on a GPU while it takes steps, as the kernel counts it from outside.

Runs a plan with the states on the host and looks at the process's mappings. The pinned arena is the
one that is not copied to children and asks for huge pages. It must have the plan's bytes in memory
from the first step on, in whole pages; on a machine of several NUMA nodes 99 % on the GPU's node.
Exit code 1 when it has not.

    host_memory.py [--program build/bin/stowage] [--steps 1000] [--budget 60%peak] [--out FILE]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from bits_table import call, capture_arguments
from preconditions import expect_gpu, open_answer

MODEL = "gpt2_bfloat16"
PAGE = 4096
HEAD = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) ")
NODE = re.compile(r"\bN(\d+)=(\d+)")


def read(path):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def pinned_arena(pid):
    """(address, bytes in memory) of the largest; nothing while there is none."""
    found, begin, resident = [], "", 0
    for line in read(f"/proc/{pid}/smaps").splitlines():
        head = HEAD.match(line)
        if head:
            begin = head[1] if head[3].startswith("rw") else ""
        elif line.startswith("Rss:"):
            resident = int(line.split()[1]) * 1024
        elif line.startswith("VmFlags:") and begin and {"dc", "hg"} <= set(line.split()[1:]):
            found.append((begin, resident))
    return max(found, key=lambda arena: arena[1], default=None)


def pages_by_node(pid, begin):
    """{node: bytes} of that mapping, and its policy."""
    for line in read(f"/proc/{pid}/numa_maps").splitlines():
        address, policy = line.split()[:2]
        if int(address, 16) == int(begin, 16):
            size = int(re.search(r"kernelpagesize_kB=(\d+)", line)[1]) * 1024
            return {int(node): int(pages) * size for node, pages in NODE.findall(line)}, policy
    return {}, ""


def node_of_gpu():
    """-1: not known."""
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=pci.bus_id", "--format=csv,noheader"],
                              capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return -1
    bus = done.stdout.splitlines()[0].strip().lower()[-12:] if done.stdout else ""
    return int(read(f"/sys/bus/pci/devices/{bus}/numa_node") or -1)


def watch(options, plan):
    """What the run had when it was last looked at: (bytes in memory, {node: bytes}, policy)"""
    with subprocess.Popen([options.program, "run", plan, "--steps", str(options.steps), "-q"],
                          stdout=subprocess.DEVNULL) as child:
        seen = (0, {}, "")
        while child.poll() is None:
            arena = pinned_arena(child.pid)
            if arena:
                seen = (arena[1], *pages_by_node(child.pid, arena[0]))
            time.sleep(0.2)
        if child.returncode != 0:
            raise SystemExit(f"run: exit {child.returncode}")
        return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bin/stowage")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--budget", default="60%peak")
    parser.add_argument("--target", default="h200")
    parser.add_argument("--out", help="answer to write, a JSON file")
    options = parser.parse_args()
    expect_gpu()
    report = open_answer(options.out, "memory", options.program)
    with tempfile.TemporaryDirectory() as folder:
        step, costs, plan = (os.path.join(folder, name) for name in ("s.stow", "c.json", "p.json"))
        call(options.program, *capture_arguments(MODEL, options.target, step))
        call(options.program, "profile", step, "-o", costs)
        call(options.program, "plan", step, "--budget", options.budget, "--costs", costs, "--pin",
             "state:*=host", "-o", plan)
        with open(plan, encoding="utf-8") as file:
            planned = json.load(file)["spaces"]["host"]["arena_bytes"]
        resident, nodes, policy = watch(options, plan)
    node, several = node_of_gpu(), re.search("[-,]", read("/sys/devices/system/node/has_memory"))
    local = nodes.get(node, 0)
    near = not several or node < 0 or local >= 0.99 * resident
    fine = planned <= resident < planned + PAGE and near
    print(f"{'ok ' if fine else 'BAD'} host arena: planned {planned} bytes, in memory {resident}; "
          f"the GPU is on node {node}, bytes by node {nodes}, policy {policy or 'not told'}")
    report.add({"check": "host", "model": MODEL, "planned_bytes": planned,
                "resident_bytes": resident, "gpu_node": node,
                "node_bytes": {str(number): size for number, size in nodes.items()},
                "policy": policy, "good": fine})
    report.finish()
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
