# SPDX-License-Identifier: Apache-2.0
"""Updates on the host and a disk below it: the bits of plain PyTorch, and what is refused."""

import os
import pathlib
import shutil
import warnings

import planned_training as tools
import pytest
import torch
import transformers

import stowage
import stowage.hf

DISK = "64MiB"


def takes_direct_reads(folder):
    probe = folder / "probe"
    try:
        os.close(os.open(probe, os.O_CREAT | os.O_RDWR | os.O_DIRECT))
    except OSError:
        return False
    finally:
        probe.unlink(missing_ok=True)
    return True


@pytest.fixture
def disk():
    """Below the working directory: folders for temporary files may be memory."""
    folder = pathlib.Path.cwd() / f"python_disk_{os.getpid()}"
    folder.mkdir()
    try:
        if not takes_direct_reads(folder):
            pytest.skip("the folder is on no disk")
        yield str(folder)
        assert not list(folder.iterdir())
    finally:
        shutil.rmtree(folder)


class Wide(torch.nn.Sequential):
    """Its layers are larger than the blocks of a disk."""

    def __init__(self):
        super().__init__(*(layer for last in (96, 96, 96, 3) for layer in (
            torch.nn.LazyLinear(last), torch.nn.GELU())))
        self(torch.zeros(1, 6))


def adamw(model):
    return tools.simple(model, torch.optim.AdamW(model.parameters(), lr=1e-2))


def plan_of(budget, **options):
    """(plan or Infeasible) of that step."""
    model, training = tools.begin(adamw, Wide)
    train_step = stowage.step(model, training.optimizers, budget=budget, device="cpu", **options)(
        training.step)
    try:
        return train_step.plan(*next(tools.batches(1)))
    except stowage.Infeasible as error:
        return error
    finally:
        train_step.leave()


def check_bits(budget, **options):
    """Six planned steps give what plain ones give. Returns the plan."""
    model, training = tools.begin(adamw, Wide)
    data = list(tools.batches(6))
    expected = tools.left_by(model, training, tools.take_steps(training.step, training, data))
    model, training = tools.begin(adamw, Wide)
    train_step = stowage.step(model, training.optimizers, budget=budget, device="cpu", **options)(
        training.step)
    plan = train_step.plan(*data[0])
    returned = tools.take_steps(train_step, training, data)
    train_step.leave()
    tools.check_same(tools.left_by(model, training, returned), expected)
    return plan


@pytest.mark.parametrize("words", ["in-place-reuse,host-step", ["in-place-reuse", "host-step"]])
def test_updates_on_the_host_have_the_bits_of_plain_pytorch(words):
    """In a budget that is too small without them."""
    smallest = plan_of(4096, allow="in-place-reuse").smallest_budget
    plan = check_bits(smallest - 512, allow=words)
    assert plan.to_dict()["host_updated_bytes"] > 0
    assert "\non host    updates of " in str(plan)


def test_updates_on_the_host_come_on_request_only():
    assert plan_of("60%peak").to_dict()["host_updated_bytes"] == 0
    assert plan_of("100%peak", allow="none").to_dict()["counts"]["offloaded"] == 0


def scarce():
    """Half of the host memory that a plan takes where it is not limited."""
    plan = plan_of("50%peak", allow="offload")
    return {"budget": "50%peak", "allow": "offload",
            "host": plan.to_dict()["predicted"]["host_peak_bytes"] // 2}


def test_a_disk_and_half_of_the_host_memory_give_the_bits_of_plain_pytorch(disk):
    options = scarce()
    plan = check_bits(**options, disk=f"{disk}:{DISK}", verify_disk=True)
    answer = plan.to_dict()
    assert answer["disk"]["read_bytes"] > 0
    assert answer["predicted"]["host_peak_bytes"] <= options["host"]
    assert "\ndisk       writes " in str(plan)


def check_turns(with_evaluation, **options):
    """Batches of two shapes, and evaluations between them. Returns the first plan."""
    data = [*tools.batches(3), *tools.batches(3, rows=6), *tools.batches(2)]
    look = next(tools.batches(1))

    def train(model, step, evaluate):
        found = []
        for batch in data:
            found.append(tools.value_of(step(*batch)))
            if with_evaluation:
                found.append(evaluate(*look))
        return found

    model, training = tools.begin(adamw, Wide)
    evaluate = torch.no_grad()(lambda x, y: tools.loss_of(model, x, y))
    expected = tools.left_by(model, training, train(model, training.step, evaluate))
    model, training = tools.begin(adamw, Wide)
    train_step = stowage.step(model, training.optimizers, device="cpu", **options)(training.step)
    plan = train_step.plan(*data[0])
    evaluate = train_step.evaluation(lambda x, y: tools.loss_of(model, x, y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = train(model, train_step, evaluate)
    assert train_step.facts()["plans"] == 2 + with_evaluation
    train_step.leave()
    tools.check_same(tools.left_by(model, training, found), expected)
    return plan.to_dict()


def test_plans_with_a_disk_take_turns(disk):
    plan = check_turns(False, **scarce(), disk=(disk, DISK), verify_disk=True)
    assert plan["disk"]["read_bytes"] > 0


def test_plans_with_updates_on_the_host_take_turns():
    smallest = plan_of(4096, allow="offload").smallest_budget
    plan = check_turns(True, budget=smallest, allow="offload,host-step")
    assert plan["host_updated_bytes"] > 0


def test_an_evaluation_holds_optimizer_state_in_host_memory(disk):
    """Not on the disk: it is refused where that is too little."""
    with pytest.raises(stowage.Infeasible, match="of host memory, expected at least"):
        check_turns(True, **scarce(), disk=(disk, DISK))


def test_an_infeasible_plan_says_what_else_would_do(disk):
    options = scarce()
    error = plan_of(**options)
    assert error.space == "host"
    ways = {way["change"]: way["fits"] for way in error.ways}
    assert ways["no limit of the host"]
    assert any(change.startswith("a disk of ") and fits for change, fits in ways.items())
    assert "\nor no limit of the host: then it fits" in str(error)
    assert "disk" in plan_of(**options, disk=(disk, DISK)).to_dict()
    error = plan_of("60%peak", allow=["reorder"])
    assert any(way["change"] == "allow offload" and way["fits"] for way in error.ways)


@pytest.mark.parametrize(("options", "says"), [
    ({"allow": "offlod"}, r"allow: unknown word 'offlod', did you mean 'offload'\?"),
    ({"allow": ["offload", "none"]}, "allow: found 'offload,none', expected none by itself"),
    ({"allow": 3}, "allow: found 3, expected words"),
    ({"allow": [True]}, r"allow: found \[True\], expected words"),
    ({"disk": "500GiB"}, "disk: found '500GiB', expected a folder and bytes"),
    ({"disk": ("/scratch",)}, "disk: found .*, expected a folder and bytes"),
    ({"disk": 2**30}, "disk: found 1073741824, expected a folder and bytes"),
    ({"disk": "/scratch:much"}, "disk: found 'much', expected bytes"),
    ({"disk": ("/scratch", "50%peak")}, "disk: found '50%peak', expected bytes"),
    ({"disk": "/scratch:0"}, "disk: found '/scratch:0' without bytes"),
    ({"disk": "/no/such/folder:1GiB"}, "disk '/no/such/folder': expected a folder"),
    ({"verify_disk": True}, "verify_disk: found True and no disk"),
    ({"host": "50%peak"}, "host: found '50%peak', expected bytes"),
])
def test_wrong_options_are_refused(options, says):
    with pytest.raises(stowage.InvalidArgument, match=says):
        plan_of("60%peak", **options)


def test_a_folder_in_memory_is_refused():
    if not os.path.isdir("/dev/shm"):
        pytest.skip("no folder in memory")
    with pytest.raises(stowage.EnvironmentError, match="is memory"):
        plan_of("60%peak", disk=("/dev/shm", DISK))


def test_fit_counts_with_the_tiers_of_the_step(disk):
    options = scarce()
    model, training = tools.begin(adamw, Wide)
    batch = next(tools.batches(1))
    budget = plan_of("50%peak").budget
    for more, fits in (({}, False), ({"disk": (disk, DISK)}, True)):
        train_step = stowage.step(model, training.optimizers, device="cpu",
                                  **{**options, "budget": budget, **more})(training.step)
        found = stowage.fit(train_step, *batch, most=8, multiple_of=8, larger=())
        assert (found.largest == 8) == fits
        train_step.leave()


def test_the_trainer_passes_them_on(disk, tmp_path):
    def train(wrap):
        transformers.set_seed(0)
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            n_layer=2, n_embd=64, n_head=2, vocab_size=64, n_positions=16))
        rows = torch.randint(0, 64, (8, 16), generator=torch.Generator().manual_seed(1))
        args = transformers.TrainingArguments(
            output_dir=str(tmp_path), max_steps=3, per_device_train_batch_size=2, report_to=[],
            use_cpu=True, disable_tqdm=True, save_strategy="no")
        trainer = wrap(transformers.Trainer(
            model, args, train_dataset=[{"input_ids": row, "labels": row} for row in rows]))
        trainer.train()
        return dict(model.state_dict())

    plans = []

    class Watch(transformers.TrainerCallback):
        def on_step_end(self, *args, **kwargs):
            plans.append(stowage.hf.step_of(self.trainer)._runner.plan.to_dict())

    def wrapped(trainer):
        watch = Watch()
        watch.trainer = trainer
        trainer.add_callback(watch)
        return stowage.hf.wrap(trainer, budget="60%peak", host="64MiB",
                               allow="offload,host-step", disk=(disk, DISK), verify_disk=True)

    tools.check_same(train(wrapped), train(lambda trainer: trainer))
    assert len(plans) == 3 and "host_updated_bytes" in plans[0]
    with pytest.raises(stowage.InvalidArgument, match="allow: unknown word"):
        train(lambda trainer: stowage.hf.wrap(trainer, budget="60%peak", allow="everything"))
