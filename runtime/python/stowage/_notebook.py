# SPDX-License-Identifier: Apache-2.0
"""What plans and fits show in a notebook: HTML without scripts, links or fonts of its own.

Text has the notebook's colours. The picture is drawn by the library on white, as by
`stowage explain --svg`.
"""

import html

from ._sizes import format_duration, format_size

_LEFT = ' style="text-align:left"'


def plan_html(plan):
    picture = plan.handle.memory_svg().replace(
        "<svg ", '<svg style="max-width:100%;height:auto" ', 1)
    return f"<div>{_table(_rows_of(plan))}{picture}</div>"


def fit_html(fit):
    head = "".join(f"<th>{_text(one)}</th>" for one in fit.heading())
    rows = "".join(
        "<tr>" + "".join(f"<td>{_text(one)}</td>" for one in cells) + "</tr>"
        for cells in fit.cells())
    words = "".join(f"<p>{_text(line)}</p>" for line in fit.words())
    return (f"<div><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
            f"{words}</div>")


def _rows_of(plan):
    """(name, what it is) of all that the table lists."""
    facts = plan.to_dict()
    predicted, counts = facts["predicted"], facts["counts"]
    rows = [("budget", format_size(plan.budget)),
            ("peak", format_size(plan.peak)),
            ("unplanned", format_size(plan.unplanned) + " at once"),
            ("smallest", plan.smallest_budget_text()),
            ("step", f"{format_duration(predicted['step_ns'])} predicted, "
                      f"{format_duration(predicted['compute_ns'])} with unlimited memory"),
             ("bound", f"{format_duration(predicted['bound_ns'])}: no schedule of these orders is faster"),
             ("offloads", format_size(predicted["out_bytes"]) + " per step"),
             ("prefetches", format_size(predicted["in_bytes"]) + " per step"),
             ("host memory", format_size(predicted["host_peak_bytes"])),
             ("recomputes", f"{counts['recomputed_launches']} launches per step"),
             ("resident", format_size(facts["resident_bytes"]) + " of the state never leave"),
             ("costs", facts["costs"]["source"])]
    rows = [row for row in rows if row[1]]
    rows += [("bypassed", what) for what in sorted(plan.captured.bypassed)]
    rows += [("assumes", line) for line in plan.assumption_lines()]
    return rows


def _table(rows):
    cells = "".join(f"<tr><th{_LEFT}>{_text(name)}</th><td{_LEFT}>{_text(value)}</td></tr>"
                    for name, value in rows)
    return f"<table><tbody>{cells}</tbody></table>"


def _text(words):
    """Escaped; what XML cannot hold becomes a question mark."""
    return html.escape("".join(one if one.isprintable() else "?" for one in str(words)))
