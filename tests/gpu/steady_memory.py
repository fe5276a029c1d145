#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Device memory of a planned run while it takes steps, as the driver counts it from outside.

Runs a plan and asks the driver's management library (NVML) for the process's memory again and
again, beside the step that the run is at by its progress. From the fifth step on it must stay what
it is, in every launch mode. Exit code 1 when it does not, or when libtorch allocated what the plan
did not serve.

    steady_memory.py [--program build/bin/stowage] [--steps 1000] [--budget 60%peak]
                     [--launch none,no_update,whole] [--out FILE]
"""

import argparse
import ctypes
import os
import pty
import re
import subprocess
import sys
import tempfile
import time

from bits_table import call, capture_arguments
from preconditions import expect_gpu, open_answer

MODEL = "gpt2_bfloat16"
SETTLED = 5  # steps
PROGRESS = re.compile(r"step (\d+)  loss")


class NvmlProcess(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong),
                ("gpu_instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint)]


class Nvml:
    """The first GPU's processes."""

    MOST = 256

    def __init__(self):
        self.library, self.device = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        for status in (self.library.nvmlInit_v2(),
                       self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device))):
            if status != 0:
                raise SystemExit(f"NVML: error {status}")

    def used_by(self, pid):
        """Bytes, or nothing where NVML does not know the process."""
        found, count = (NvmlProcess * self.MOST)(), ctypes.c_uint(self.MOST)
        status = self.library.nvmlDeviceGetComputeRunningProcesses_v3(
            self.device, ctypes.byref(count), found)
        if status != 0:
            raise SystemExit(f"NVML: error {status}")
        return next((process.used for process in found[:count.value] if process.pid == pid), None)


def step_shown(terminal):
    """The last step that the run's progress named since it was asked; 0 for none."""
    text = b""
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except (BlockingIOError, OSError):
            break
        if not part:
            break
        text += part
    shown = PROGRESS.findall(text.decode(errors="replace"))
    return int(shown[-1]) if shown else 0


def watch(options, used_by, plan, costs):
    """([(step, bytes)], what the run said at its end)"""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    samples, last, step = [], None, 0
    with tempfile.TemporaryFile("w+") as answer:
        with subprocess.Popen([options.program, "run", plan, "--costs", costs, "--steps",
                               str(options.steps)], stdout=answer, stderr=theirs,
                              env=environment) as child:
            while child.poll() is None:
                time.sleep(0.05)
                used = used_by(child.pid)
                later = step_shown(ours)
                if later > step:  # steps were taken after the last sample: it is not of the end
                    samples += [last] if last else []
                    last = (step, used) if step >= SETTLED and used is not None else None
                step = max(step, later)
        os.close(ours)
        os.close(theirs)
        answer.seek(0)
        if child.returncode != 0:
            raise SystemExit(f"run: exit {child.returncode}")
        return samples, answer.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bin/stowage")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--budget", default="60%peak")
    parser.add_argument("--launch", default="none,no_update,whole", type=lambda text: text.split(","))
    parser.add_argument("--target", default="h200")
    parser.add_argument("--out", help="answer to write, a JSON file")
    options = parser.parse_args()
    expect_gpu()
    bad, nvml = 0, Nvml()
    report = open_answer(options.out, "memory", options.program)
    with tempfile.TemporaryDirectory() as folder:
        step, costs, plan = (os.path.join(folder, name) for name in ("s.stow", "c.json", "p.json"))
        call(options.program, *capture_arguments(MODEL, options.target, step))
        call(options.program, "profile", step, "-o", costs)
        for launch in options.launch:
            call(options.program, "plan", step, "--budget", options.budget, "--costs", costs,
                 "--launch", launch, "-f", "-o", plan)
            samples, answer = watch(options, nvml.used_by, plan, costs)
            seen = sorted({used for _, used in samples})
            fine = len(samples) >= 3 and len(seen) == 1 and " 0 allocations outside" in answer
            bad += not fine
            said = "; ".join(line.strip() for line in answer.splitlines()[1:4])
            print(f"{'ok ' if fine else 'BAD'} {launch}: {len(samples)} samples, steps "
                  f"{[step for step, _ in samples[:1] + samples[-1:]]}: "
                  f"{[f'{used / 2**20:.1f}' for used in seen]} MiB; {said}", flush=True)
            report.add({"check": "steady", "model": MODEL, "launch": launch,
                        "samples": len(samples), "steps": [step for step, _ in
                                                           samples[:1] + samples[-1:]],
                        "used_bytes": seen[:1] + seen[1:][-1:], "good": fine,
                        "outside_none": " 0 allocations outside" in answer})
    report.finish()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
