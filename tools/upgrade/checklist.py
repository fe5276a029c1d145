# SPDX-License-Identifier: Apache-2.0
"""How both comparisons print what they found."""


def print_sections(sections, mark="- [ ]"):
    """{heading: lines} in Markdown; `mark` begins each line."""
    for heading, lines in sections.items():
        print(f"\n## {heading} ({len(lines)})\n")
        print("\n".join(f"{mark} {line}" for line in lines) or "None.")
