# SPDX-License-Identifier: Apache-2.0
"""The programs of tools/examples, with tiny settings: the same losses as without a plan."""

import contextlib
import pathlib
import re
import runpy
import sys

import planned_training as tools  # noqa: F401 - one thread
import pytest
import transformers

import stowage

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "tools/examples"


class Unplanned:
    """What @stowage.step makes of a function, without planning anything."""

    def __init__(self, function):
        self._function = function

    def plan(self, *args):
        return "no plan"

    def __call__(self, *args):
        return self._function(*args)


@pytest.fixture
def run(monkeypatch, capfd):
    def run(name, *arguments, planned=True):
        """What the program prints."""
        capfd.readouterr()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", [name, *map(str, arguments)])
            if not planned:
                patch.setattr(stowage, "step", lambda *args, **options: Unplanned)
                patch.setattr(stowage, "without_memory", contextlib.nullcontext)
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capfd.readouterr().out

    return run


def losses_of(printed):
    return re.findall(r"^step \d+: loss [0-9.]+$", printed, re.MULTILINE)


SMALL = ("--device", "cpu", "--steps", 4, "--length", 32)


def test_full_fine_tuning(run, tmp_path):
    options = (*SMALL, "--batch", 2, "--layers", 2, "--budget", "60%peak")
    printed = run("finetune.py", *options, "--save", tmp_path / "saved")
    assert printed.startswith("fits ")
    assert len(losses_of(printed)) == 4
    assert losses_of(printed) == losses_of(run("finetune.py", *options, planned=False))
    saved = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "saved")
    assert saved.config.num_hidden_layers == 2
    again = (*options, "--model-folder", tmp_path / "saved")
    found = losses_of(run("finetune.py", *again))
    assert found == losses_of(run("finetune.py", *again, planned=False))
    assert found[0] != losses_of(printed)[0]


def test_lora(run, tmp_path):
    printed = run("lora.py", *SMALL, "--save", tmp_path / "adapters")
    assert printed.startswith("fits ")
    assert len(losses_of(printed)) == 4
    assert losses_of(printed) == losses_of(run("lora.py", *SMALL, planned=False))
    assert (tmp_path / "adapters/adapter_model.safetensors").exists()


def test_lora_on_a_model_of_files(run, tmp_path):
    run("finetune.py", *SMALL, "--batch", 2, "--layers", 2, "--save", tmp_path / "base")
    options = (*SMALL, "--model-folder", tmp_path / "base", "--budget", "2GiB")
    assert losses_of(run("lora.py", *options)) == losses_of(
        run("lora.py", *options, planned=False))
    assert run("lora.py", *options, "--plan-only").startswith("fits ")


def test_qlora(run, tmp_path):
    options = (*SMALL, "--budget", "35%peak")
    printed = run("qlora.py", *options, "--save", tmp_path / "adapters")
    assert printed.startswith("fits ")
    assert len(losses_of(printed)) == 4
    assert losses_of(printed) == losses_of(run("qlora.py", *options, planned=False))
    assert (tmp_path / "adapters/adapter_model.safetensors").exists()


def test_qlora_on_a_model_of_files(run, tmp_path):
    run("finetune.py", *SMALL, "--steps", 1, "--layers", 2, "--save", tmp_path / "base")
    options = (*SMALL, "--model-folder", tmp_path / "base", "--budget", "2GiB")
    assert losses_of(run("qlora.py", *options)) == losses_of(
        run("qlora.py", *options, planned=False))


def test_an_own_loop_resumes(run, tmp_path):
    options = ("--device", "cpu", "--evaluate-every", 3)
    folder = ("--folder", tmp_path / "checkpoint")
    whole = run("own_loop.py", *options, "--steps", 6)
    first = run("own_loop.py", *options, *folder, "--steps", 4)
    second = run("own_loop.py", *options, *folder, "--steps", 6)
    assert "goes on after step 4" in second
    assert losses_of(first) + losses_of(second) == losses_of(whole)
    assert whole.count("evaluation after step") == 2
    assert whole.splitlines()[-1] == second.splitlines()[-2]


def test_a_budget_that_is_too_small_names_one_that_works(run):
    with pytest.raises(SystemExit, match=r"(?s)no schedule fits.*try --budget \d+"):
        run("finetune.py", *SMALL, "--budget", "100KiB")
