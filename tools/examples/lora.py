# SPDX-License-Identifier: Apache-2.0
"""LoRA by peft within a memory budget.

    python lora.py --device cpu
    python lora.py --model-folder ~/Llama-3.1-8B --budget 24GiB --device h200 --plan-only
    python lora.py --model-folder ~/Llama-3.1-8B --budget 24GiB

Only the adapters are trained. The base model is built without memory; the first step fills it.
Without --model-folder, a small Llama has random weights.
"""

import argparse
import pathlib
import pydoc_data.topics

import peft
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
        return peft.get_peft_model(base, adapters)
    with stowage.without_memory():  # the adapters' random numbers follow those of the base
        base = transformers.AutoModelForCausalLM.from_config(make_config())
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
