# SPDX-License-Identifier: Apache-2.0
"""Rows of gpu.py's answers: what it measured, without what only a terminal shows.

A planned run gives a row "planned". Where plain libtorch ran beside it, that gives a row "eager".
A mode of Hugging Face's model gives a row "hugging_face".
"""


def rounded(value, digits):
    return None if value is None else round(value, digits)


def seconds(nanoseconds):
    return None if nanoseconds is None else nanoseconds / 1e9


def present(row):
    return {key: value for key, value in row.items() if value is not None}


def planned_row(row):
    taken = row.get("timeline") or {}
    return present({
        "run": "planned", "budget": row["budget"], "smallest": row.get("smallest"),
        "verdict": row["verdict"][:300], "costs": row.get("costs"),
        "peak_bytes": row.get("peak_bytes"),
        "predicted_peak_bytes": row.get("predicted_peak_bytes"),
        "outside_bytes": row.get("outside_bytes"),
        "allocations_outside": row.get("allocations_outside"),
        "step_s": rounded(row.get("step_s"), 5), "predicted_s": rounded(row.get("predicted_s"), 5),
        "bound_s": rounded(row.get("bound_s"), 5),
        "out_bytes": row.get("out_bytes"), "in_bytes": row.get("in_bytes"),
        "plan_s": rounded(row.get("plan_s"), 1),
        "hidden_permille": taken.get("hidden_copies_permille"),
        "own_times_s": rounded(seconds(taken.get("own_times_step_ns")), 5),
        "ready_times_s": rounded(seconds(taken.get("ready_times_step_ns")), 5),
        "traced_step_s": rounded(seconds(taken.get("step_ns")), 5)})


def eager_row(eager):
    repeats = eager.get("repeats") or {}
    different = f"DIFFERENT: {eager['difference'] or 'nothing repeats'}"
    return present({
        "run": "eager", "verdict": "equal" if eager["identical"] else different[:300],
        "peak_bytes": eager.get("peak_bytes"), "step_s": rounded(seconds(eager["step_ns"]), 5),
        "repeat_equal": repeats.get("equal"), "repeat_compared": repeats.get("compared")})


def hugging_face_row(row):
    return present({
        "run": "hugging_face", "mode": row["hugging_face"], "verdict": row["verdict"][:300],
        "peak_bytes": row.get("peak_bytes"), "reserved_bytes": row.get("reserved_bytes"),
        "step_s": rounded(row.get("step_s"), 5)})


def answer_rows(case, row):
    """What one of gpu.py's rows becomes."""
    common = {"case": case}
    if "hugging_face" in row:
        return [{**common, **hugging_face_row(row)}]
    if row.get("checkpointing"):
        common["checkpointing"] = True
    rows = [{**common, **planned_row(row)}]
    if "unplanned" in row:
        rows.append({**common, **eager_row(row["unplanned"])})
    return rows
