#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several plans in turns on one state, on a GPU: the bits of plain PyTorch, and what a turn costs.

`bits`: the random trainings of tests/python/turns.py in deterministic mode. `times`: a Llama of
1.24 billion parameters in 40 GiB; batches of two lengths and an evaluation, alone and in turns.
Prints one JSON object a line.
"""

import argparse
import json
import os
import statistics
import sys
import time

from python_answers import add_row, open_python_answer

FOLDER = os.path.dirname(os.path.abspath(__file__))


def bits(seeds, answer):
    import torch

    sys.path.insert(0, os.path.join(FOLDER, "..", "python"))
    import turns

    torch.use_deterministic_algorithms(True)
    bad = 0
    for seed in range(seeds):
        differ, facts = turns.check(seed, "cuda")
        bad += bool(differ)
        print(json.dumps({"seed": seed, "differ": differ[:5], "run": facts}), flush=True)
        add_row(answer, "turns", seed, not differ, "different" if differ else "equal",
                differ=differ[:5])
    return bad


def times(answer):
    import torch

    import stowage

    sys.path.insert(0, FOLDER)
    import python_models

    model = python_models.make_model(python_models.LLAMA_1B, False, False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    @stowage.step(model, optimizer, budget="40GiB")
    def train_step(ids):
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    @train_step.evaluation
    def evaluate(ids):
        return model(input_ids=ids, labels=ids).loss

    long = torch.randint(0, 128256, (4, 4096), generator=torch.Generator().manual_seed(1))
    short = long[:, :2048].contiguous()
    most = 0

    def took(what, batch):
        nonlocal most
        torch.cuda.synchronize()
        begin = time.monotonic()
        float(what(batch))
        torch.cuda.synchronize()
        most = max(most, python_models.used_memory())
        return (time.monotonic() - begin) * 1e3

    def typical(parts, rounds=6):
        found = [[took(*part) for part in parts] for _ in range(rounds)]
        return [statistics.median(column[1:]) for column in zip(*found, strict=True)]

    first = {"long": took(train_step, long), "short": took(train_step, short),
             "evaluation": took(evaluate, long)}
    alone = {"long": typical([(train_step, long)])[0], "short": typical([(train_step, short)])[0],
             "evaluation": typical([(evaluate, long)])[0]}
    two = typical([(train_step, long), (train_step, short)])
    evaluated = typical([(train_step, long), (evaluate, long)])
    facts = {
        "first_ms": first, "alone_ms": alone, "two_lengths_ms": two,
        "turn_ms": (sum(two) - alone["long"] - alone["short"]) / 2,
        "step_and_evaluation_ms": evaluated,
        "turn_of_evaluation_ms": (sum(evaluated) - alone["long"] - alone["evaluation"]) / 2,
        "device_bytes": most, "run": train_step.facts()}
    print(json.dumps(facts), flush=True)
    add_row(answer, "turn_times", "1B 40GiB", True, "ran", **facts)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=["bits", "times"])
    parser.add_argument("--seeds", type=int, default=9)
    parser.add_argument("--out", help="a file for the answer")
    options = parser.parse_args()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    answer = open_python_answer(options.out)
    bad = bits(options.seeds, answer) if "bits" in options.parts else 0
    if "times" in options.parts:
        times(answer)
    answer.finish()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
