#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face models by the Python package on a GPU, beside the same script without it.

One case per process; prints one JSON object a case. `--cases` names some; `--list` lists them.
Models are of published shapes with random weights, batches are random tokens: no network is needed.
Every case trains on the same batches, so the losses of cases of one model can be compared.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

from python_answers import add_row, open_python_answer

GIB = 2**30

LLAMA_1B = {
    "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": True,
    "max_position_embeddings": 131072, "rope_theta": 500000.0,
}
LLAMA_8B = {
    "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": False,
    "max_position_embeddings": 131072, "rope_theta": 500000.0,
}
TINY = {
    "vocab_size": 1024, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2,
}

# name -> model, LoRA, batch, length, checkpointing, budget; None: without the package.
CASES = {
    "tiny plain": (TINY, False, 4, 256, False, None),
    "tiny planned": (TINY, False, 4, 256, False, "60%peak"),
    "1B plain": (LLAMA_1B, False, 4, 4096, False, None),
    "1B checkpointing": (LLAMA_1B, False, 4, 4096, True, None),
    "1B 60GiB": (LLAMA_1B, False, 4, 4096, False, "60GiB"),
    "1B 40GiB": (LLAMA_1B, False, 4, 4096, False, "40GiB"),
    "1B 31GiB": (LLAMA_1B, False, 4, 4096, False, "31GiB"),
    "8B LoRA checkpointing": (LLAMA_8B, True, 1, 4096, True, None),
    "8B LoRA 24GiB": (LLAMA_8B, True, 1, 4096, False, "24GiB"),
}


def make_model(config, lora, checkpointing):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        model = LlamaForCausalLM(LlamaConfig(**config, attn_implementation="sdpa"))
        torch.set_default_dtype(torch.float32)
    if lora:
        from peft import LoraConfig, get_peft_model

        targets = ["q_proj", "k_proj", "v_proj", "o_proj"]
        model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules=targets))
    if checkpointing:
        model.gradient_checkpointing_enable()
        if lora:
            model.enable_input_require_grads()
    model.config.use_cache = False
    return model.train()


def used_memory():
    import torch

    free, all_of_it = torch.cuda.mem_get_info()
    return all_of_it - free


def run_case(name, steps, deterministic):
    import torch

    config, lora, batch, length, checkpointing, budget = CASES[name]
    if deterministic:
        torch.use_deterministic_algorithms(True)
    model = make_model(config, lora, checkpointing)
    trained = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, fused=True)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1 / (1 + k / 10))

    def train_step(ids):
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    facts = {"case": name}
    generator = torch.Generator().manual_seed(1)

    def next_batch():
        return torch.randint(0, config["vocab_size"], (batch, length), generator=generator)

    step = train_step
    if budget is not None:
        import stowage

        step = stowage.step(model, optimizer, budget=budget)(train_step)
        example = torch.zeros(batch, length, dtype=torch.long)
        begin = time.monotonic()
        step.capture(example)
        facts["capture_s"] = time.monotonic() - begin
        plan = step.plan(example)
        facts["plan_s"] = time.monotonic() - begin - facts["capture_s"]
        facts["predicted_ms"] = plan.step_ns / 1e6
        facts["predicted_peak_bytes"] = plan.peak
        print(plan, file=sys.stderr)
    torch.manual_seed(5)
    losses, times, most = [], [], 0
    for _ in range(steps):
        ids = next_batch()
        if budget is None:
            ids = ids.cuda()
        torch.cuda.synchronize()
        begin = time.monotonic()
        losses.append(float(step(ids)))
        torch.cuda.synchronize()
        times.append(time.monotonic() - begin)
        most = max(most, used_memory())
        scheduler.step()
    facts |= {
        "losses": losses,
        "step_ms": statistics.median(times[len(times) // 2:]) * 1e3,
        "first_step_s": times[0],
        "device_bytes": most,
    }
    if budget is None:
        facts["peak_allocated_bytes"] = torch.cuda.max_memory_allocated()
    else:
        facts["run"] = step.facts()
        step.leave()
    facts["sum"] = sum(float(one.double().sum()) for one in trained)
    return facts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default=",".join(CASES), help="names, separated by commas")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--deterministic", action="store_true")
    parser.add_argument("--out", help="a file for the answer")
    parser.add_argument("--seconds", type=int, default=280, help="limit of a case")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.list:
        print("\n".join(CASES))
        return 0
    if options.one:
        print(json.dumps(run_case(options.one, options.steps, options.deterministic)))
        return 0
    failed = 0
    answer = open_python_answer(options.out)
    for name in options.cases.split(","):
        command = [sys.executable, __file__, "--one", name, "--steps", str(options.steps)]
        if options.deterministic:
            command.append("--deterministic")
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=options.seconds)
            text = done.stdout.strip().splitlines()[-1] if done.returncode == 0 else ""
            error = done.stderr[-1500:]
        except subprocess.TimeoutExpired:
            text, error = "", f"took more than {options.seconds} s"
        if not text:
            failed += 1
            text = json.dumps({"case": name, "error": error})
        print(text, flush=True)
        facts = json.loads(text)
        add_row(answer, "decorator", facts.pop("case"), "error" not in facts,
                facts.pop("error", "ran"), **facts)
    answer.finish()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
