# SPDX-License-Identifier: Apache-2.0
"""Trainings whose steps, evaluations and looks at the state come in any order, in several shapes.

`check(seed, device)` runs one, with plans that take turns on one state and with plain PyTorch.
"""

import random
import warnings

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import stowage

SHAPES = [(4, 16), (3, 16), (2, 24)]


def _gpt2():
    return GPT2LMHeadModel(GPT2Config(
        n_layer=2, n_embd=32, n_head=2, vocab_size=64, n_positions=32, bos_token_id=0,
        eos_token_id=0))


def _frozen_llama():
    model = LlamaForCausalLM(LlamaConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        vocab_size=64, bos_token_id=0, eos_token_id=0))
    for parameter in model.model.embed_tokens.parameters():
        parameter.requires_grad_(False)
    return model


class _Normed(torch.nn.Module):
    """With buffers that training writes and evaluation reads, and one that it never touches."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(64, 24)
        self.norm = torch.nn.BatchNorm1d(24)
        self.out = torch.nn.Linear(24, 64)
        self.unused = torch.nn.Parameter(torch.ones(7))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, input_ids, labels):
        hidden = self.norm(self.embedding(input_ids).transpose(1, 2)).transpose(1, 2)
        if self.training:
            self.seen += input_ids.shape[0]
        logits = self.out(torch.nn.functional.dropout(hidden, 0.1, self.training))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return {"loss": loss / self.seen.clamp(min=1), "logits": logits}


_MODELS = [_gpt2, _frozen_llama, _Normed]


class _Training:
    def __init__(self, seed, device):
        torch.manual_seed(0)
        self.model = model = _MODELS[seed % len(_MODELS)]().to(device)
        trained = [one for one in model.parameters() if one.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda k: 1 / (1 + k))

    def step(self, batch):
        loss = self.model(**batch)["loss"]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.scheduler.step()
        self.optimizer.zero_grad()
        return loss

    def look(self, batch):
        out = self.model(**batch)
        return {"loss": out["loss"], "last": out["logits"][:, -1], "labels": batch["labels"]}

    def evaluate(self, batch):
        self.model.eval()
        with torch.no_grad():
            found = self.look(batch)
        self.model.train()
        return found


def _script(seed, device):
    """[("step" | "evaluate" | "state", batch)]"""
    generator = torch.Generator().manual_seed(seed)
    choose = random.Random(seed)
    parts = []
    for position in range(12):
        what = choose.choices(["step", "evaluate", "state"], [6, 3, 1])[0] if position else "step"
        ids = torch.randint(0, 64, choose.choice(SHAPES), generator=generator).to(device)
        parts.append((what, {"input_ids": ids, "labels": ids.clone()}))
    return parts


def _copies(found):
    return {key: one.detach().cpu().clone() for key, one in found.items()}


def _budget(seed, device):
    """Of the largest batch: sixty per cent of what it needs, or the least that it takes."""
    training = _Training(seed, device)
    largest = torch.zeros(max(SHAPES), dtype=torch.long, device=device)
    planned = stowage.step(training.model, training.optimizer, budget="60%peak")(training.step)
    try:
        return planned.plan({"input_ids": largest, "labels": largest}).budget
    except stowage.Infeasible as error:
        return int(error.smallest_budget * 1.05)
    finally:
        planned.leave()


def check(seed, device):
    """Returns (what differs, facts)."""
    script = _script(seed, device)
    plain = _Training(seed, device)
    torch.manual_seed(5)
    expected = []
    for what, batch in script:
        if what == "step":
            expected.append({"loss": plain.step(batch).detach().cpu()})
        elif what == "evaluate":
            expected.append(_copies(plain.evaluate(batch)))
        else:
            expected.append(_copies(plain.model.state_dict()))
    budget = _budget(seed, device)
    other = _Training(seed, device)
    planned = stowage.step(other.model, other.optimizer, budget=budget)(other.step)
    evaluate = planned.evaluation(other.look)
    torch.manual_seed(5)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for what, batch in script:
            if what == "step":
                found.append({"loss": planned(batch).detach()})
            elif what == "evaluate":
                found.append(evaluate(batch))
            else:
                found.append(planned.state_dict()["model"])
    facts = planned.facts()
    planned.leave()
    differ = []
    for position, (a, b) in enumerate(zip(expected, found, strict=True)):
        differ += [f"{key} of {script[position][0]} {position}" for key in a
                   if not torch.equal(a[key], b[key])]
    for (key, a), b in zip(plain.model.state_dict().items(),
                           other.model.state_dict().values(), strict=True):
        if a.device != b.device or not torch.equal(a, b):
            differ.append(key)
    for a, b in zip(plain.model.parameters(), other.model.parameters(), strict=True):
        ours, theirs = plain.optimizer.state.get(a, {}), other.optimizer.state.get(b, {})
        differ += [part for part in ours if not torch.equal(ours[part], theirs[part])]
    if facts["steps"] != sum(what == "step" for what, _ in script):
        differ.append("the count of steps")
    kinds = {(what, tuple(batch["labels"].shape)) for what, batch in script if what != "state"}
    if facts["plans"] != len(kinds | {("step", tuple(script[0][1]["labels"].shape))}):
        differ.append(f"the count of plans, {facts['plans']} of {sorted(kinds)}")
    return differ, facts
