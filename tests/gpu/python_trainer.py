#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Trainer of Hugging Face on a GPU, planned and plain: times, memory, logs.

A Llama of 1.24 billion parameters, 4 x 4096 tokens, bfloat16, random data: steps, an evaluation
of two batches after each third step, a checkpoint of the model. One case per process; prints one
JSON object a case.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from python_answers import add_row, open_python_answer

FOLDER = os.path.dirname(os.path.abspath(__file__))
CASES = {"plain": None, "checkpointing": None, "40GiB": "40GiB", "31GiB": "31GiB"}


def run_case(name, steps, beside_gib, workers):
    import torch
    import transformers

    sys.path.insert(0, FOLDER)
    import python_models

    budget = CASES[name]
    model = python_models.make_model(python_models.LLAMA_1B, False, False)
    generator = torch.Generator().manual_seed(1)

    def rows(count):
        tokens = torch.randint(0, 128256, (count, 4096), generator=generator)
        return [{"input_ids": one, "labels": one} for one in tokens]

    facts = {"case": name, "step_ms": [], "device_bytes": 0}

    class Watch(transformers.TrainerCallback):
        def __init__(self):
            self.begin = 0

        def on_step_begin(self, args, state, control, **kwargs):
            torch.cuda.synchronize()
            self.begin = time.monotonic()

        def on_step_end(self, args, state, control, **kwargs):
            torch.cuda.synchronize()
            facts["step_ms"].append((time.monotonic() - self.begin) * 1e3)
            facts["device_bytes"] = max(facts["device_bytes"], python_models.used_memory())

    with tempfile.TemporaryDirectory() as folder:
        args = transformers.TrainingArguments(
            output_dir=folder, max_steps=steps, per_device_train_batch_size=4,
            per_device_eval_batch_size=4, bf16=True, optim="adamw_torch_fused", logging_steps=1,
            eval_strategy="steps", eval_steps=3, save_strategy="no", report_to=[],
            disable_tqdm=True, gradient_checkpointing=name == "checkpointing",
            dataloader_pin_memory=True, dataloader_num_workers=workers)
        trainer = transformers.Trainer(
            model, args, train_dataset=rows(4 * steps), eval_dataset=rows(8),
            callbacks=[Watch()])
        if budget is not None:
            import stowage.hf

            stowage.hf.wrap(trainer, budget=budget)
        # What else a user has on the device.
        beside = torch.zeros(beside_gib * python_models.GIB, dtype=torch.uint8, device="cuda")
        begin = time.monotonic()
        trainer.train()
        facts["train_s"] = time.monotonic() - begin
        begin = time.monotonic()
        trainer.save_model(folder)
        facts["save_s"] = time.monotonic() - begin
        facts["beside_is_untouched"] = not bool(beside.any())
        history = trainer.state.log_history
        facts["losses"] = [one["loss"] for one in history if "loss" in one]
        facts["eval_losses"] = [one["eval_loss"] for one in history if "eval_loss" in one]
        facts["eval_s"] = [one["eval_runtime"] for one in history if "eval_runtime" in one]
        facts["step_ms"] = statistics.median(facts["step_ms"][len(facts["step_ms"]) // 2:])
    return facts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default=",".join(CASES), help="names, separated by commas")
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--beside-gib", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2, help="of the loaders")
    parser.add_argument("--seconds", type=int, default=200, help="limit of a case")
    parser.add_argument("--out", help="a file for the answer")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run_case(options.one, options.steps, options.beside_gib,
                                  options.workers)))
        return 0
    failed = 0
    answer = open_python_answer(options.out)
    for name in options.cases.split(","):
        process = subprocess.run(
            ["timeout", str(options.seconds), sys.executable, __file__, "--one", name, "--steps",
             str(options.steps), "--beside-gib", str(options.beside_gib), "--workers",
             str(options.workers)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        failed += process.returncode != 0
        text = process.stdout.strip().splitlines()[-1] if process.returncode == 0 else json.dumps(
            {"case": name, "error": process.stderr[-1500:]})
        print(text, flush=True)
        facts = json.loads(text)
        good = facts.get("beside_is_untouched", False)
        add_row(answer, "trainer", facts.pop("case"), good,
                facts.pop("error", "ran" if good else "wrote into memory beside it"),
                beside_gib=options.beside_gib, **facts)
    answer.finish()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
