# SPDX-License-Identifier: Apache-2.0
"""The table at the top of the page of results: what is promised, what was found, where.

Every word of "found" is counted from rows. A kind without an answer was not measured.
"""

import collections

from bits_table import MODELS
from python_tables import found_python_bits
from result_answers import is_bad, is_left_out
from result_tables import (NOT_MEASURED, bold, error_of, is_own, mean_error, outcome, per_cent,
                           small_groups, table)

WITHIN = 0.05  # of the measured step


def unfinished(there):
    """How many parts of these kinds the time limit cut off."""
    count = sum(len(results.unfinished()) for results in there)
    plural = "" if count == 1 else "s"
    return f"; {bold(f'{count} part{plural} not finished')}" if count else ""


def share(good, rows, word, bad_word="NOT"):
    """'5 of 5 equal', and how many are not."""
    bad = len(rows) - good
    return f"{good} of {len(rows)} {word}" + (f", {bold(f'{bad} {bad_word}')}" if bad else "")


def found_bits(results):
    counts = collections.Counter(outcome(results.kind, row)[1] for row in results.rows)
    ran = len(results.rows) - counts["refused"] - counts["does not fit"]
    texts = [f"{counts['equal']} of {ran} equal"]
    texts += [f"{bold(f'{count} ' + word.strip('*'))}" for word, count in sorted(counts.items())
              if word.startswith("**")]
    if counts["refused"]:
        texts.append(f"{counts['refused']} refused (no CUDA graph is possible)")
    if counts["does not fit"]:
        texts.append(f"{counts['does not fit']} do not fit as expected")
    missing = set(MODELS) - {row["model"] for row in results.rows}
    if missing:
        texts.append(bold(f"{len(missing)} of {len(MODELS)} models not measured"))
    return ", ".join(texts)


def found_good(results, word="as promised", **field):
    rows = [row for row in results.rows
            if all(row.get(key) == value for key, value in field.items())]
    bad = [row for row in rows if is_bad(results.kind, row)]
    return share(len(rows) - len(bad), rows, word) if rows else ""


RUNS = ("bits", "users", "large", "deterministic")  # kinds that say peak and allocations


def ran_rows(found):
    return [row for kind in RUNS for row in found[kind].rows
            if "allocations_outside" in row]


def found_peaks(found):
    rows = [row for row in ran_rows(found) if "predicted_peak_bytes" in row]
    return share(sum(row["peak_bytes"] == row["predicted_peak_bytes"] for row in rows), rows,
                 "runs") if rows else ""


def found_outside(found):
    rows = ran_rows(found)
    return share(sum(row["allocations_outside"] == 0 for row in rows), rows, "runs") if rows else ""


def spread(errors):
    within = sum(abs(error - 1) <= WITHIN for error in errors)
    return (f"{within} of {len(errors)} within {100 * WITHIN:.0f} %: "
            f"{per_cent(min(errors))} to {per_cent(max(errors))}")


def found_large_steps(found):
    """Of budgets whose steps gave no costs."""
    errors = [error_of(row) for row in found["large"].rows
              if str(row.get("costs", "")).startswith("steps of") and not is_own(row)
              and error_of(row)]
    return spread(errors) if errors else ""


def found_hidden(found):
    hidden = [row["hidden_permille"] / 10 for row in found["large"].rows
              if "hidden_permille" in row]
    return (f"{sum(value >= 95 for value in hidden)} of {len(hidden)} runs: {min(hidden):.1f} to "
            f"{max(hidden):.1f} %") if hidden else ""


def found_large_bits(found):
    rows = [row for row in found["deterministic"].rows if row["run"] == "eager"]
    return share(sum(row["verdict"] == "equal" for row in rows), rows, "equal", "DIFFERENT") \
        if rows else ""


def found_large_runs(found):
    rows = [row for row in found["large"].rows if row["run"] == "planned"]
    left_out = sum(is_left_out(row) for row in rows)
    rows = [row for row in rows if not is_left_out(row)]
    if not rows:
        return ""
    bad = sum(is_bad("large", row) for row in rows)
    return share(len(rows) - bad, rows, "as promised") + (
        f", {left_out} not run for want of time" if left_out else "")


def found_small(found):
    errors = [error for error in map(mean_error, small_groups(found["small"]).values()) if error]
    return spread(errors) if errors else ""


def found_ranks(found):
    rows = [row for row in found["ranks"].rows if row["run"] == "planned"]
    good = sum(not is_bad("ranks", row) and row["peak_bytes"] == row["predicted_peak_bytes"]
               and row["allocations_outside"] == 0
               and row["arena_bytes"] <= float(row["budget"].removesuffix("GiB")) * 2**30
               for row in rows)
    return share(good, rows, "as promised") if rows else ""


# What is promised; the kinds of answers that show it; what they show; the section that has it.
PROMISES = [
    ("bits of plain libtorch, in deterministic mode", ["bits"],
     lambda found: found_bits(found["bits"]), "Bits"),
    ("the same for large models in tight budgets", ["deterministic"], found_large_bits,
     "Large models, deterministic mode"),
    ("the same in libtorch's default mode, where plain libtorch repeats itself", ["users"],
     lambda found: found_bits(found["users"]), "Bits in default mode"),
    ("the measured peak is the planned peak, to the byte", RUNS, found_peaks,
     "Bits"),
    ("no allocation outside the plan", RUNS, found_outside, "Bits"),
    ("device memory is constant from step to step", ["memory"],
     lambda found: found_good(found["memory"], check="steady"), "Memory"),
    ("a run fits beside a process that holds the rest; with 2 MiB less it is refused", ["memory"],
     lambda found: found_good(found["memory"], check="neighbour"), "Memory"),
    ("signals, failing copies and missing memory end with their exit codes", ["faults"],
     lambda found: found_good(found["faults"], check="signals") + "; " +
     found_good(found["faults"], check="memory"), "Faults"),
    ("delays change no bits", ["faults"],
     lambda found: found_good(found["faults"], check="delays"), "Faults"),
    ("removed waits change bits", ["faults"],
     lambda found: found_good(found["faults"], check="waits"), "Faults"),
    ("no memory error (compute-sanitizer)", ["memcheck"],
     lambda found: found_good(found["memcheck"]), "Memcheck"),
    ("updates on the host are as near to the GPU's as rounding lets them be", ["host_updates"],
     lambda found: found_good(found["host_updates"]), "Updates on the host"),
    ("the C++ session trains like plain libtorch", ["session"],
     lambda found: found_good(found["session"], "passed"), "Session"),
    ("large models train in their budgets", ["large"], found_large_runs, "Large models"),
    ("their step time is predicted within 5 %, from costs of another budget's steps", ["large"], found_large_steps, "Large models"),
    ("copies planned as hidden are hidden for 95 % of their time", ["large"], found_hidden,
     "Large models"),
    ("the step time of launch-bound steps is predicted within 5 %", ["small"], found_small,
     "Small steps"),
    ("bits of plain PyTorch for training steps in Python", ["python"], found_python_bits,
     "Python"),
    ("ranks train in their budgets, with the planned peak", ["ranks"], found_ranks, "Several GPUs"),
    ("the demonstration trains in half of its memory with the same bits", ["demo"],
     lambda found: found_good(found["demo"], "equal"), "Demonstration"),
]


def link(section):
    return f"[{section}](#{section.lower().replace(',', '').replace(' ', '-')})"


def summary_rows(found):
    """(promise, found, section)"""
    rows = []
    for promise, kinds, show, section in PROMISES:
        there = [found[kind] for kind in kinds if found[kind]]
        text = show(found).strip("; ") if there else ""
        if text:
            text += unfinished(there)
        rows.append((promise, text or NOT_MEASURED, section))
    return rows


def summary(found):
    return table(["promised", "found", "where"],
                 [(promise, text, link(section)) for promise, text, section in summary_rows(found)])
