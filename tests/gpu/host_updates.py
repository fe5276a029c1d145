#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far updates on the host are from updates on the GPU.

Trains the same model twice with all updates on the host, and once with none, and compares losses
and parameters. The two on the host must have the same bits. Against the GPU, a parameter may differ
by TOLERANCE of what its updates can have moved it (the learning rate a step), and by two units in
the last place of its dtype. Exit code 1 when more than EXCEPTIONS of the values do, or a loss differs by
LOSS.

    host_updates.py [--program build/bin/stowage] [--only llama,llama_bfloat16] [--steps 10]
                    [--target h200] [--out FILE]
"""

import argparse
import json
import os
import struct
import sys
import tempfile

from preconditions import expect_gpu, expect_known, expect_program, open_answer

from bits_table import call

LR = 1e-3
TOLERANCE = 0.01  # of lr x steps
EXCEPTIONS = 1e-3  # of the values: signs that turn where a gradient is about 0
LOSS = 2e-3  # relative
MODELS = {
    "llama": ["optimizer=stowage_adamw"],
    "llama_bfloat16": ["optimizer=stowage_adamw", "precision=bfloat16"],
    "llama_masters": ["optimizer=stowage_adamw", "precision=bfloat16", "master_weights=on"],
    "llama_sgd": ["optimizer=sgd"]}
TWO_UNITS = {"F32": 2 ** -22, "BF16": 2 ** -6}  # in the last place, relative, at most


def read_tensors(path):
    """{name: (dtype, float64 values)}"""
    import torch
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, data = json.loads(file.read(size)), file.read()
    dtypes = {"F32": torch.float32, "BF16": torch.bfloat16}
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] not in dtypes:
            continue
        begin, end = entry["data_offsets"]
        values = torch.frombuffer(bytearray(data[begin:end]), dtype=dtypes[entry["dtype"]])
        tensors[name] = (entry["dtype"], values.double())
    return tensors


def compare(host, device, steps):
    """(share of equal values, share out of tolerance, largest difference in lr x steps)"""
    equal, outside, count, largest = 0, 0, 0, 0.0
    for name, (dtype, ours) in host.items():
        theirs = device[name][1]
        difference = (ours - theirs).abs()
        allowed = theirs.abs() * TWO_UNITS[dtype] + TOLERANCE * LR * steps
        equal += int((difference == 0).sum())
        outside += int((difference > allowed).sum())
        count += difference.numel()
        largest = max(largest, float(difference.max()) / (LR * steps))
    return equal / count, outside / count, largest


def train(options, folder, name, plan):
    saved = os.path.join(folder, name)
    done = call(options.program, "run", plan, "--steps", str(options.steps), "--save", saved, "--json")
    with open(os.path.join(saved, "model.safetensors"), "rb") as file:
        file.seek(8 + struct.unpack("<Q", file.read(8))[0])
        data = file.read()
    return (json.loads(done.stdout)["losses"], data,
            read_tensors(os.path.join(saved, "model.safetensors")))


def run_model(options, name):
    with tempfile.TemporaryDirectory() as folder:
        step, device, host = (os.path.join(folder, file) for file in ("s.stow", "d.json", "h.json"))
        settings = [part for word in [*MODELS[name], f"lr={LR}"] for part in ("--set", word)]
        call(options.program, "capture", "llama", *settings, "--device", "cuda", "--target",
             options.target, "-o", step)
        costs = os.path.join(folder, "costs.json")
        call(options.program, "profile", step, "-o", costs)
        call(options.program, "plan", step, "--budget", "100%peak", "--costs", costs, "-o", device)
        planned = call(options.program, "plan", step, "--policy", "host-step-only", "--budget",
                       "150%peak", "--costs", costs, "--json", "-o", host)
        on_host = json.loads(planned.stdout)["host_updated_bytes"]
        losses, _, device_values = train(options, folder, "device", device)
        first, bits, host_values = train(options, folder, "host", host)
        again, bits_again, _ = train(options, folder, "again", host)
    equal, outside, largest = compare(host_values, device_values, options.steps)
    loss = max(abs(a - b) / abs(b) for a, b in zip(first, losses))
    repeats = bits == bits_again and first == again
    good = repeats and on_host > 0 and outside <= EXCEPTIONS and loss <= LOSS
    return {"model": name, "steps": options.steps, "host_updated_bytes": on_host,
            "repeats": repeats, "equal_share": round(equal, 6), "outside_share": round(outside, 8),
            "largest_in_lr_steps": round(largest, 5), "loss_relative": loss, "good": good}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bin/stowage")
    parser.add_argument("--only", default=",".join(MODELS), type=lambda text: text.split(","))
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--target", default="h200")
    parser.add_argument("--out", help="answer to write, a JSON file")
    options = parser.parse_args()
    expect_gpu()
    expect_program(parser, options.program)
    expect_known(parser, "--only", options.only, MODELS)
    bad = 0
    report = open_answer(options.out, "host_updates", options.program)
    for name in options.only:
        row = run_model(options, name)
        bad += not row["good"]
        print(f"{'ok ' if row['good'] else 'BAD'} {json.dumps(row)}", flush=True)
        report.add(row)
    report.finish()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
