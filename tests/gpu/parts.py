# SPDX-License-Identifier: Apache-2.0
"""The parts that all.py runs: name, kind of answer, command. `large`, `hugging_face`,
`deterministic` and `python` run only when --only names them, since they take many minutes."""

import os
import sys

from bits_table import MODELS

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(os.path.dirname(os.path.dirname(HERE)), "tools", "bench")
FAULTS = ["delays", "waits", "signals", "memory"]
TIMED = ["llama_bfloat16", "lstm", "gpt2_bfloat16"]
# By part: gpu.py's case; budgets below what all fits into; one of them and steps for a run in
# deterministic mode; Hugging Face's modes.
LARGE = {"llama1b": ("llama1b", "40GiB,31GiB,20GiB,16GiB,12GiB,8GiB", ("12GiB", "4"),
                     "checkpointing,compile:0.5,compile:0.2,eager,save_on_cpu"),
         "lora": ("llama8b_lora", "24GiB,12GiB,10GiB", ("12GiB", "3"), "checkpointing"),
         "llama8b": ("llama8b", "60GiB,40GiB,30GiB,22GiB", ("30GiB", "3"),
                     "checkpointing,checkpointing+offload,eager")}
ONLY_NAMED = ("large", "hugging_face", "deterministic", "python")


def script(options, name, *arguments, folder=HERE):
    return [sys.executable, os.path.join(folder, name), "--program", options.program, *arguments]


def parts_alone(options):
    """What needs the GPU for itself."""
    yield "neighbour", "memory", script(options, "neighbour.py")
    yield "steady_memory", "memory", script(options, "steady_memory.py")
    yield "host_memory", "memory", script(options, "host_memory.py")
    yield "memcheck", "memcheck", script(options, "memcheck.py")
    yield "host_updates", "host_updates", script(options, "host_updates.py")
    if os.path.exists(options.session):
        yield "session", "session", [os.path.abspath(options.session)]
    timed = ["--steps", "200", "--in-steps", "80%peak", "--runs", "3", "--json"]
    for model in TIMED:
        yield f"launch_{model}", "small", script(
            options, "bits_table.py", "--only", model, *timed, "--budgets", "60", "--launch",
            "none,no_update,whole")
    # Hundreds of copies a step.
    yield "copies_gpt2", "small", script(
        options, "bits_table.py", "--only", "gpt2_bfloat16", *timed, "--budgets", "80,60",
        "--launch", "none,no_update", "--allow", "offload,in-place-reuse,reorder")


def parts_large(options):
    """Training of large models, alone as well. gpu.py also takes how many seconds are left."""
    def large(case, *arguments):
        return script(options, "gpu.py", "--only", case, *arguments, folder=BENCH)

    for name, (case, budgets, _, _) in LARGE.items():
        yield f"large_{name}", "large", large(
            case, "--budgets", budgets, "--steps", "16", "--in-steps", "--timeline",
            "--hugging-face", "")
    for name, (case, _, _, modes) in LARGE.items():
        yield f"hugging_face_{name}", "large", large(
            case, "--steps", "8", "--no-planned", "--hugging-face", modes)
    for name, (case, _, (budget, steps), _) in LARGE.items():
        yield f"deterministic_{name}", "deterministic", large(
            case, "--budgets", budget, "--steps", steps, "--deterministic", "--no-checkpointing",
            "--hugging-face", "")


def parts_python(options):
    """By the Python package; alone, except that the cases of python_bits.py run side by side."""
    def python(name, *arguments):
        return [sys.executable, os.path.join(HERE, name), *arguments]

    yield "python_models", "python", python("python_models.py")
    yield "python_trainer", "python", python("python_trainer.py")
    yield "python_turns", "python", python("python_turns.py", "bits", "times")
    for share in "12":
        yield f"python_bits_{share}", "python", python(
            "python_bits.py", "--share", f"{share}/2", "--at-once", str(options.at_once))


def parts_together(options):
    """What runs side by side; what takes longest first."""
    if os.path.exists(options.faults):
        for check in FAULTS:
            yield f"faults_{check}", "faults", script(
                options, "faults.py", "--faults", options.faults, "--only", check, "--seeds", "1")
    models = sorted(MODELS, key=lambda name: not name.startswith(("resnet", "llama")))
    every = ["--steps", "10", "--budgets", "100,70,50,40", "--launch", "none,no_update,whole"]
    for kind, mode in (("bits", []), ("users", ["--nondeterministic"])):
        for model in models:
            yield f"{kind}_{model}", kind, script(options, "bits_table.py", "--only", model, *every,
                                                  "--json", *mode)


def selects(word, name, kind):
    if name.startswith(ONLY_NAMED):
        return word != "" and name.startswith(word)
    return name.startswith(word) or kind == word


def chosen_by(options, name, kind):
    """The word of --only that selects a part; None when none does."""
    return next((word for word in options.only if selects(word, name, kind)), None)


def find_unknown(options):
    """Words of --only that are no part's."""
    parts = (parts_alone, parts_python, parts_large, parts_together)
    known = [(name, kind) for some in parts for name, kind, _ in some(options)]
    known.append(("session", "session"))  # may be left out, which is said
    known += [(f"faults_{check}", "faults") for check in FAULTS]
    return [word for word in options.only
            if word and not any(selects(word, name, kind) for name, kind in known)]
