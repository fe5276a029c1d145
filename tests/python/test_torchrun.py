# SPDX-License-Identifier: Apache-2.0
"""Programs that torchrun starts find each other by its store and train, on one host and on two."""

import os
import shutil
import subprocess
import sys

import pytest

TESTS = os.path.join(os.environ["STOWAGE_BUILD"], "tests")
PROGRAM = os.path.join(TESTS, "launch_test")
TEST = "UnderALauncher.JoinsTheOtherRanks"
LAUNCH = [sys.executable, "-m", "torch.distributed.run"]
WORK = ["--no-python", PROGRAM, f"--gtest_filter={TEST}"]


def count_joined(text):
    return text.count(f"[       OK ] {TEST}")


def test_ranks_find_each_other():
    ranks = 3
    done = subprocess.run([*LAUNCH, "--nproc-per-node", str(ranks), "--standalone", *WORK],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert count_joined(done.stdout) == ranks, done.stdout + done.stderr


def test_cpp_steps_train_as_plain_modules_do():
    test = "UnderALauncher.TrainsAsPlainModulesDo"
    done = subprocess.run(
        [*LAUNCH, "--nproc-per-node", "3", "--standalone", "--no-python",
         os.path.join(TESTS, "session_ranks_test"), f"--gtest_filter={test}"],
        capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(f"[       OK ] {test}") == 3, done.stdout + done.stderr


STOWAGE = os.path.join(os.environ["STOWAGE_BUILD"], "bin", "stowage")


def stowage(*words):
    done = subprocess.run([STOWAGE, *words], capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def trained(tmp_path):
    """A plan for two ranks, and the model that they come to when `stowage` starts them."""
    step, plan = str(tmp_path / "step.stow"), str(tmp_path / "plan.json")
    stowage("capture", "gpt2", "--set", "preset=tiny", "-o", step)
    stowage("plan", step, "--ranks", "2", "--threads", "1", "--budget", "60%peak", "-o", plan)
    run = ["run", plan, "--steps", "3", "-q", "--save"]
    stowage(*run, str(tmp_path / "expected"), "--ranks", "2")
    return [STOWAGE, *run], model_of(tmp_path / "expected")


def model_of(checkpoint):
    return (checkpoint / "model.safetensors").read_bytes()


def test_a_run_under_torchrun_is_the_run_of_ranks(trained, tmp_path):
    run, expected = trained
    done = subprocess.run([*LAUNCH, "--nproc-per-node", "2", "--standalone", "--no-python", *run,
                           str(tmp_path / "found")],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert model_of(tmp_path / "found") == expected


def ip(*words):
    subprocess.run(["ip", *words], capture_output=True, check=True)


@pytest.fixture
def hosts():
    """Two network namespaces with a cable between them: by name, with their addresses."""
    names = [f"stowage{os.getpid()}{side}" for side in "ab"]
    cables = [f"sw{os.getpid() % 100000}{side}" for side in "ab"]
    addresses = ["10.213.7.1", "10.213.7.2"]
    if not shutil.which("ip"):
        pytest.skip("no 'ip' to make network namespaces with")
    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", cables[0], "netns", names[0], "type", "veth", "peer", "name", cables[1],
           "netns", names[1])
        for name, cable, address in zip(names, cables, addresses):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", cable)
            for device in ("lo", cable):
                ip("-n", name, "link", "set", device, "up")
        yield dict(zip(names, addresses))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"network namespaces are not allowed here: {error.stderr.decode().strip()}")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def test_ranks_of_two_hosts_find_each_other(hosts):
    first = next(iter(hosts.values()))
    launched = [
        subprocess.Popen(
            ["ip", "netns", "exec", name, *LAUNCH, "--nnodes", "2", "--node-rank", str(number),
             "--nproc-per-node", "2", "--master-addr", first, "--master-port", "29517", *WORK],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for number, name in enumerate(hosts)]
    said = [one.communicate(timeout=120) for one in launched]
    assert [one.returncode for one in launched] == [0, 0], said
    assert [count_joined(out) for out, _ in said] == [2, 2], said


def test_ranks_of_two_hosts_train_as_those_of_one(hosts, trained, tmp_path):
    run, expected = trained
    first = next(iter(hosts.values()))
    launched = [
        subprocess.Popen(
            ["ip", "netns", "exec", name, *LAUNCH, "--nnodes", "2", "--node-rank", str(number),
             "--nproc-per-node", "1", "--master-addr", first, "--master-port", "29518",
             "--no-python", *run, str(tmp_path / "found")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for number, name in enumerate(hosts)]
    said = [one.communicate(timeout=120) for one in launched]
    assert [one.returncode for one in launched] == [0, 0], said
    assert model_of(tmp_path / "found") == expected
