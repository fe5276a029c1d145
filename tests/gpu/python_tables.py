# SPDX-License-Identifier: Apache-2.0
"""Tables of what the Python package showed on a GPU: rows of "python" answers in, lines out."""

import collections

from result_answers import is_bad
from result_tables import bold, gibibytes, mebibytes, table


def milliseconds(value):
    return None if value is None else f"{value:.0f} ms"


def rows_of(results, check):
    return [row for row in results.rows if row["check"] == check]


def said_table(results):
    """Architectures by what was found."""
    names = collections.defaultdict(list)
    for row in rows_of(results, "bits"):
        found = row["verdict"] if not is_bad("python", row) else bold(row["verdict"].upper())
        names[found].append(f"`{row['case']}`")
    lines = [(found, len(cases), ", ".join(cases)) for found, cases in sorted(names.items())]
    turns = rows_of(results, "turns")
    if turns:
        equal = sum(not is_bad("python", row) for row in turns)
        lines.append(("equal" if equal == len(turns) else bold("DIFFERENT"), len(turns),
                      "trainings of plans that take turns, made from a seed"))
    return table(["bits", "how many", "of what"], lines)


def case_line(row, what):
    run = row.get("run") or {}
    exact = None
    if "predicted_peak_bytes" in row:
        exact = "yes" if run["peak_bytes"] == row["predicted_peak_bytes"] else bold("NO")
    if is_bad("python", row):
        return (what, row["case"], bold(row["verdict"].strip().splitlines()[-1][:80]))
    return (what, row["case"], milliseconds(row["step_ms"]), gibibytes(row["device_bytes"], 1),
            gibibytes(run.get("peak_bytes"), 1), exact, mebibytes(run.get("outside_bytes")),
            milliseconds(run["trace_ns"] / 1e6) if "trace_ns" in run else None)


def times_table(results):
    header = ["", "case", "a step", "memory of the device", "peak of the plan", "as planned",
              "outside of the arena", "traced again, beside it"]
    lines = [case_line(row, "decorator") for row in rows_of(results, "decorator")]
    lines += [case_line(row, "Trainer") for row in rows_of(results, "trainer")]
    return table(header, [(*cells, *[None] * (len(header) - len(cells))) for cells in lines])


def turn_times_table(results):
    lines = []
    for row in rows_of(results, "turn_times"):
        alone = row["alone_ms"]
        lines.append((row["case"], *(milliseconds(alone[what]) for what in
                                     ("long", "short", "evaluation")),
                      milliseconds(row["turn_ms"]), milliseconds(row["turn_of_evaluation_ms"]),
                      gibibytes(row["device_bytes"], 1)))
    return table(["turns", "step of 4 x 4096", "of 4 x 2048", "evaluation",
                  "a turn between the steps", "a turn to an evaluation", "memory of the device"],
                 lines)


def release_table(results):
    lines = []
    for row in rows_of(results, "release"):
        for number, one in enumerate(row["releases"], 1):
            back = one["back"] or {}
            lines.append((row["case"] if number == 1 else None, number,
                          gibibytes(one["out"]["bytes"]), one["out"]["gb_per_second"],
                          back.get("gb_per_second"), milliseconds(1e3 * one["out"]["seconds"]),
                          milliseconds(1e3 * back["seconds"]) if back else None,
                          f"{one['neighbour_gib']:.1f} GiB" if one["neighbour_gib"] else "none"))
    return table(["device memory released between steps", "time", "state", "out, GB/s",
                  "back, GB/s", "release in all", "restore in all", "another process took"], lines)


def python_tables(results):
    return [*said_table(results), "", *times_table(results), "", *turn_times_table(results), "",
            *release_table(results)]


def found_python_bits(found):
    """In one line."""
    rows = [row for row in found["python"].rows if row["check"] in ("bits", "turns")]
    if not rows:
        return ""
    counts = collections.Counter(row["verdict"] for row in rows)
    texts = [f"{counts['equal']} of {counts['equal'] + counts['wrong'] + counts['different']} equal"]
    texts += [f"{count} {bold(word)}" if word in ("wrong", "different", "failed") else
              f"{count} {word}" for word, count in sorted(counts.items()) if word != "equal"]
    return ", ".join(texts)
