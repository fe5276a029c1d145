#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Large models on this machine's GPU: planned training under budgets beside plain libtorch.

For each case: capture, measure, plan for every budget, run; then, in the same call on the same
device, the same C++ closures by eager libtorch, and with gradient checkpointing as one writes it by
hand; and, where Python has transformers, the Hugging Face model of the same shape by what its users
set today (hugging_face.py). First values come from one random file, so that no run spends minutes
drawing them. Prints a row as soon as it is there; --out writes an answer (answer.py). Exit code 1
when a run failed or the time given was up.

    gpu.py [--program build/bin/stowage] [--only llama1b] [--budgets 40GiB,30GiB/host-step] [--steps 12]
           [--in-steps] [--timeline] [--deterministic] [--no-planned] [--no-eager]
           [--no-checkpointing] [--seconds 500] [--hugging-face eager,checkpointing]
           [--scratch DIR] [--out FILE]

A budget may name what else its plan may do: 30GiB/host-step (updates on the host, as the planner
chooses), 30GiB/host-updates=25 (25 % of them). Such runs are not compared with eager libtorch: the
host's kernels have other bits.
With --timeline each planned run also takes the times of its commands in ten steps, and its row says
how far copies are hidden and how far the schedule with these times is from what was measured.
With --in-steps all plans are made from the times that ops have in the steps of one budget (of the
case's), which is run first.
"""

import argparse
import concurrent.futures
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time

from answer import Answer, describe
from gpu_cases import CASES
from gpu_rows import answer_rows, seconds

HUGGING_FACE = ["eager", "checkpointing", "checkpointing:2", "checkpointing+offload",
                "stream_offload", "compile", "compile:0.5", "compile:0.2", "compile:0.0",
                "save_on_cpu"]
MODE_SECONDS = 150  # for one of them, all its steps
MODE_STEPS = {"save_on_cpu": 2}  # of those that take many seconds each
PARAMETER = re.compile(r'^\s*(parameter|frozen|buffer) %\S+(?: "([^"]+)")?.*? : (\w+)\[([\d,]*)\]')
BYTES = {"bf16": 2, "f16": 2, "f32": 4}


class Failed(Exception):
    pass


def call(program, *arguments, allowed=(0,)):
    begin = time.time()
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode not in allowed:
        raise Failed(f"{' '.join(arguments[:2])}: exit {done.returncode}: "
                     f"{(done.stderr or done.stdout).strip()[:800]}")
    done.seconds = time.time() - begin
    return done


def write_weights(step, path):
    """All parameters and buffers of a captured step: small normal numbers, 1 for vectors."""
    import torch
    torch.manual_seed(0)
    names = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
    header, tensors, offset = {}, [], 0
    with open(step, encoding="utf-8") as lines:
        for line in lines:
            found = PARAMETER.match(line)
            if not found:
                continue
            name = found.group(2) or re.search(r"%(\S+)", line).group(1)
            dtype, shape = found.group(3), [int(n) for n in found.group(4).split(",") if n]
            count = 1
            for size in shape:
                count *= size
            header[name] = {"dtype": dtype.upper(), "shape": shape,
                            "data_offsets": [offset, offset + count * BYTES[dtype]]}
            tensors.append((dtype, shape))
            offset += count * BYTES[dtype]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for dtype, shape in tensors:
            values = torch.empty(shape, dtype=names[dtype], device="cuda")
            values.fill_(1) if len(shape) == 1 else values.normal_(0, 0.02)
            out.write(values.view(torch.uint8).cpu().numpy().data)


def capture(options, case, folder, name, more=()):
    step = os.path.join(folder, f"{name}.stow")
    costs = os.path.join(folder, f"{name}.costs.json")
    settings = [part for word in [*case["settings"], *more] for part in ("--set", word)]
    mode = [] if options.deterministic else ["--nondeterministic"]
    call(options.program, "capture", case["model"], *settings, *mode, "--device", "cuda", "--target",
         "h200", "-o", step)
    call(options.program, "profile", step, "-o", costs)
    return step, costs


def smallest(options, case, step, costs):
    """The smallest budget that an infeasible error names."""
    done = call(options.program, "plan", step, "--budget", "1MiB", "--costs", costs, "--host",
                case["host"], "--json", allowed=(1,))
    return f"{json.loads(done.stdout)['error']['infeasible']['smallest_budget_bytes']}B"


def plan_flags(ways):
    """Of `stowage plan`, for what follows a budget."""
    flags = []
    for way in ways:
        name, _, value = way.partition("=")
        if way == "host-step":
            flags += ["--allow", "host-step"]
        elif name == "host-updates" and value.isdigit():
            flags += ["--host-updates", value]
        else:
            raise Failed(f"found '/{way}' after a budget, expected /host-step or /host-updates=25")
    return flags


def plan(options, case, step, costs, budget):
    budget, *ways = budget.split("/")
    row = {"ways": ways} if ways else {}
    if budget == "smallest":
        budget, row = smallest(options, case, step, costs), {**row, "smallest": True}
    row["budget"] = "/".join([budget, *ways])
    path = f"{step}.{'-'.join([budget, *ways]).replace('%', '_')}.plan.json"
    try:
        done = call(options.program, "plan", step, "--budget", budget, "--costs", costs, "--host",
                    case["host"], *plan_flags(ways), "-o", path, allowed=(0, 1))
    except Failed as failure:
        return {**row, "verdict": str(failure)}
    if done.returncode == 1:
        return {**row, "verdict": (done.stderr + done.stdout).strip()[:500]}
    return {**row, "verdict": "planned", "plan_s": done.seconds, "path": path}


def judge(answer, compare):
    """"ran", or which promise was not kept."""
    if compare and not answer["unplanned"]["identical"]:
        return f"DIFFERENT: {answer['unplanned']['difference'] or 'nothing repeats'}"
    if answer["allocations_outside"] != 0:
        return f"OUTSIDE: {answer['allocations_outside']} allocations that the plan did not serve"
    if answer["peak_bytes"] != answer["predicted"]["peak_bytes"]:
        return f"PEAK: {answer['peak_bytes']} bytes, {answer['predicted']['peak_bytes']} predicted"
    return "ran"


def run(options, costs, weights, row, compare):
    arguments = ["run", row["path"], "--steps", str(options.steps), "--costs", costs, "--weights",
                 weights, "--json"]
    # Launch overhead rises in a process that traced a GPU: eager training has its own process.
    own_process = compare and options.timeline
    comparing = [*arguments, "--compare-unplanned"]
    if options.timeline:
        arguments += ["--timeline", f"{row['path']}.timeline.json.gz"]
    done = call(options.program, *(comparing if compare and not own_process else arguments),
                allowed=(0, 1))
    answer = json.loads(done.stdout)
    if own_process:
        answer["unplanned"] = json.loads(
            call(options.program, *comparing, allowed=(0, 1)).stdout)["unplanned"]
    with open(row["path"], encoding="utf-8") as file:
        written = json.load(file)
    predicted = written["predicted"]
    row.update({"verdict": judge(answer, compare), "arena_bytes": answer["arena_bytes"],
                "peak_bytes": answer["peak_bytes"],
                "predicted_peak_bytes": answer["predicted"]["peak_bytes"],
                "outside_bytes": answer.get("outside_bytes"),
                "allocations_outside": answer["allocations_outside"],
                "step_s": seconds(answer["step_ns"]), "predicted_s": seconds(predicted["step_ns"]),
                "bound_s": seconds(predicted.get("bound_ns")),
                "out_bytes": predicted["out_bytes"], "in_bytes": predicted["in_bytes"],
                "run_s": done.seconds})
    if compare:
        row["unplanned"] = answer["unplanned"]
    if options.timeline:
        row["timeline"] = answer["timeline"]
    return row


def gibibytes(count):
    return "" if count is None else f"{count / 2**30:.2f}"


def show(name, row):
    if row["verdict"] != "ran":
        print(f"{name:<14} {row['budget']:>8}  {row['verdict']}", flush=True)
    if "step_s" not in row:
        return
    print(f"{name:<14} {row['budget']:>8}  arena {gibibytes(row['arena_bytes'])} GiB, peak "
          f"{gibibytes(row['peak_bytes'])}, beside {gibibytes(row['outside_bytes'])}, out "
          f"{gibibytes(row['out_bytes'])} in {gibibytes(row['in_bytes'])}; step {row['step_s']:.4f} s, "
          f"predicted {row['predicted_s']:.4f}, bound {row['bound_s'] or 0:.4f}; planned in "
          f"{row['plan_s']:.0f} s, ran in {row['run_s']:.0f} s", flush=True)
    if "timeline" in row:
        taken = row["timeline"]
        hidden = taken.get("hidden_copies_permille")
        print(f"{name:<14} {row['budget']:>8}  predicted peak {row['predicted_peak_bytes']}, found "
              f"{row['peak_bytes']}; the schedule with measured times "
              f"{100 * (taken['own_times_step_ns'] / taken['step_ns'] - 1):+.1f} %, from when each "
              f"could begin {100 * (taken['ready_times_step_ns'] / taken['step_ns'] - 1):+.1f} %, "
              f"copies hidden "
              f"{'none to be' if hidden is None else f'{hidden / 10:.1f} %'}, waits in ms "
              f"{ {cause: round(time / 1e6, 1) for cause, time in taken['stall_ns'].items()} }",
              flush=True)
    if "unplanned" in row:
        eager = row["unplanned"]
        print(f"{name:<14}    eager  peak {gibibytes(eager.get('peak_bytes'))} GiB; step "
              f"{seconds(eager['step_ns']):.4f} s; {'same bits' if eager['identical'] else eager['difference']}"
              f" {eager.get('repeats', '')}", flush=True)


def measure_in_steps(options, case, name, step, costs, weights):
    row = plan(options, case, step, costs, case["in_steps"])
    if row["verdict"] != "planned":
        raise Failed(f"{case['in_steps']}: {row['verdict']}")
    path = f"{step}.in_steps.costs.json"
    # The last ten are timed; those before say how much that adds to launch overhead.
    done = call(options.program, "run", row["path"], "--steps", "16", "--costs", costs, "--weights",
                weights, "--costs-out", path, "--json")
    answer = json.loads(done.stdout)
    print(f"{name:<14} {case['in_steps']:>8}  costs from its steps: {seconds(answer['step_ns']):.4f} s, "
          f"predicted from ops alone {seconds(answer['predicted']['step_ns']):.4f}", flush=True)
    os.remove(row["path"])
    return path


def run_budgets(options, case, name, folder, budgets, weights, more=()):
    """Plans run as soon as they are made; the tightest is compared with eager libtorch."""
    step, costs = capture(options, case, folder, name, more)
    if not os.path.exists(weights):
        write_weights(step, weights)
    source = "ops alone"
    if options.in_steps and not more:
        costs = measure_in_steps(options, case, name, step, costs, weights)
        source = f"steps of {case['in_steps']}"
    rows = []
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = [pool.submit(plan, options, case, step, costs, budget) for budget in budgets]
        if any("/" in budget for budget in budgets):  # updates on the host need the processors
            concurrent.futures.wait(waiting)
        for ready in concurrent.futures.as_completed(waiting):
            row = ready.result()
            row.update({"checkpointing": bool(more), "costs": source})
            if row["verdict"] == "planned" and time.time() > options.end:
                row["verdict"] = "not run: the time given was up"
            if row["verdict"] == "planned":
                try:
                    compare = not options.no_eager and "ways" not in row and ready is waiting[-1]
                    run(options, costs, weights, row, compare)
                except Failed as failure:
                    row["verdict"] = str(failure)
            show(name, row)
            rows.append(row)
            options.report(row)
    return rows


def call_hugging_face(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              timeout=MODE_SECONDS)
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {MODE_SECONDS} s"}
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {"error": f"exit {done.returncode}: {done.stderr.strip()[-300:]}"}


def run_hugging_face(options, name):
    """One process per mode; one that does not fit is a row too."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hugging_face.py")
    rows = []
    for mode in options.hugging_face:
        if time.time() > options.end:
            rows.append({"hugging_face": mode, "verdict": "not run: the time given was up"})
            options.report(rows[-1])
            continue
        row = call_hugging_face([sys.executable, script, mode, *CASES[name]["hugging_face"],
                                 "--steps", str(min(options.steps, MODE_STEPS.get(mode, options.steps)))])
        row = {"hugging_face": mode, "verdict": row.get("error", "ran"), **row}
        rows.append(row)
        options.report(row)
        figures = row["verdict"] if "step_s" not in row else (
            f"peak {gibibytes(row['peak_bytes'])} GiB (reserved {gibibytes(row['reserved_bytes'])}); "
            f"step {row['step_s']:.4f} s")
        print(f"{name:<14} Hugging Face, {mode}: {figures}", flush=True)
    return rows


def run_case(options, name, folder):
    case = CASES[name]
    weights = os.path.join(folder, f"{name}.safetensors")
    rows = []
    if not options.no_planned:
        budgets = options.budgets or case["budgets"]
        rows += run_budgets(options, case, name, folder, budgets, weights)
        if not options.no_eager and not options.no_checkpointing and time.time() < options.end:
            rows += run_budgets(options, case, name + "_ckpt", folder, ["100%peak"], weights,
                                ["checkpointing=on"])
        os.remove(weights)
    return rows + run_hugging_face(options, name)


def run_cases(options, answer):
    """How many runs went otherwise than promised."""
    bad = 0
    for name in options.only:
        def report(row, case=name):
            if "transformers" in row:
                answer.answer["versions"]["transformers"] = row["transformers"]
            for part in answer_rows(case, row):
                answer.add(part)
        options.report = report
        with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
            try:
                rows = run_case(options, name, folder)
                # Peers that do not fit are results; ours are not.
                bad += sum(row["verdict"] != "ran" for row in rows if "hugging_face" not in row)
            except Failed as failure:
                print(f"{name}: FAILED: {failure}", flush=True)
                report({"budget": "", "verdict": f"FAILED: {failure}"})
                bad += 1
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bin/stowage")
    parser.add_argument("--only", default="llama1b,llama8b,llama8b_lora",
                        type=lambda text: text.split(","), help="cases, separated by commas: " +
                        ", ".join(CASES))
    parser.add_argument("--budgets", type=lambda text: text.split(","), help="instead of the case's")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--in-steps", action="store_true", help="costs from inside steps")
    parser.add_argument("--timeline", action="store_true", help="times of commands, too")
    parser.add_argument("--deterministic", action="store_true",
                        help="libtorch's deterministic mode; default: as users run")
    parser.add_argument("--no-planned", action="store_true", help="Hugging Face's model alone")
    parser.add_argument("--no-eager", action="store_true", help="planned runs alone")
    parser.add_argument("--no-checkpointing", action="store_true")
    parser.add_argument("--hugging-face", type=lambda text: [mode for mode in text.split(",") if mode],
                        default=HUGGING_FACE, metavar="MODES", help="which of its modes; '': none; "
                        "default: " + ",".join(HUGGING_FACE))
    parser.add_argument("--seconds", type=float, default=float("inf"),
                        help="start nothing after so many; what runs then is finished")
    parser.add_argument("--scratch", help="folder for files of many GiB; default: a temporary one")
    parser.add_argument("--out", help="answer to write, a JSON file")
    options = parser.parse_args()
    unknown = [name for name in options.only if name not in CASES]
    if unknown:
        parser.error(f"--only {','.join(unknown)}: no such case; there are {', '.join(CASES)}")
    if not os.access(options.program, os.X_OK):
        parser.error(f"--program {options.program}: no such program")
    options.end = time.time() + options.seconds
    head = describe("deterministic" if options.deterministic else "large", options.program)
    print(json.dumps(head), flush=True)
    if not head["card"]:
        print("error: nvidia-smi finds no GPU here", file=sys.stderr)
        return 4
    answer = Answer(options.out, head)
    bad = run_cases(options, answer)
    answer.finish()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
