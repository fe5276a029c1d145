# SPDX-License-Identifier: Apache-2.0
"""Steps of Python on several ranks beside plain PyTorch that averages gradients in rank order."""

import os
import subprocess
import sys

import pytest
import torch

import ranks_trainer
import stowage

TRAINER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ranks_trainer.py")


def launch(folder, what, count):
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
         str(count), TRAINER, str(folder), what],
        capture_output=True, text=True, timeout=300, check=False)


def expect_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


@pytest.mark.parametrize(("what", "count"), [("whole", 3), ("resume", 2), ("leave", 2)])
def test_ranks_train_as_plain_models_do(tmp_path, what, count):
    done = launch(tmp_path, what, count)
    assert done.returncode == 0, done.stdout + done.stderr
    for rank, (losses, model, optimizer) in enumerate(ranks_trainer.train_plainly(count)):
        found = torch.load(tmp_path / f"rank{rank}.pt", weights_only=False)
        assert found["losses"] == losses
        expect_same(found["model"], model)
        expect_same(found["looked"], model)
        for key, state in optimizer["state"].items():
            expect_same(found["optimizer"]["state"][key], state)
        assert found["facts"]["peak_bytes"] <= found["facts"]["arena_bytes"]


@pytest.mark.parametrize(("what", "said"), [
    ("dies", "rank 1 is gone"),
    ("other_values", "a digest of the first values (from the seed, or from the weights) of rank 1"),
    ("shape", "several ranks have one shape"),
    ("rate", "a digest of the update's numbers (learning rates) of rank 1 is another one"),
])
def test_what_goes_wrong_in_one_rank_ends_all(tmp_path, what, said):
    done = launch(tmp_path, what, 2)
    assert done.returncode != 0
    assert said in done.stdout + done.stderr, done.stdout + done.stderr
    assert not list(tmp_path.glob("rank*.pt"))


def test_several_ranks_need_a_launcher():
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters())
    with pytest.raises(stowage.InvalidArgument, match="ranks: found 2, expected 1, as many proc"):
        stowage.step(model, optimizer, budget="1GiB", device="cpu", ranks=2)


def test_a_model_that_averages_itself_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")  # whatever the host is called
    torch.distributed.init_process_group("gloo", rank=0, world_size=1,
                                         init_method=f"file://{tmp_path}/store")
    try:
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
        optimizer = torch.optim.SGD(model.parameters())
        with pytest.raises(stowage.Unsupported, match="give the model itself"):
            stowage.step(model, optimizer, budget="1GiB", device="cpu")
    finally:
        torch.distributed.destroy_process_group()
