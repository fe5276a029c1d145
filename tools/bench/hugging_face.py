#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One Hugging Face Llama trained on this machine's GPU, by what users set today to save memory.

Random weights and tokens, bfloat16 parameters and AdamW states, fused AdamW, libtorch's default
attention. One mode per process, so that one that does not fit harms no other. Prints one JSON
object: mode, median step in seconds, peak of allocated and of reserved bytes; or the error.

    hugging_face.py MODE [--shape llama3.2-1b] [--batch 4] [--sequence 4096] [--steps 6] [--lora 16]

Modes: eager; checkpointing; checkpointing:N (of every N-th layer); checkpointing+offload
(transformers' own: what checkpointed layers keep goes to pinned memory, in line); save_on_cpu (all
saved tensors to pinned memory, in line); stream_offload (the same on streams of its own, one for
each way); compile; compile:FRACTION (with an activation memory budget).
"""

import argparse
import contextlib
import json
import statistics
import time

import torch
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks

SHAPES = {
    "llama3.2-1b": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
                    "num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": True},
    "llama3.1-8b": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
                    "num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": False},
    "small": {"hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 4,
              "num_attention_heads": 8, "num_key_value_heads": 4, "tie_word_embeddings": True,
              "vocab_size": 8192},
}


class StreamedOffload(saved_tensors_hooks):
    """Saved tensors leave on one stream and come back on another, the next one ahead of its use."""

    SMALLEST = 1 << 20

    def __init__(self):
        self.out, self.back = torch.cuda.Stream(), torch.cuda.Stream()
        self.kept, self.parameters = [], set()
        super().__init__(self.pack, self.unpack)

    def begin_step(self, model):
        self.kept = []
        self.parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}

    def pack(self, tensor):
        is_large = tensor.is_cuda and tensor.nbytes >= self.SMALLEST
        if not is_large or tensor.untyped_storage().data_ptr() in self.parameters:
            return tensor
        self.out.wait_stream(torch.cuda.current_stream())
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        with torch.cuda.stream(self.out):
            host.copy_(tensor, non_blocking=True)
        tensor.record_stream(self.out)
        self.kept.append({"host": host, "device": None})
        return len(self.kept) - 1

    def prefetch(self, index):
        if index < 0 or self.kept[index]["device"] is not None or self.kept[index]["host"] is None:
            return
        self.back.wait_stream(self.out)
        with torch.cuda.stream(self.back):
            self.kept[index]["device"] = self.kept[index]["host"].to("cuda", non_blocking=True)
            self.kept[index]["arrived"] = self.back.record_event()

    def unpack(self, packed):
        if isinstance(packed, torch.Tensor):
            return packed
        self.prefetch(packed)
        for ahead in (1, 2):
            self.prefetch(packed - ahead)
        entry = self.kept[packed]
        torch.cuda.current_stream().wait_event(entry["arrived"])
        tensor = entry["device"]
        tensor.record_stream(torch.cuda.current_stream())
        entry["device"], entry["host"] = None, None
        return tensor


class LoraLinear(torch.nn.Module):
    """y = x W^T + 2 (x A^T) B^T with W frozen."""

    def __init__(self, base, rank):
        super().__init__()
        self.base = base
        base.weight.requires_grad_(False)
        options = {"dtype": base.weight.dtype, "device": base.weight.device}
        self.a = torch.nn.Parameter(torch.randn(rank, base.in_features, **options) * 0.01)
        self.b = torch.nn.Parameter(torch.zeros(base.out_features, rank, **options))

    def forward(self, x):
        return self.base(x) + 2 * torch.nn.functional.linear(
            torch.nn.functional.linear(x, self.a), self.b)


def add_lora(model, rank):
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for layer in model.model.layers:
        for part in (layer.self_attn, layer.mlp):
            for name, child in list(part.named_children()):
                if isinstance(child, torch.nn.Linear):
                    setattr(part, name, LoraLinear(child, rank))


def make_llama(options, device):
    """In bfloat16, ready to train."""
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(**{"vocab_size": 128256, "max_position_embeddings": options.sequence,
                            "rope_theta": 500000.0, "use_cache": False, **SHAPES[options.shape]})
    with torch.device(device):
        torch.set_default_dtype(torch.bfloat16)
        model = LlamaForCausalLM(config)
        torch.set_default_dtype(torch.float32)
    return model.train()


def make_model(options):
    model = make_llama(options, "cuda")
    if options.lora:
        add_lora(model, options.lora)
    return model


def time_steps(steps, train_step, meet=lambda: None):
    """Of `train_step`, which returns its loss; three more come first. `meet` is not timed."""
    times = []
    for step in range(steps + 3):
        if step == 3:
            torch.cuda.reset_peak_memory_stats()
        torch.cuda.synchronize()
        meet()
        begin = time.perf_counter()
        loss = train_step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return {"step_s": statistics.median(times[3:]), "loss": loss.item(),
            "peak_bytes": torch.cuda.max_memory_allocated(),
            "reserved_bytes": torch.cuda.max_memory_reserved()}


def train(options):
    torch.manual_seed(0)
    model = make_model(options)
    if options.mode.startswith("checkpointing"):
        layers = int(options.mode.split(":")[1]) if ":" in options.mode else 1
        model.gradient_checkpointing_enable({"use_reentrant": False}, every_n_layers=layers,
                                            offload="offload" in options.mode)
        if options.lora:
            model.enable_input_require_grads()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5, fused=True)
    tokens = torch.randint(0, model.config.vocab_size, (options.batch, options.sequence),
                           device="cuda")
    run = model
    if options.mode.startswith("compile"):
        if ":" in options.mode:
            from torch._functorch import config as functorch
            functorch.activation_memory_budget = float(options.mode.split(":")[1])
        run = torch.compile(model)
    offload = StreamedOffload() if options.mode == "stream_offload" else None

    def train_step():
        if offload:
            offload.begin_step(model)
        hooks = offload or (save_on_cpu(pin_memory=True) if options.mode == "save_on_cpu" else
                            contextlib.nullcontext())
        with hooks:
            loss = run(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return time_steps(options.steps, train_step)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode")
    parser.add_argument("--shape", default="llama3.2-1b", choices=SHAPES)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--lora", type=int, default=0, help="rank; default: all parameters train")
    options = parser.parse_args()
    answer = {"mode": options.mode, "shape": options.shape, "batch": options.batch,
              "sequence": options.sequence, "lora": options.lora, "torch": torch.__version__}
    try:
        import transformers
        answer["transformers"] = transformers.__version__
        answer.update(train(options))
    except (RuntimeError, ImportError) as error:
        answer["error"] = str(error).splitlines()[0][:300]
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
