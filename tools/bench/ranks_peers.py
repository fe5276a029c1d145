#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One Hugging Face Llama trained on all GPUs of this machine, by what users set today.

Random weights and tokens, bfloat16 parameters, gradients and AdamW states, fused AdamW, libtorch's
default attention, a batch of its own for each rank. Prints one JSON object for each mode: median
step in seconds, peak of allocated and of reserved bytes of rank 0; or the error.

    ranks_peers.py MODE ... [--shape llama3.1-8b] [--batch 1] [--sequence 4096] [--steps 6]

Modes: fsdp2, ddp, each also as MODE+checkpointing (of every layer).
"""

import argparse
import json
import os
import sys

import torch
from torch import distributed
from torch import multiprocessing

from hugging_face import SHAPES, make_llama, time_steps


def shard(model):
    from torch.distributed.fsdp import fully_shard
    for layer in model.model.layers:
        fully_shard(layer)
    fully_shard(model)
    model.to_empty(device="cuda")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.02)
        rotary = model.model.rotary_emb
        inverse, rotary.attention_scaling = rotary.compute_default_rope_parameters(
            model.config, "cuda") if hasattr(rotary, "compute_default_rope_parameters") else \
            rotary.rope_init_fn(model.config, "cuda")
        rotary.inv_freq.copy_(inverse)


def train(options):
    torch.manual_seed(0)
    # Without values for fully_shard, which has them made shard by shard.
    model = make_llama(options, "meta" if options.mode.startswith("fsdp2") else "cuda")
    if options.mode.endswith("checkpointing"):
        model.gradient_checkpointing_enable({"use_reentrant": False})
    run = model
    if options.mode.startswith("fsdp2"):
        shard(model)
    else:
        run = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    tokens = torch.randint(0, model.config.vocab_size, (options.batch, options.sequence),
                           device="cuda")

    def train_step():
        loss = run(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return time_steps(options.steps, train_step, distributed.barrier)


def run_rank(rank, options):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", rank=rank, world_size=options.ranks,
                                   device_id=torch.device("cuda", rank))
    answer = {"mode": options.mode, "shape": options.shape, "ranks": options.ranks,
              "batch": options.batch, "sequence": options.sequence, "torch": torch.__version__,
              "gpu": torch.cuda.get_device_name()}
    try:
        import transformers
        answer["transformers"] = transformers.__version__
        answer.update(train(options))
    except (RuntimeError, ImportError) as error:
        answer["error"] = str(error).splitlines()[0][:300]
    if rank == 0:
        print(json.dumps(answer), flush=True)
    os._exit(0)  # a rank that failed would wait for the others


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modes", nargs="+")
    parser.add_argument("--shape", default="llama3.1-8b", choices=SHAPES)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--sequence", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    options.ranks = torch.cuda.device_count()
    for number, options.mode in enumerate(options.modes):
        options.port = 29600 + number
        multiprocessing.spawn(run_rank, (options,), nprocs=options.ranks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
