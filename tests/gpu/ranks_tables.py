# SPDX-License-Identifier: Apache-2.0
"""Tables of trainings on several GPUs: rows of "ranks" answers in, lines out."""

from result_answers import is_bad
from result_tables import CASES, bold, error_of, gibibytes, per_cent, seconds, table

PEERS = {"fsdp2": "FSDP2", "fsdp2+checkpointing": "FSDP2, gradient checkpointing",
         "ddp": "DDP", "ddp+checkpointing": "DDP, gradient checkpointing"}


def memory_of(row):
    return row.get("peak_bytes" if row["run"] == "peer" else "arena_bytes") or 0


def line_of(row):
    name = bold(f"planned, {row.get('budget')}")
    if row["run"] == "peer":
        name = PEERS.get(row["mode"], row["mode"])
    if "step_s" not in row:
        return (name, None, bold(row["verdict"]) if is_bad("ranks", row) else row["verdict"])
    error = error_of(row)
    exact = None
    if "predicted_peak_bytes" in row:
        exact = "yes" if row["peak_bytes"] == row["predicted_peak_bytes"] else bold("NO")
    return (name, gibibytes(memory_of(row), 1), seconds(row["step_s"]),
            error and f"{seconds(row['predicted_s'])} ({per_cent(error)})", row.get("costs"), exact,
            gibibytes(row.get("reserved_bytes"), 1))


def ranks_tables(results):
    """Peers and plans of each case; memory is what peers allocate, and the whole of an arena."""
    header = ["of each rank", "memory", "a step", "predicted (error)", "costs from",
              "peak as planned", "reserved"]
    lines = []
    for case in dict.fromkeys(row["case"] for row in results.rows):
        rows = sorted((row for row in results.rows if row["case"] == case),
                      key=lambda row: (row["run"] != "peer", -memory_of(row)))
        title = f"{CASES.get(case, case)} a rank, {rows[0]['ranks']} ranks"
        lines += [(bold(title),), *(line_of(row) for row in rows)]
    return table(header, [(*cells, *[None] * (len(header) - len(cells))) for cells in lines])
