# SPDX-License-Identifier: Apache-2.0
"""The line that says what takes long."""

import io
import os
import pty
import subprocess
import sys
import threading
import time
import types

import planned_training as tools  # noqa: F401 - sets torch up
import pytest
import torch
import transformers

import stowage
from stowage import _progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(_progress, "_stderr", lambda: stream)
    monkeypatch.setattr(_progress, "_DELAY", 0.02)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("STOWAGE_PROGRESS", raising=False)
    return stream


def test_long_work_says_what_it_is_and_erases_it(terminal):
    with _progress.phase("batch 16"), _progress.phase("capturing f"):
        time.sleep(0.2)
    assert "\rbatch 16: capturing f  0 s" in terminal.getvalue()
    last = terminal.getvalue().split("\r")[-2]
    assert terminal.getvalue().endswith("\r") and last.strip() == ""
    assert "\n" not in terminal.getvalue()


def test_capture_and_plan_show_their_phase(terminal):
    # The ticker gets its turn while C++ plans: that goes on without the interpreter's lock.
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=2, n_embd=32, n_head=2, vocab_size=64, n_positions=64, bos_token_id=None,
        eos_token_id=None))
    optimizer = torch.optim.AdamW(model.parameters())

    @stowage.step(model, optimizer, budget="60%peak", device="cpu")
    def train_step(ids):
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    train_step.plan(torch.zeros(2, 32, dtype=torch.long))
    shown = terminal.getvalue()
    assert "capturing train_step  " in shown
    assert shown.count("planning for 60%peak  ") >= 2


def test_short_work_shows_nothing(terminal, monkeypatch):
    monkeypatch.setattr(_progress, "_DELAY", 1.0)
    with _progress.phase("capturing f"):
        pass
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("reason", ["no terminal", "STOWAGE_PROGRESS", "CI"])
def test_nobody_watches(terminal, monkeypatch, reason):
    if reason == "no terminal":
        monkeypatch.setattr(terminal, "isatty", lambda: False)
    else:
        monkeypatch.setenv(reason, "0")
    with _progress.phase("capturing f"):
        time.sleep(0.1)
    assert terminal.getvalue() == ""


def test_a_notebook_watches(terminal, monkeypatch):
    monkeypatch.setattr(terminal, "isatty", lambda: False)
    kernel = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython",
                        types.SimpleNamespace(get_ipython=lambda: kernel))
    with _progress.phase("capturing f"):
        time.sleep(0.1)
    assert "capturing f" in terminal.getvalue()


def test_one_line_for_several_threads(terminal):
    def work():
        with _progress.phase("of another"):
            time.sleep(0.1)

    other = threading.Thread(target=work)
    with _progress.phase("of the first"):
        other.start()
        time.sleep(0.1)
        other.join()
    assert "of the first" in terminal.getvalue()
    assert "of another" not in terminal.getvalue()


def test_an_error_ends_the_line(terminal):
    with pytest.raises(KeyError), _progress.phase("capturing f"):
        time.sleep(0.1)
        raise KeyError
    assert terminal.getvalue().endswith("\r")
    assert "stowage progress" not in [one.name for one in threading.enumerate()]


def test_in_a_real_terminal_after_a_second():
    code = ("import time\nfrom stowage import _progress\n"
            "with _progress.phase('short'): time.sleep(0.3)\n"
            "with _progress.phase('long work'): time.sleep(1.4)\nprint('end')")
    ours, theirs = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "CI"}
    done = subprocess.run([sys.executable, "-c", code], stderr=theirs, stdout=subprocess.PIPE,
                          env=environment, text=True, check=True)
    os.close(theirs)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert done.stdout == "end\n"
    assert "long work  1 s" in shown and "short" not in shown and "\n" not in shown
