# SPDX-License-Identifier: Apache-2.0
"""Tables of the page of results, one function for each kind: rows of answers in, lines out."""

import collections

from bits_table import MODELS
from result_answers import is_bad

# By case of gpu.py.
CASES = {"llama1b": "Llama 3.2 1B shape, batch 4 x 4096",
         "llama8b": "Llama 3.1 8B shape, batch 1 x 4096",
         "llama8b_4": "Llama 3.1 8B shape, batch 4 x 4096",
         "llama8b_16k": "Llama 3.1 8B shape, 4 micro-batches of 4096 (16k tokens a step)",
         "llama8b_lora": "LoRA (rank 16) on the 8B shape, batch 1 x 4096"}
MODES = {"eager": "plain training", "checkpointing": "gradient checkpointing",
         "checkpointing+offload": "gradient checkpointing with offload",
         "save_on_cpu": "save_on_cpu", "stream_offload": "saved tensors on streams of their own",
         "compile": "torch.compile"}
NOT_MEASURED = "not measured on this commit"


def table(header, rows):
    """Lines of a Markdown table; a cell is any value, None an empty one."""
    def line(cells):
        texts = ("" if cell is None else str(cell) for cell in cells)
        escaped = (text.replace("|", "\\|").replace("\n", " ") for text in texts)
        return "| " + " | ".join(escaped) + " |"
    return [line(header), "|" + "--|" * len(header), *(line(row) for row in rows)]


def gibibytes(count, digits=2):
    return None if count is None else f"{count / 2**30:.{digits}f} GiB"


def mebibytes(count):
    return None if count is None else f"{count / 2**20:.1f} MiB"


def seconds(value):
    return None if value is None else f"{value:.3f} s"


def per_cent(ratio):
    return f"{100 * (ratio - 1):+.1f} %"


def bold(text):
    return f"**{text}**"


def as_said(kind, row):
    return bold("NO") if is_bad(kind, row) else "yes"


# --- bits -----------------------------------------------------------------------------------------

def outcome(kind, row):
    """(order in a cell, word)"""
    if is_bad(kind, row):
        return 3, bold(row["verdict"].split(":")[0].upper())
    words = {"not legal": (1, "refused"), "does not fit": (2, "does not fit")}
    return words.get(row["verdict"], (0, "equal"))


def bits_cell(kind, rows):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[outcome(kind, row)].append(row["budget"])
    return "; ".join(f"{word}: {', '.join(map(str, budgets))} %"
                     for (_, word), budgets in sorted(groups.items()))


def repeats_cell(rows):
    found = sorted({(row["repeat_equal"], row["repeat_compared"]) for row in rows
                    if "repeat_equal" in row})
    ends = found if len(found) < 3 else [found[0], found[-1]]
    return " to ".join(f"{equal} of {compared}" for equal, compared in ends)


def bits_tables(results):
    kind = results.kind
    launches = list(dict.fromkeys(row["launch"] for row in results.rows if "launch" in row))
    models = list(dict.fromkeys([*MODELS, *(row["model"] for row in results.rows)]))
    header = ["model", *(f"`{launch}`" for launch in launches)]
    lines = []
    for model in models:
        mine = [row for row in results.rows if row["model"] == model]
        cells = [bits_cell(kind, [row for row in mine if row.get("launch") == launch])
                 for launch in launches]
        if not mine:
            cells[:1] = ["not measured"]
        lines.append([f"`{model}`", *cells, *([repeats_cell(mine)] if kind == "users" else [])])
    if kind == "users":
        header.append("losses and tensors that plain libtorch repeats")
    return table(header, lines) + bad_table(results)


def bad_table(results):
    """What went otherwise than promised, in full."""
    if not results.bad:
        return []
    return ["", "Not as promised:", "", *table(
        ["model", "budget", "launch mode", "found"],
        [(f"`{row.get('model') or row.get('case')}`", row.get("budget"), row.get("launch"),
          row["verdict"]) for row in results.bad])]


# --- memory, faults -------------------------------------------------------------------------------

def steady_table(results):
    rows = [row for row in results.rows if row["check"] == "steady"]
    return table(["model", "launch mode", "samples", "steps", "device memory of the process",
                  "constant, nothing allocated outside the plan"],
                 [(f"`{row['model']}`", f"`{row['launch']}`", row["samples"],
                   " to ".join(map(str, row["steps"])),
                   " to ".join(mebibytes(used) for used in row["used_bytes"]),
                   as_said("memory", row)) for row in rows])


def neighbour_table(results):
    rows = [row for row in results.rows if row["check"] == "neighbour"]
    return table(["model", "launch mode", "arena", "outside the arena", "exit code", "with 2 MiB less",
                  "then with the budget that it names", "as promised"],
                 [(f"`{row['model']}`", f"`{row['launch']}`", mebibytes(row["arena_bytes"]),
                   mebibytes(row["outside_bytes"]), row["exit"], row["refused_exit"],
                   row["smaller_exit"], as_said("memory", row)) for row in rows])


def host_table(results):
    return table(["model", "host arena as planned", "in memory", "on nodes", "as promised"],
                 [(f"`{row['model']}`", mebibytes(row["planned_bytes"]),
                   mebibytes(row["resident_bytes"]), ", ".join(row["node_bytes"]),
                   as_said("memory", row)) for row in results.rows if row["check"] == "host"])


def memory_tables(results):
    return [*steady_table(results), "", *neighbour_table(results), "", *host_table(results)]


def faults_tables(results):
    delays = [row for row in results.rows if row["check"] == "delays" and "launch" in row]
    waits = [row for row in results.rows if "removed" in row]
    other = [row for row in results.rows if row not in delays and row not in waits]
    lines = table(["check", "what", "exit code expected", "found", "as promised"],
                  [(row["check"], row["what"], row.get("expected"), row.get("exit"),
                    as_said("faults", row)) for row in other])
    by_model = collections.defaultdict(list)
    for row in delays:
        by_model[row["model"]].append(row)
    lines += ["", *table(
        ["model under delays", "launch modes with equal bits", "other"],
        [(f"`{model}`", ", ".join(f"`{row['launch']}`" for row in rows if row["good"]),
          ", ".join(f"{bold('NO')}: `{row['launch']}`, exit {row['exit']}"
                    for row in rows if not row["good"]))
         for model, rows in sorted(by_model.items())])]
    return lines + ["", *table(
        ["waits removed one at a time", "waits", "removed", "other results", "errors", "hung",
         "as promised"],
        [(f"`{row['model']}`", row["waits"], row["removed"], row["differ"], row["failed"],
          row["hung"], as_said("faults", row)) for row in waits])]


def memcheck_tables(results):
    return table(["launch mode", "copies a step", "exit code", "errors", "as promised"],
                 [(f"`{row['launch']}`", row["copies"], row["exit"], row["errors"],
                   as_said("memcheck", row)) for row in results.rows])


def host_updates_tables(results):
    return table(["model", "steps", "parameters of the same bits", "out of tolerance",
                  "largest difference, in learning rate x steps", "losses differ by",
                  "twice the same bits", "as promised"],
                 [(f"`{row['model']}`", row["steps"], f"{100 * row['equal_share']:.2f} %",
                   f"{100 * row['outside_share']:.4f} %", f"{row['largest_in_lr_steps']:.4f}",
                   f"{100 * row['loss_relative']:.4f} %", "yes" if row["repeats"] else bold("NO"),
                   as_said("host_updates", row)) for row in results.rows])


def session_tables(results):
    return table(["test", "result"],
                 [(f"`{row['test']}`", bold("FAILED") if is_bad("session", row) else
                   "skipped" if row["verdict"] == "skipped" else "passed") for row in results.rows])


# --- large ----------------------------------------------------------------------------------------

def budget_text(row):
    budget, _, way = row["budget"].partition("/")
    share = way.partition("=")[2]
    way = f", {share + ' % of the ' if share else ''}updates on the host" if way else ""
    if budget.endswith("%peak"):
        budget = f"{budget[:-5]} % of the unplanned peak"
    if budget.endswith("B") and budget[:-1].isdigit():
        budget = gibibytes(int(budget[:-1]))
    return budget.replace("GiB", " GiB").replace("  ", " ") + way + (
        ", the smallest" if row.get("smallest") else "")


def name_of(row):
    """What trained, in words."""
    by_hand = "gradient checkpointing by hand (C++)"
    if row["run"] == "eager":
        return by_hand if row.get("checkpointing") else "plain libtorch (C++)"
    if row["run"] == "planned":
        if row.get("checkpointing"):
            return "the checkpointed step, planned with its whole peak as budget"
        return f"planned in {budget_text(row)}"
    mode, _, value = row["mode"].partition(":")
    of = " of every other layer" if mode == "checkpointing" else f", memory budget {value}"
    return f"Hugging Face, {MODES.get(mode, mode)}{of if value else ''}"


def of_case(results, case):
    """What was measured of a case: plain first, then what one does by hand, then plans."""
    order = {"eager": 0, "hugging_face": 1, "planned": 2}
    rows = [row for row in results.rows if row["case"] == case]
    return sorted(rows, key=lambda row: (order[row["run"]], bool(row.get("checkpointing")),
                                         -row.get("peak_bytes", 0)))


def is_own(row):
    """Did its own steps give the costs of its prediction?"""
    return row.get("costs") == f"steps of {row['budget']}"


def error_of(row):
    """Of the prediction, in times of the measured step; None where there is none."""
    if "predicted_s" not in row or not row.get("step_s"):
        return None
    return row["predicted_s"] / row["step_s"]


def bits_of(row):
    if "repeat_equal" in row and row["verdict"] == "equal":
        return f"equal ({row['repeat_equal']} of {row['repeat_compared']} repeat)"
    return row["verdict"] if row["run"] == "eager" else None


def large_row(row):
    if "step_s" not in row:
        said = row["verdict"] if not is_bad("large", row) else bold(row["verdict"])
        return (name_of(row), None, said)
    error, hidden = error_of(row), row.get("hidden_permille")
    exact = None
    if "predicted_peak_bytes" in row:
        exact = "yes" if row["peak_bytes"] == row["predicted_peak_bytes"] else bold("NO")
    return (name_of(row), gibibytes(row["peak_bytes"]), seconds(row["step_s"]),
            seconds(row.get("predicted_s")), error and per_cent(error), row.get("costs"),
            None if hidden is None else f"{hidden / 10:.1f} %", gibibytes(row.get("out_bytes")),
            gibibytes(row.get("in_bytes")),
            f"{row['plan_s']:.0f} s" if "plan_s" in row else None, exact,
            bits_of(row))


def large_tables(results):
    header = ["", "device memory", "a step", "predicted", "error", "costs from", "copies hidden",
              "offload", "prefetch", "planning", "peak as planned", "bits of plain libtorch"]
    lines = []
    for case in dict.fromkeys([*CASES, *(row["case"] for row in results.rows)]):
        rows = of_case(results, case)
        cells = [large_row(row) for row in rows] or [("not measured",)]
        lines += [(bold(CASES.get(case, case)),), *cells]
    return table(header, [(*cells, *[None] * (len(header) - len(cells))) for cells in lines])


# --- small, demo ----------------------------------------------------------------------------------

def small_groups(results):
    """Runs of one plan, the first of which is compared with plain libtorch."""
    groups = collections.defaultdict(list)
    for row in results.rows:
        groups[row["model"], row.get("allow", ""), row["budget"], row.get("launch", "")].append(row)
    return groups


def mean_error(rows):
    timed = [row for row in rows if "step_ms" in row]
    if not timed:
        return None
    return timed[0]["predicted_ms"] * len(timed) / sum(row["step_ms"] for row in timed)


def small_tables(results):
    lines = []
    for (model, allow, budget, launch), rows in small_groups(results).items():
        timed = [row for row in rows if "step_ms" in row]
        taken = ", ".join(f"{row['step_ms']:.2f}" for row in timed)
        eager = next((f"{row['eager_ms']:.2f} ms" for row in timed if "eager_ms" in row), None)
        error = mean_error(rows)
        bad = [row["verdict"] for row in rows if is_bad("small", row)]
        lines.append((f"`{model}`" + (f" ({allow})" if allow else ""), f"{budget} %", f"`{launch}`",
                      timed and f"{timed[0]['predicted_ms']:.2f} ms" or None,
                      taken and f"{taken} ms", error and per_cent(error), eager,
                      bold(bad[0]) if bad else rows[0]["verdict"]))
    return table(["model", "budget", "launch mode", "predicted", "a step, by run",
                  "error to the mean", "plain libtorch", "bits"], lines)


def demo_tables(results):
    lines = []
    for row in results.rows:
        lines += [("plain libtorch", f"{mebibytes(row['unplanned_bytes'])} unplanned peak", None,
                   None, seconds(row["eager_s"]), None, "reference"),
                  (f"planned, {row['commands']} commands",
                   f"{mebibytes(row['peak_bytes'])} of {mebibytes(row['budget_bytes'])}",
                   mebibytes(row["out_bytes"]), mebibytes(row["in_bytes"]), seconds(row["step_s"]),
                   seconds(row["predicted_s"]),
                   bold(row["verdict"]) if is_bad("demo", row) else row["verdict"])]
    return table(["", "device memory", "offload", "prefetch", "a step", "predicted", "bits"], lines)
