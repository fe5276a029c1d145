#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two ranks beside one process, on two GPUs, on one, or on the CPU.

Ranks that get the same batches have the mean gradient that one process has, bit for bit. So
training on two ranks, at 100 % of what a rank needs and in the smallest budget, ends with the
tensors of a training on one. Then one of two ranks is killed, and the other one must end, within 30
seconds, naming it. Exit code 1 when anything differs.

    ranks.py [--program build/bin/stowage] [--device cuda] [--target h100] [--gpus 0,0] [--out FILE]
"""

import argparse
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

STEPS = 6
SEQUENCE = 64
BATCH = 4
MODELS = {
    "gpt2": ["gpt2", "layers=2", "dropout=0", f"context={SEQUENCE}"],
    "llama, masters": ["llama", "layers=2", "precision=bfloat16", "optimizer=stowage_adamw",
                       "master_weights=on"],
}


def write_rows(path, rows):
    """A batch for each number; equal numbers, equal batches."""
    tokens = []
    for row in rows:
        numbers = random.Random(row)
        tokens += [numbers.randrange(50) for _ in range(BATCH * SEQUENCE)]
    data = struct.pack(f"<{len(tokens)}q", *tokens)
    shape = [len(rows), BATCH, SEQUENCE]
    header = json.dumps({
        name: {"dtype": "I64", "shape": shape, "data_offsets": [place * len(data),
                                                                (place + 1) * len(data)]}
        for place, name in enumerate(("tokens", "targets"))}).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + data + data)


def read_tensors(checkpoint):
    """Bytes by name, but for what each rank has for itself."""
    found = {}
    for name in ("model.safetensors", "optimizer.safetensors"):
        with open(os.path.join(checkpoint, name), "rb") as file:
            whole = file.read()
        size = struct.unpack("<Q", whole[:8])[0]
        for tensor, entry in json.loads(whole[8:8 + size]).items():
            if tensor == "__metadata__" or tensor.startswith(("ranks.", "generator.")):
                continue
            begin, end = entry["data_offsets"]
            found[tensor] = whole[8 + size + begin:8 + size + end]
    return found


class Runs:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    def at(self, name):
        return os.path.join(self.folder, name)

    def stowage(self, *words, fails=False):
        done = subprocess.run([self.options.program, *words], capture_output=True, text=True,
                              cwd=self.folder, check=False, env=self.environment(words))
        if done.returncode != 0 and not fails:
            sys.exit(f"error: {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
        return done

    def environment(self, words):
        """Other verbs do not know what two ranks on one GPU would be."""
        seen = self.options.gpus if words[0] == "run" and "2" in words else None
        return os.environ | ({"CUDA_VISIBLE_DEVICES": seen} if seen else {})

    def capture(self, model):
        settings = [word for one in [*model[1:], f"sequence={SEQUENCE}"] for word in ("--set", one)]
        target = ["--target", self.options.target] if self.options.device == "cuda" else []
        self.stowage("capture", model[0], *settings, "--device", self.options.device, *target, "-fq",
                     "-o", "step.stow")

    def threads(self):
        return [] if self.options.device == "cuda" else ["--threads", "1"]

    def profile(self, ranks):
        self.stowage("profile", "step.stow", "--ranks", str(ranks), *self.threads(), "-fq", "-o",
                     "costs.json")

    def plan(self, ranks, budget):
        """The smallest budget that works, where this one does not."""
        words = ["plan", "step.stow", "--ranks", str(ranks), *self.threads(), "--costs",
                 "costs.json", "-fq", "-o", "plan.json", "--budget"]
        done = self.stowage(*words, budget, fails=True)
        if done.returncode == 0:
            return budget
        smallest = re.search(r"budget that works: (\d+)B", done.stderr)
        if smallest is None:
            sys.exit(f"error: no plan in {budget}: {done.stderr}")
        self.stowage(*words, f"{smallest[1]}B")
        return f"{smallest[1]}B"

    def train(self, ranks, data):
        done = self.stowage("run", "plan.json", "--ranks", str(ranks), "--costs", "costs.json",
                            "--steps", str(STEPS), "--data", data, "--save", "saved", "-fq",
                            "--json")
        answer = json.loads(done.stdout)
        is_exact = answer["peak_bytes"] == answer["predicted"]["peak_bytes"]
        return read_tensors(self.at("saved")), is_exact


def compare(runs, name, model):
    """A row for each budget."""
    rows = list(range(STEPS))
    write_rows(runs.at("one.safetensors"), rows)
    write_rows(runs.at("two.safetensors"), [row for row in rows for _ in range(2)])
    runs.capture(model)
    runs.profile(1)
    runs.plan(1, "100%peak")
    expected, _ = runs.train(1, "one.safetensors")
    runs.profile(2)
    answers = []
    for wanted in ("100%peak", "1MiB"):
        budget = runs.plan(2, wanted)
        found, is_exact = runs.train(2, "two.safetensors")
        differ = sorted(key for key in expected if found.get(key) != expected[key])
        answers.append({"model": name, "budget": budget, "tensors": len(expected),
                        "different": differ, "peak_as_planned": is_exact})
        print(f"{name}, {budget}: {len(expected) - len(differ)} of {len(expected)} tensors equal, "
              f"peak {'as planned' if is_exact else 'NOT as planned'}", flush=True)
    return answers


def kill_one(runs):
    """Of two ranks in the middle of steps."""
    words = ["run", "plan.json", "--ranks", "2", "--costs", "costs.json", "--steps", "100000000"]
    run = subprocess.Popen([runs.options.program, *words, "-q"], cwd=runs.folder,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           env=runs.environment(words))
    # The answer's first line comes when all have met.
    line = run.stdout.readline()
    time.sleep(3)
    with open(f"/proc/{run.pid}/task/{run.pid}/children", encoding="ascii") as file:
        children = [int(one) for one in file.read().split()]
    os.kill(children[-1], signal.SIGKILL)
    begin = time.monotonic()
    text = line + run.communicate(timeout=120)[0]
    seconds = time.monotonic() - begin
    answer = {"seconds": round(seconds, 1), "exit_code": run.returncode,
              "names_it": "rank 0: " in text and "rank 1 is gone" in text}
    print(f"a killed rank: the others ended after {seconds:.1f} s, exit code {run.returncode}, "
          f"{'named' if answer['names_it'] else 'NOT named: ' + text}", flush=True)
    return answer


def main():
    parser = argparse.ArgumentParser(description="two ranks beside one process")
    parser.add_argument("--program", default="build/bin/stowage")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--target", default="h100")
    parser.add_argument("--gpus", help="of both ranks; 0,0: one GPU for both (default: 0,1)")
    parser.add_argument("--out")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(options, folder)
        rows = [row for name, model in MODELS.items() for row in compare(runs, name, model)]
        killed = kill_one(runs)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump({"device": options.device, "rows": rows, "killed": killed}, file, indent=1)
    good = all(not row["different"] and row["peak_as_planned"] for row in rows)
    ended = killed["exit_code"] == 4 and killed["seconds"] < 30 and killed["names_it"]
    return 0 if good and ended else 1


if __name__ == "__main__":
    sys.exit(main())
