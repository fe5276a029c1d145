# SPDX-License-Identifier: Apache-2.0
"""The Trainer of transformers, by a plan and without: the same logs and the same weights."""

import functools
import pathlib
import signal
import subprocess
import sys
import warnings

import peft
import pytest
import stowage
import stowage.hf
import torch
import transformers
from planned_training import check_same

torch.set_num_threads(1)
TIMES = ("runtime", "per_second")


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=2, n_embd=32, n_head=2, vocab_size=64, n_positions=16))


def lora_llama():
    llama = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        vocab_size=64, max_position_embeddings=16))
    return peft.get_peft_model(llama, peft.LoraConfig(
        r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.1, task_type="CAUSAL_LM"))


def texts(count, seed):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(0, 64, (count, 16), generator=generator)
    return [{"input_ids": row, "labels": row} for row in rows]


def make_trainer(make_model, folder, rows=48, callbacks=None, kind=transformers.Trainer,
                 **options):
    transformers.set_seed(0)
    given = {
        "max_steps": 12, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 2,
        "max_grad_norm": 0.5, "learning_rate": 1e-2, "lr_scheduler_type": "cosine",
        "warmup_steps": 3, "logging_steps": 1, "eval_strategy": "steps", "eval_steps": 4,
        "save_steps": 6, "report_to": [], "use_cpu": True, "disable_tqdm": True, **options}
    args = transformers.TrainingArguments(output_dir=str(folder), **given)
    return kind(make_model(), args, train_dataset=texts(rows, 1), eval_dataset=texts(5, 2),
                callbacks=callbacks)


def wrapped(trainer, budget="70%peak", **options):
    return stowage.hf.wrap(trainer, budget=budget, **options)


def left_by(trainer):
    log = [{key: value for key, value in entry.items() if not key.endswith(TIMES)}
           for entry in trainer.state.log_history]
    # train() empties its optimizer's gradients, and leaves nothing of the plan.
    return {"log": log, "model": dict(trainer.model.state_dict()),
            "optimizer": trainer.optimizer.state_dict(), "generator": torch.get_rng_state(),
            "scheduler": trainer.lr_scheduler.state_dict()["last_epoch"]}


def run(make_model, folder, wrap, resume_from=None, **options):
    trainer = wrap(make_trainer(make_model, folder, **options))
    trainer.train(resume_from_checkpoint=resume_from)
    return left_by(trainer)


def files_of(checkpoint):
    found = {"rng": torch.load(checkpoint / "rng_state.pth", weights_only=False)["cpu"],
             "optimizer": torch.load(checkpoint / "optimizer.pt")}
    for path in checkpoint.glob("*.safetensors"):
        found[path.name] = path.read_bytes()
    return found


CASES = [(gpt2, {}), (gpt2, {"bf16": True, "gradient_checkpointing": True}), (lora_llama, {})]


@pytest.mark.parametrize(("make_model", "options"), CASES)
def test_trains_evaluates_saves_and_resumes(make_model, options, tmp_path):
    plain = run(make_model, tmp_path / "plain", lambda trainer: trainer, **options)
    check_same(run(make_model, tmp_path / "planned", wrapped, **options), plain)
    assert [one["eval_loss"] for one in plain["log"] if "eval_loss" in one]
    saved = tmp_path / "planned" / "checkpoint-6"
    check_same(files_of(saved), files_of(tmp_path / "plain" / "checkpoint-6"))
    again = run(make_model, tmp_path / "again", wrapped, resume_from=str(saved), **options)
    plain_again = run(make_model, tmp_path / "plain_again", lambda trainer: trainer,
                      resume_from=str(tmp_path / "plain" / "checkpoint-6"), **options)
    check_same(again, plain_again)
    check_same(again["model"], plain["model"])


def test_smaller_last_batch_and_best_model(tmp_path):
    """45 rows: the last batch of an epoch has one row, and the last step one batch."""
    options = {"rows": 45, "max_steps": -1, "num_train_epochs": 2, "eval_steps": 6,
               "load_best_model_at_end": True, "metric_for_best_model": "loss"}
    with_budget = functools.partial(wrapped, budget="450KiB")
    plain = run(gpt2, tmp_path / "plain", lambda trainer: trainer, **options)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        planned = run(gpt2, tmp_path / "planned", with_budget, **options)
    check_same(planned, plain)
    assert any("another shape" in str(one.message) for one in told)
    with pytest.raises(stowage.InvalidArgument, match="not shaped like"):
        run(gpt2, tmp_path / "refused",
            lambda trainer: with_budget(trainer, new_shapes="refuse"), **options)


def test_trains_twice_and_is_plain_between(tmp_path):
    def train_twice(wrap, folder):
        trainer = wrap(make_trainer(gpt2, folder, max_steps=3, save_strategy="no"))
        trainer.train()
        first = trainer.evaluate()["eval_loss"]
        trainer.train()
        return first, left_by(trainer)

    check_same(train_twice(wrapped, tmp_path / "a"), train_twice(lambda one: one, tmp_path / "b"))


def _collate(rows):
    """Pads to the longest row of a batch, as most collators do."""
    pad = torch.nn.utils.rnn.pad_sequence
    ids = pad([row["input_ids"] for row in rows], batch_first=True)
    mask = pad([torch.ones_like(row["input_ids"]) for row in rows], batch_first=True)
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}


def test_batches_of_other_lengths_and_with_padding(tmp_path):
    """The model asks whether the mask has padding: for some batches it computes something else."""
    def train(wrap, folder):
        trainer = make_trainer(gpt2, folder, remove_unused_columns=False, max_steps=5)
        trainer.data_collator = _collate
        trainer.train_dataset = [
            {"input_ids": row["input_ids"][:8 + i % 2 * 4]}
            for i, row in enumerate(trainer.train_dataset)]
        trainer.eval_dataset = trainer.train_dataset[:5]
        wrap(trainer).train()
        return left_by(trainer)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        planned = train(functools.partial(wrapped, budget="600KiB"), tmp_path / "a")
    check_same(planned, train(lambda one: one, tmp_path / "b"))
    assert any("a plan of its own" in str(one.message) for one in told)


class _Counts(transformers.Trainer):
    """The usual ways to extend a Trainer: a loss of one's own that counts, and logs."""

    losses = 0

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        self.losses += 1
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True, **kwargs)
        return (2 * loss, outputs) if return_outputs else 2 * loss

    def log(self, logs, *args, **kwargs):
        super().log({**logs, "losses": self.losses}, *args, **kwargs)


class _Looks(transformers.TrainerCallback):
    """Looks at the weights in the middle of the training, and at the plan's numbers."""

    def __init__(self):
        self.seen, self.facts, self.trainer = [], None, None

    def on_step_end(self, args, state, control, model=None, **kwargs):
        planned = stowage.hf.step_of(self.trainer) if hasattr(self.trainer, "_stowage") else None
        if planned is None:
            self.seen.append(next(model.parameters()).detach().clone())
            return
        self.facts = planned.facts()
        with planned.live() as live:
            self.seen.append(next(live.parameters()).detach().clone())


def test_own_loss_and_callback(tmp_path):
    def train(wrap, folder):
        looks = _Looks()
        trainer = wrap(make_trainer(gpt2, folder, kind=_Counts, callbacks=[looks]))
        looks.trainer = trainer
        trainer.train()
        return looks, {**left_by(trainer), "seen": looks.seen}

    looks, planned = train(wrapped, tmp_path / "a")
    check_same(planned, train(lambda one: one, tmp_path / "b")[1])
    assert looks.facts["steps"] == 12
    assert 0 < looks.facts["peak_bytes"] <= looks.facts["arena_bytes"]


class _StopsInside(transformers.TrainerCallback):
    def on_substep_end(self, args, state, control, **kwargs):
        control.should_epoch_stop = True


class _Raises(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 2:
            raise KeyboardInterrupt


def test_gives_the_model_back_when_train_is_interrupted(tmp_path):
    def interrupted(wrap, folder):
        trainer = wrap(make_trainer(gpt2, folder, callbacks=[_Raises()]))
        with pytest.raises(KeyboardInterrupt):
            trainer.train()
        return left_by(trainer)

    check_same(interrupted(wrapped, tmp_path / "a"), interrupted(lambda one: one, tmp_path / "b"))


@pytest.mark.parametrize(("options", "message"), [
    ({"callbacks": [_StopsInside()]}, "on_substep_end"),
    ({"auto_find_batch_size": True}, "auto_find_batch_size"),
])
def test_refuses_what_a_plan_cannot_hold(options, message, tmp_path):
    with pytest.raises(stowage.Unsupported, match=message):
        wrapped(make_trainer(gpt2, tmp_path, **options)).train()


def test_refuses_a_budget_that_is_too_small(tmp_path):
    trainer = make_trainer(gpt2, tmp_path)
    before = {name: one.clone() for name, one in trainer.model.state_dict().items()}
    with pytest.raises(stowage.Infeasible) as refused:
        wrapped(trainer, budget="1KiB").train()
    assert refused.value.smallest_budget > 0
    check_same(dict(trainer.model.state_dict()), before)
    with pytest.raises(stowage.InvalidArgument, match="wrapped already"):
        wrapped(trainer)


def test_a_killed_process_resumes(tmp_path):
    """30 steps, killed after the 21st, with a checkpoint of the 16th: as if nothing had been."""
    def run_script(how, kill_at=0):
        script = pathlib.Path(__file__).with_name("killed_trainer.py")
        return subprocess.run([sys.executable, script, tmp_path / how, how, str(kill_at)],
                              capture_output=True, text=True, check=False)

    assert run_script("planned", kill_at=21).returncode == -signal.SIGKILL
    for how in ("planned", "plain"):
        made = run_script(how)
        assert made.returncode == 0, made.stderr[-2000:]
    planned, plain = (torch.load(tmp_path / how / "left.pt") for how in ("planned", "plain"))
    for one in (planned, plain):  # a checkpoint's log is sorted
        one["log"] = [dict(sorted(entry.items())) for entry in one["log"]]
    assert len(plain["log"]) == 34  # 30 steps, three evaluations, the end
    # What the end says of the whole run counts from where a process began.
    assert planned["log"].pop()["step"] == plain["log"].pop()["step"] == 30
    check_same(planned, plain)
