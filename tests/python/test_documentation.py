# SPDX-License-Identifier: Apache-2.0
"""The Python that documents for users show: the blocks of a page run in order in one namespace.

Messages that the page lists occur in the sources.
"""

import pathlib
import re
import subprocess
import sys

import planned_training as tools  # noqa: F401 - one thread
import pytest
import torch
import transformers

import stowage

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("README.md", "tools/docs/python.md")


def blocks_of(text):
    """(line where the code begins, code) of each block of Python."""
    return [(text.count("\n", 0, found.start(1)) + 1, found[1])
            for found in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]


def is_for_a_gpu(code):
    return 'device="h200"' in code


def run(page, text):
    names = {"__name__": "documentation", "stowage": stowage, **tiny_training()}
    for line, code in blocks_of(text):
        if is_for_a_gpu(code):  # as the page says, in a process of its own
            subprocess.run([sys.executable, "-c", code], check=True)
            continue
        # An error names the line of the page.
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)


def tiny_training():
    """What README.md takes for granted."""
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=4, n_embd=64, n_head=4, vocab_size=128, n_positions=64, bos_token_id=None,
        eos_token_id=None))
    ids = torch.randint(0, 128, (4, 32))
    return {"model": model, "optimizer": torch.optim.AdamW(model.parameters()),
            "batch": {"input_ids": ids, "labels": ids}}


def sources():
    """With adjacent texts joined, as the compiler does."""
    paths = [*ROOT.glob("runtime/python/stowage/*.py"), *ROOT.glob("runtime/capture/**/*.cpp")]
    return re.sub(r'"\s*f?"', "", "\n".join(path.read_text() for path in paths))


def listed_messages(text):
    table = text.split("| what | the message has |")[1].split("\n\n")[0]
    return [row.split("|")[2].strip() for row in table.splitlines()[2:]]


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    run(ROOT / page, (ROOT / page).read_text())
    printed = capfd.readouterr().out
    assert printed.count("fits ") >= 1, printed


AFTER_A_BACKWARD = """
import torch, stowage
model = torch.nn.Linear(4, 4)
model(torch.ones(4)).sum().backward()
optimizer = torch.optim.AdamW(model.parameters())
@stowage.step(model, optimizer, budget="1GiB", device="h200")
def train_step(x):
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    return loss
try:
    train_step.plan(torch.ones(4))
except stowage.EnvironmentError as error:
    print(error)
"""


def test_the_page_is_right_about_a_process_of_its_own():
    done = subprocess.run([sys.executable, "-c", AFTER_A_BACKWARD], capture_output=True, text=True,
                          check=True)
    assert "plan for it in a process of its own, before any backward()" in done.stdout


def test_an_error_of_a_block_names_the_line_of_the_page():
    with pytest.raises(ZeroDivisionError) as raised:
        run("page.md", "text\n```python\na = 0\n```\n\n```python\n1 / a\n```\n")
    assert raised.traceback[-1].lineno + 1 == 7


def test_listed_messages_are_those_of_the_sources():
    everything = sources()
    messages = listed_messages((ROOT / "tools/docs/python.md").read_text())
    assert len(messages) == 11
    assert [one for one in messages if one not in everything] == []
    assert "no such message of ours" not in everything


@pytest.mark.parametrize(("page", "most"), [("README.md", 120), ("tools/docs/python.md", 150)])
def test_a_page_keeps_its_length(page, most):
    assert len((ROOT / page).read_text().splitlines()) <= most
