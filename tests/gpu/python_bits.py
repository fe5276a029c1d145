#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face architectures by the Python package on a GPU: the bits of plain PyTorch.

Each trains six steps in deterministic mode, plainly and by a plan at half of its peak, in a process
of its own; losses, parameters and optimizer state are compared, after state_dict() in the middle,
and after leave(), which brings the model back to the GPU. Prints one JSON object a case.
"""

import argparse
import json
import os
import re
import subprocess
import sys

from python_answers import add_row, open_python_answer

SIZES = "sizes."  # steps of tests/python/known_sizes.py
TIMED_OUT = 124  # of `timeout`
TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python")
sys.path.insert(0, TESTS)


def check(name):
    import torch

    import stowage

    from architectures import check as on_cpu

    torch.use_deterministic_algorithms(True)
    if name.startswith(SIZES):
        return check_sizes(name)

    def on_gpu(batch):
        return {key: one.cuda() if isinstance(one, torch.Tensor) else one
                for key, one in batch.items()}

    def train(planned):
        case, optimizer, scheduler, train_step = on_cpu._begin(name)
        case.model.cuda()
        if planned:
            train_step = plan_tightly(case, optimizer, train_step)
        generator = torch.Generator().manual_seed(1)
        losses, middle = [], None
        torch.manual_seed(5)
        for position in range(on_cpu.STEPS):
            batch = on_gpu(case.batch(generator))
            losses.append(float(train_step(batch).detach()))
            scheduler.step()
            if position == 2:
                middle = {key: one.cpu().clone() for key, one in case.model.state_dict().items()}
        facts = train_step.facts() if planned else {}
        if planned:
            train_step.leave()
        return case, optimizer, losses, middle, facts

    def plan_tightly(case, optimizer, train_step):
        """Half of the peak; a little more than the smallest budget where kernels need more."""
        batch = on_gpu(case.batch(torch.Generator().manual_seed(1)))
        planned = stowage.step(case.model, optimizer, budget="50%peak")(train_step)
        try:
            planned.plan(batch)
            return planned
        except stowage.Infeasible as error:
            planned.leave()
            least = int(error.smallest_budget * 1.02)
            return stowage.step(case.model, optimizer, budget=least)(train_step)

    try:
        case, optimizer, losses, middle, _ = train(False)
    except RuntimeError as error:
        if "deterministic" not in str(error):
            raise
        return {"case": name, "result": "not deterministic", "message": str(error)}
    try:
        other, its_optimizer, found, its_middle, facts = train(True)
    except stowage.Error as error:
        return {"case": name, "result": "refused", "message": str(error)}
    differ = [] if losses == found else ["losses"]
    differ += [f"{key} after 3 steps" for key in middle
               if not torch.equal(middle[key], its_middle[key])]
    for (key, a), b in zip(case.model.named_parameters(), other.model.parameters(), strict=True):
        if a.device != b.device or not torch.equal(a, b):
            differ.append(key)
        ours, theirs = optimizer.state.get(a, {}), its_optimizer.state.get(b, {})
        differ += [f"{key}.{part}" for part in ours if not torch.equal(ours[part], theirs[part])]
    result = "wrong" if differ else "equal"
    return {"case": name, "result": result, "differ": differ[:5], "run": facts}


def check_sizes(name):
    """A step whose sizes follow from its batch, on four batches of three sizes."""
    import known_sizes as sizes
    import torch

    loss_of = getattr(sizes, name.removeprefix(SIZES))
    batches = [sizes.make_batch(seed, count) for seed, count in ((1, 9), (2, 5), (3, 9), (4, 12))]
    try:
        plain = sizes.train(loss_of, batches, False, device="cuda")
    except RuntimeError as error:
        if "deterministic" not in str(error):
            raise
        return {"case": name, "result": "not deterministic", "message": str(error)}
    planned = sizes.train(loss_of, batches, True, budget="100%peak", device="cuda")
    if planned.raised is not None:
        return {"case": name, "result": "refused", "message": str(planned.raised)}
    pairs = zip(plain.losses + plain.parameters, planned.losses + planned.parameters, strict=True)
    differ = [str(k) for k, (a, b) in enumerate(pairs) if not torch.equal(a, b)]
    return {"case": name, "result": "wrong" if differ else "equal", "differ": differ[:5],
            "plans": planned.plans}


def last_error(text):
    """From the last line on that names an error."""
    lines = text.strip().splitlines()
    named = [k for k, line in enumerate(lines) if re.match(r"\S*(Error|Exception)\b", line)]
    return "\n".join(lines[named[-1] if named else -10:])[:600]


def chosen(options):
    part, parts = map(int, options.share.split("/"))
    cases = options.cases
    if not cases:
        from architectures import check as on_cpu

        import known_sizes as sizes

        cases = sorted([*on_cpu.TABLE, *(SIZES + one.__name__ for one in sizes.CASES)])
    return cases[part - 1::parts]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*",
                        help="names of tests/python/architectures, sizes.NAME; without any, all")
    parser.add_argument("--share", default="1/1", help="of them, as 2/3: the second third")
    parser.add_argument("--seconds", type=int, default=150, help="limit of a case")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--out", help="a file for the answer")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(check(options.one)))
        return 0
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    answer = open_python_answer(options.out)
    waiting, running, bad = chosen(options), [], 0
    while waiting or running:
        while waiting and len(running) < options.at_once:
            name = waiting.pop(0)
            command = ["timeout", str(options.seconds), sys.executable, __file__, "--one", name]
            running.append((name, subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)))
        name, process = running.pop(0)
        output, errors = process.communicate()
        text = output.strip().splitlines()[-1] if process.returncode == 0 else json.dumps(
            {"case": name, "result": "cut off" if process.returncode == TIMED_OUT else "failed",
             "message": last_error(errors)})
        facts = json.loads(text)
        good = facts["result"] not in ("wrong", "failed", "cut off")
        bad += not good
        print(text, flush=True)
        message = facts.get("message", "").partition("\n")[0][:120]
        add_row(answer, "bits", name, good, facts["result"], message=message,
                differ=facts.get("differ", []))
    answer.finish()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
