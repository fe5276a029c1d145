# SPDX-License-Identifier: Apache-2.0
"""Full fine-tuning of a Hugging Face causal language model within a memory budget.

    python finetune.py --device cpu --budget 50%peak
    python finetune.py --model-folder ~/Llama-3.2-1B --dtype bfloat16 --budget 24GiB --length 4096

The text is Python's own documentation, which every machine has. Without --model-folder, a small
Llama with random weights learns it byte by byte, so nothing is downloaded.
"""

import argparse
import pathlib
import pydoc_data.topics

import torch
import transformers

import stowage


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", default="60%peak", help="device memory: 24GiB, 60%%peak")
    parser.add_argument("--host", help="the most host memory for what is offloaded: 96GiB")
    parser.add_argument("--device", help="cuda, cpu, or with --plan-only a GPU that is not here")
    parser.add_argument("--plan-only", action="store_true", help="print the plan and stop")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=128, help="tokens of a sequence")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--dtype", default="float32", help="of the weights: float32, bfloat16")
    parser.add_argument("--model-folder", help="a model that save_pretrained() wrote")
    parser.add_argument("--layers", type=int, default=4, help="without --model-folder")
    parser.add_argument("--save", help="folder for the trained model")
    return parser.parse_args()


def make_model(arguments):
    dtype = getattr(torch, arguments.dtype)
    if arguments.model_folder:
        folder = arguments.model_folder
        return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    config = transformers.LlamaConfig(
        vocab_size=256, hidden_size=128, intermediate_size=352, num_hidden_layers=arguments.layers,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=arguments.length,
        bos_token_id=None, eos_token_id=None)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)


def read_tokens(model_folder):
    """The text, in tokens of the model where it has a tokenizer, else in bytes."""
    text = "\n".join(pydoc_data.topics.topics.values())
    if model_folder and list(pathlib.Path(model_folder).glob("tokenizer*")):
        tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder)
        return torch.tensor(tokenizer(text)["input_ids"])
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8).long()


def batches(tokens, arguments):
    """Random pieces of the text, all of one shape."""
    generator = torch.Generator().manual_seed(1)
    while True:
        begins = torch.randint(len(tokens) - arguments.length, (arguments.batch,),
                               generator=generator)
        ids = torch.stack([tokens[begin:begin + arguments.length] for begin in begins.tolist()])
        yield {"input_ids": ids, "labels": ids}


def main():
    arguments = parse_arguments()
    torch.manual_seed(0)
    model = make_model(arguments)
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.rate)
    scheduler = transformers.get_linear_schedule_with_warmup(optimizer, 5, arguments.steps)

    @stowage.step(model, optimizer, budget=arguments.budget, host=arguments.host,
                  device=arguments.device)
    def train_step(batch):
        loss = model(**batch, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    data = batches(read_tokens(arguments.model_folder), arguments)
    batch = next(data)
    try:
        print(train_step.plan(batch))
    except stowage.Infeasible as error:
        raise SystemExit(f"{error}\ntry --budget {error.smallest_budget}") from None
    if arguments.plan_only:
        return
    for step in range(arguments.steps):
        loss = train_step(batch)
        scheduler.step()
        print(f"step {step + 1}: loss {loss.item():.4f}")
        batch = next(data)
    if arguments.save:
        model.save_pretrained(arguments.save)
        print(f"wrote {arguments.save}")


if __name__ == "__main__":
    main()
