#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A planned training that gives its device memory to another process between two steps.

A Llama of 1.24 billion parameters within a budget. After each step the memory is released and
restored. After every second one another process takes nearly all of the GPU in between; restore()
must raise OutOfMemory until that one ends. Losses must be those of the same training without a
release. Prints one JSON object a line: bytes, seconds and GB/s of each release and restore, and
what the process holds of the GPU meanwhile.
"""

import argparse
import json
import os
import subprocess
import sys

from python_answers import add_row, open_python_answer

FOLDER = os.path.dirname(os.path.abspath(__file__))
# Takes what is free but 1 GiB, says so, and waits for the end of its input.
NEIGHBOUR = """
import sys, torch
free, _ = torch.cuda.mem_get_info()
taken = torch.empty(free - (1 << 30), dtype=torch.uint8, device="cuda")
print(taken.numel(), flush=True)
sys.stdin.read()
"""


def make_step(budget):
    import torch

    import stowage

    sys.path.insert(0, FOLDER)
    import python_models

    model = python_models.make_model(python_models.LLAMA_1B, False, False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    @stowage.step(model, optimizer, budget=budget)
    def train_step(ids):
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return train_step


def used_gib():
    import python_models

    return round(python_models.used_memory() / 2**30, 2)


def rates(copy):
    return {"bytes": copy["bytes"], "seconds": round(copy["whole_ns"] / 1e9, 4),
            "copy_seconds": round(copy["copy_ns"] / 1e9, 4),
            "gb_per_second": round(copy["bytes"] / max(copy["copy_ns"], 1), 2)}


def release_alone(train_step):
    before = used_gib()
    out = train_step.release()
    released = used_gib()
    back = train_step.restore()
    return {"used_gib": before, "released_gib": released, "neighbour_gib": 0, "refused": False,
            "out": rates(out), "back": rates(back)}


def release_to_neighbour(train_step):
    """Returns what was found; "refused": restore() had to wait for the other process."""
    import stowage

    before = used_gib()
    out = train_step.release()
    released = used_gib()
    refused = False
    with subprocess.Popen([sys.executable, "-c", NEIGHBOUR], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as neighbour:
        taken = int(neighbour.stdout.readline())
        try:
            train_step.restore()
        except stowage.OutOfMemory:
            refused = True
        neighbour.communicate("")
    back = train_step.restore() if refused else None
    return {"used_gib": before, "released_gib": released,
            "neighbour_gib": round(taken / 2**30, 2), "refused": refused, "out": rates(out),
            "back": rates(back) if back else None}


def losses_of(budget, steps, between=None):
    import torch

    torch.use_deterministic_algorithms(True)
    train_step = make_step(budget)
    ids = torch.randint(0, 128256, (steps, 2, 2048), generator=torch.Generator().manual_seed(1))
    losses = []
    for one in ids:
        losses.append(float(train_step(one)))
        if between is not None:
            between(train_step)
    train_step.discard()
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", default="24GiB")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--out", help="a file for the answer")
    options = parser.parse_args()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    answer = open_python_answer(options.out)
    expected = losses_of(options.budget, options.steps)
    rows = []

    def between(train_step):
        release = release_to_neighbour if len(rows) % 2 else release_alone
        rows.append(release(train_step))
        print(json.dumps(rows[-1]), flush=True)

    found = losses_of(options.budget, options.steps, between)
    good = found == expected and all(row["refused"] == (row["neighbour_gib"] > 0)
                                         for row in rows)
    print(json.dumps({"same_losses": found == expected, "losses": found, "good": good}), flush=True)
    add_row(answer, "release", f"1B {options.budget}", good, "equal" if good else "different",
            releases=rows)
    answer.finish()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
