# SPDX-License-Identifier: Apache-2.0
"""QLoRA within a memory budget: frozen weights in 4 bits, trained adapters by peft.

    python qlora.py --device cpu
    python qlora.py --model-folder ~/Llama-3.1-8B --budget 12GiB --device h200 --plan-only
    python qlora.py --model-folder ~/Llama-3.1-8B --budget 12GiB

A layer makes its weight from the stored bits in each forward pass, by ordinary ops. So the weight
is an activation: the plan keeps it for backward, or makes it again there. The base model is built
without memory; the first step fills it. Without --model-folder, a small Llama has random weights.
"""

import argparse
import pathlib
import pydoc_data.topics

import peft
import torch
import transformers

import stowage

BLOCK = 64  # weights that share a scale


def nf4_shares():
    """The 16 values of a code: quantiles of the normal distribution (QLoRA, 2023, section 3)."""
    outermost = 1 - (1 / 30 + 1 / 32) / 2

    def quantiles(count):
        return torch.special.ndtri(torch.linspace(0.5, outermost, count + 1, dtype=torch.float64))

    above = quantiles(8)
    below = -quantiles(7).flip(0)[:-1]
    return (torch.cat([below, above]) / above[-1]).float()


def quantise(weight):
    """float of any shape -> uint8 [n / 2], the first of two codes in the upper half, and scales."""
    blocks = weight.detach().float().reshape(-1, BLOCK)
    scales = blocks.abs().amax(1, keepdim=True)
    shares = nf4_shares()
    codes = torch.bucketize(blocks / scales.clamp_min(1e-30), (shares[1:] + shares[:-1]) / 2)
    first, second = codes.view(-1, 2).unbind(1)
    return (first * 16 + second).to(torch.uint8), scales


class Linear4bit(torch.nn.Linear):
    """A frozen layer whose weight takes 4 bits, and a scale for 64 of them."""

    def __init__(self, linear):
        torch.nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.bias = linear.bias
        codes, scales = quantise(linear.weight)
        dtype = linear.weight.dtype
        shares = nf4_shares().to(dtype)
        self.weight = torch.nn.Parameter(codes, requires_grad=False)
        self.scales = torch.nn.Parameter(scales.to(dtype), requires_grad=False)
        self.register_buffer("pairs", torch.cartesian_prod(shares, shares))  # of each byte

    def forward(self, x):
        shares = torch.nn.functional.embedding(self.weight.int(), self.pairs)
        weight = (shares.view(-1, BLOCK) * self.scales).view(self.out_features, self.in_features)
        return torch.nn.functional.linear(x, weight, self.bias)


def quantise_layers(model):
    """All linear ones but the output's."""
    for part in list(model.modules()):
        for name, layer in list(part.named_children()):
            if isinstance(layer, torch.nn.Linear) and layer is not model.get_output_embeddings():
                setattr(part, name, Linear4bit(layer))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", default="60%peak", help="device memory: 12GiB, 60%%peak")
    parser.add_argument("--host", help="the most host memory for what is offloaded: 96GiB")
    parser.add_argument("--device", help="cuda, cpu, or with --plan-only a GPU that is not here")
    parser.add_argument("--plan-only", action="store_true", help="print the plan and stop")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--length", type=int, default=128, help="tokens of a sequence")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--model-folder", help="config.json and safetensors files")
    parser.add_argument("--save", help="folder for the trained adapters")
    return parser.parse_args()


def make_config():
    return transformers.LlamaConfig(
        vocab_size=256, hidden_size=128, intermediate_size=352, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, dtype="bfloat16",
        bos_token_id=None, eos_token_id=None)


def make_model(arguments):
    adapters = peft.LoraConfig(task_type="CAUSAL_LM", r=arguments.rank, lora_dropout=0.05,
                               target_modules="all-linear")
    if arguments.model_folder:
        with stowage.without_memory():
            base = transformers.AutoModelForCausalLM.from_pretrained(arguments.model_folder)
            quantise_layers(base)
        return peft.get_peft_model(base, adapters)
    with stowage.without_memory():  # the adapters' random numbers follow those of the base
        base = transformers.AutoModelForCausalLM.from_config(make_config())
        quantise_layers(base)
        return peft.get_peft_model(base, adapters)


def read_tokens(model_folder):
    text = "\n".join(pydoc_data.topics.topics.values())
    if model_folder and list(pathlib.Path(model_folder).glob("tokenizer*")):
        tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder)
        return torch.tensor(tokenizer(text)["input_ids"])
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8).long()


def main():
    arguments = parse_arguments()
    torch.manual_seed(0)
    model = make_model(arguments)
    trained = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=2e-3)

    @stowage.step(model, optimizer, budget=arguments.budget, host=arguments.host,
                  device=arguments.device)
    def train_step(ids):
        loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    pieces = read_tokens(arguments.model_folder).split(arguments.length)
    try:
        print(train_step.plan(pieces[0][None]))
    except stowage.Infeasible as error:
        raise SystemExit(f"{error}\ntry --budget {error.smallest_budget}") from None
    if arguments.plan_only:
        return
    for step in range(arguments.steps):
        loss = train_step(pieces[step % (len(pieces) - 1)][None])
        print(f"step {step + 1}: loss {loss.item():.4f}")
    if arguments.save:
        model.save_pretrained(arguments.save)
        print(f"wrote the adapters to {arguments.save}")


if __name__ == "__main__":
    main()
