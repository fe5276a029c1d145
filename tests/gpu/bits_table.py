#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Example models x budgets on this machine's GPU: planned training against eager libtorch.

For each model: capture for CUDA, measure, and for each budget plan, verify, run and compare losses,
parameters, buffers and optimizer state byte for byte. Prints one row per run and, with --json, all
of them as JSON lines. Exit code 1 when a run failed or bits differ. With --nondeterministic, as users
run, bits are compared where eager libtorch repeats itself.

    bits_table.py [--program build/bin/stowage] [--steps 10] [--budgets 100,70,50,40]
                  [--launch none,no_update,whole] [--only gpt2] [--nondeterministic] [--repeats 20]
                  [--in-steps 80%peak] [--allow offload,in-place-reuse,reorder] [--runs 3]
                  [--out FILE]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

from preconditions import expect_gpu, expect_known, expect_program, open_answer

LLAMA = ["layers=8", "hidden=512", "intermediate=1408", "heads=8", "kv_heads=4", "batch=8",
         "sequence=256", "vocabulary=8192"]
VIT = ["layers=6", "hidden=384", "heads=6", "batch=64", "image=64"]
RESNET = ["layers=50", "width=32", "batch=64", "image=64"]
LSTM = ["hidden=512", "batch=64"]
MODELS = {
    "gpt2": ["gpt2", "preset=demo", "schedule=step", "clip=1"],
    "gpt2_bfloat16": ["gpt2", "preset=demo", "precision=bfloat16", "schedule=cosine", "warmup=2",
                      "clip=1"],
    "gpt2_accumulating": ["gpt2", "preset=demo", "micro_batches=2", "clip=1"],
    "llama": ["llama", *LLAMA, "schedule=cosine", "warmup=2", "clip=1"],
    "llama_bfloat16": ["llama", *LLAMA, "precision=bfloat16", "optimizer=stowage_adamw",
                       "master_weights=on", "schedule=step", "clip=1"],
    "llama_lora": ["llama_lora", *LLAMA, "schedule=step", "clip=1"],
    "vit_autocast": ["vit", *VIT, "dropout=0.1", "precision=autocast", "schedule=step", "clip=1"],
    "resnet": ["resnet", *RESNET, "optimizer=sgd", "lr=0.05", "schedule=step", "clip=1"],
    "resnet_accumulating": ["resnet", *RESNET, "micro_batches=2", "schedule=step", "clip=1"],
    "gpt2_constant_rate": ["gpt2", "preset=demo", "optimizer=stowage_adamw", "clip=1"],
    "llama_constant_rate": ["llama", *LLAMA, "precision=bfloat16", "optimizer=stowage_adamw",
                            "master_weights=on"],
    "lstm": ["lstm", *LSTM, "schedule=step", "clip=1"],
}
# Their attention in f32 leaves its generator's state on the host, where no graph keeps it.
IN_NO_GRAPH = ["gpt2", "gpt2_accumulating", "gpt2_constant_rate"]
LEAST = {"lstm": 40}  # per cent of the peak that are too little: workspaces alone take 33 MiB

EVERYTHING = "offload,recompute,in-place-reuse,reorder"
UNWRITTEN = 64 << 10  # bytes


class Failed(Exception):
    pass


def call(program, *arguments, allowed=(0,)):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode not in allowed:
        raise Failed(f"{' '.join(arguments[:2])}: exit {done.returncode}: "
                     f"{(done.stderr or done.stdout).strip()[:600]}")
    return done


def judge(answer):
    eager = answer["unplanned"]
    if not eager["identical"]:
        return f"DIFFERENT: {eager['difference'] or 'nothing repeats'}"
    if answer["allocations_outside"] != 0:
        return f"OUTSIDE: {answer['allocations_outside']} allocations that the plan did not serve"
    peak = answer["predicted"]["peak_bytes"]
    # What was written may end lower: the highest tensor is padded, or not written to its end. After
    # a release only the last steps count.
    written = answer["high_water_bytes"]
    least = 0 if "releases" in answer else peak - UNWRITTEN
    if answer["peak_bytes"] != peak or not least <= written <= peak:
        return f"PEAK: {answer['peak_bytes']} bytes, written up to {written}, {peak} predicted"
    return "equal"


def run_budget(options, folder, step, costs, budget, launch):
    plan = os.path.join(folder, "plan.json")
    planned = call(options.program, "plan", step, "--budget", f"{budget}%peak", "--costs", costs,
                   "--launch", launch, "--allow", options.allow, "-o", plan, "-f", "--json",
                   allowed=(0, 1))
    if planned.returncode == 1:
        text = (planned.stderr + planned.stdout).strip()
        known = {"rule V25": "not legal", "no schedule fits": "does not fit"}
        verdict = next((verdict for words, verdict in known.items() if words in text), "REFUSED")
        return {"verdict": verdict, "text": text[:300]}
    release = ["--release-every", str(options.release_every)] if options.release_every else []
    done = call(options.program, "run", plan, "--steps", str(options.steps), "--costs", costs,
                "--compare-unplanned", "--json", *release, allowed=(0, 1))
    answer = json.loads(done.stdout)
    eager = answer["unplanned"]
    return {
        "verdict": judge(answer),
        "arena_bytes": answer["arena_bytes"],
        "peak_bytes": answer["peak_bytes"],
        "high_water_bytes": answer["high_water_bytes"],
        "predicted_peak_bytes": answer["predicted"]["peak_bytes"],
        "allocations_outside": answer["allocations_outside"],
        "step_ms": answer["step_ns"] / 1e6,
        "predicted_ms": answer["predicted"]["step_ns"] / 1e6,
        "eager_ms": eager["step_ns"] / 1e6,
        "losses": [answer["losses"][0], answer["losses"][-1]],
        **({"repeats": eager["repeats"]} if "repeats" in eager else {}),
        **({"releases": answer["releases"]} if release else {}),
    }


def run_again(options, folder, costs):
    done = call(options.program, "run", os.path.join(folder, "plan.json"), "--steps",
                str(options.steps), "--costs", costs, "--json")
    answer = json.loads(done.stdout)
    return {"verdict": "ran", "step_ms": answer["step_ns"] / 1e6,
            "predicted_ms": answer["predicted"]["step_ns"] / 1e6}


def capture_arguments(name, target, step):
    settings = [part for word in MODELS[name][1:] for part in ("--set", word)]
    return ["capture", MODELS[name][0], *settings, "--device", "cuda", "--target", target, "-o", step]


def measure(options, name, step, costs):
    if options.repeats < 2:
        in_steps = ["--in-steps", options.in_steps] if options.in_steps else []
        call(options.program, "profile", step, "-o", costs, *in_steps)
        return
    done = call(options.program, "profile", step, "-o", costs, "--repeats", str(options.repeats),
                allowed=(0, 1))
    lines = [line for line in done.stdout.splitlines() if not line.startswith("wrote")]
    print(f"{name}: exit {done.returncode}", *lines, sep="\n  ", flush=True)


def run_model(options, name):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        step = os.path.join(folder, "step.stow")
        costs = os.path.join(folder, "costs.json")
        mode = ["--nondeterministic"] if options.nondeterministic else []
        call(options.program, *capture_arguments(name, options.target, step), *mode)
        begin = time.time()
        measure(options, name, step, costs)
        profiled = time.time() - begin
        for budget in options.budgets:
            for launch in options.launch:
                for k in range(options.runs):
                    try:
                        row = (run_again(options, folder, costs) if k > 0 else
                               run_budget(options, folder, step, costs, budget, launch))
                    except Failed as failure:
                        row = {"verdict": f"FAILED: {failure}"}
                    rows.append({"model": name, "budget": budget, "launch": launch,
                                 "profile_s": round(profiled, 1), **row})
                    show(options, rows[-1])
                    options.answer.add(answer_row(options, rows[-1]))
                    if row["verdict"] not in ("equal", "ran"):
                        break
    return rows


def is_expected(row):
    """What is right, or a refusal that has a reason of the model's."""
    if row["verdict"] in ("equal", "ran"):
        return True
    if row["verdict"] == "not legal":
        return row["model"] in IN_NO_GRAPH and row["launch"] != "none"
    return row["verdict"] == "does not fit" and row["budget"] <= LEAST.get(row["model"], 0)


def show(options, row):
    if options.json:
        print(json.dumps(row), flush=True)
        return
    text = f"{row['model']:<20} {row['budget']:>4}% {row.get('launch', ''):<9} {row['verdict']}"
    if row["verdict"] == "ran":
        text += f"  step {row['step_ms']:.2f} ms predicted {row['predicted_ms']:.2f}"
    elif "step_ms" in row:
        text += (f"  arena {row['arena_bytes']} peak {row['peak_bytes']}"
                 f" outside {row['allocations_outside']}  step {row['step_ms']:.2f} ms"
                 f" predicted {row['predicted_ms']:.2f} eager {row['eager_ms']:.2f}")
    if "repeats" in row:
        text += f"  eager repeats {row['repeats']['equal']} of {row['repeats']['compared']}"
    print(text, flush=True)


def kind_of(options):
    """Which answer these flags make: times of small steps, or bits in one of the two modes."""
    if options.runs > 1 or options.in_steps:
        return "small"
    return "users" if options.nondeterministic else "bits"


def answer_row(options, row):
    """What a results file keeps of it."""
    kept = ("model", "budget", "launch", "verdict", "peak_bytes", "predicted_peak_bytes",
            "high_water_bytes", "allocations_outside", "step_ms", "predicted_ms", "eager_ms")
    short = {key: round(row[key], 3) if isinstance(row[key], float) else row[key]
             for key in kept if key in row}
    short["verdict"] = short["verdict"][:300]
    if "repeats" in row:
        short["repeat_equal"] = row["repeats"]["equal"]
        short["repeat_compared"] = row["repeats"]["compared"]
    if options.allow != EVERYTHING:
        short["allow"] = options.allow
    return short


def at_least_one(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}', expected 1 or more")
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bin/stowage")
    parser.add_argument("--target", default="h200")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--budgets", default="100,70,50,40",
                        type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--launch", default="none", type=lambda text: text.split(","))
    parser.add_argument("--only", help="names of models, separated by commas")
    parser.add_argument("--nondeterministic", action="store_true")
    parser.add_argument("--repeats", type=int, default=0,
                        help="also run every op so often and name those that do not repeat")
    parser.add_argument("--in-steps", metavar="BUDGET",
                        help="costs from the steps of a plan for this budget (profile --in-steps)")
    parser.add_argument("--runs", type=at_least_one, default=1,
                        help="run each plan so often, in processes of their own; the first is "
                             "compared with eager libtorch")
    parser.add_argument("--release-every", type=int, default=0,
                        help="steps after which the device memory is released and restored")
    parser.add_argument("--allow", default=EVERYTHING,
                        help="what plans may do, as in 'plan --allow'")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", help="answer to write, a JSON file")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(MODELS)
    expect_known(parser, "--only", chosen, MODELS)
    expect_program(parser, options.program)
    expect_gpu()
    options.answer = open_answer(options.out, kind_of(options), options.program)
    rows = []
    for name in chosen:
        try:
            own = run_model(options, name)
            rows += own
            if not any(row["verdict"] == "equal" for row in own):
                raise Failed("no plan of it gave equal bits")
        except Failed as failure:
            rows.append({"model": name, "budget": 0, "verdict": f"FAILED: {failure}"})
            show(options, rows[-1])
            options.answer.add(answer_row(options, rows[-1]))
    options.answer.finish()
    bad = [row for row in rows if not is_expected(row)]
    print(f"{len(rows)} runs, {len(bad)} bad", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
