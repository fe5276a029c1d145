# SPDX-License-Identifier: Apache-2.0
"""What the comparisons print: sections of lines, and where to look for an op of ours."""

LOOK = {
    "table": "its row in ir/graph/op_table.cpp",
    "shape rule": "its rule in runtime/capture/ops/shapes",
    "operand rule": "its check in runtime/capture/ops/operands",
}


def looks(ours):
    """`ours`: what stowage-op-list says of an op."""
    return "; ".join(LOOK[one] for one in ours)


def print_sections(sections, mark="- [ ]"):
    """{heading: lines} in Markdown; `mark` begins each line."""
    for heading, lines in sections.items():
        print(f"\n## {heading} ({len(lines)})\n")
        print("\n".join(f"{mark} {line}" for line in lines) or "None.")
