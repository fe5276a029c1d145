#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws which folder includes which: tools/docs/rooms.svg, one panel per library.

usage: tools/draw_rooms.py [--check]
  --check   draw nothing; exit 1 when the file is not what would be drawn

A box is a folder of sources. An arrow goes from a folder to one whose headers it includes; arrows
that follow from others are left out. All arrows point down: exit 1, naming the includes, when
folders include each other in a circle.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tools/docs/rooms.svg"
PANELS = ["ir", "planner", "passes", "runtime", "runtime/capture", "tools"]
WIDTH, BOX_WIDTH, BOX_HEIGHT, ROW, TITLE = 980, 150, 26, 62, 34
INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')


def read_includes():
    """Includes between folders: {(from folder, to folder): ["file includes header", ...]}."""
    includes = collections.defaultdict(list)
    for top in ["ir", "planner", "passes", "runtime", "tools"]:
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".cu"):
                continue
            name = path.relative_to(ROOT)
            for line in path.read_text().splitlines():
                found = INCLUDE.match(line)
                if not found or not (ROOT / found[1]).exists():
                    continue
                source, target = str(name.parent), str(pathlib.PurePath(found[1]).parent)
                if source != target:
                    includes[source, target].append(f"{name} includes {found[1]}")
    return includes


def box_of(panel, folder):
    """The box of `panel` that `folder` belongs to; None when it is not in the panel."""
    if folder != panel and not folder.startswith(panel + "/"):
        return None
    if panel == "runtime" and folder.startswith("runtime/capture"):
        return "runtime/capture"
    return folder


def arrows_of(panel, includes):
    arrows = collections.defaultdict(set)
    for source, target in includes:
        ends = box_of(panel, source), box_of(panel, target)
        if None not in ends and ends[0] != ends[1]:
            arrows[ends[0]].add(ends[1])
            arrows.setdefault(ends[1], set())
    return dict(sorted(arrows.items()))


def find_levels(arrows, includes):
    """How far above the lowest row each box stands. Ends the program on a circle."""
    levels = {}

    def visit(box, path):
        if box in path:
            circle = path[path.index(box):] + [box]
            for source, target in zip(circle, circle[1:]):
                print("\n".join(includes.get((source, target), [])), file=sys.stderr)
            sys.exit("error: folders include each other: " + " -> ".join(circle))
        if box not in levels:
            levels[box] = max((visit(below, path + [box]) + 1 for below in sorted(arrows[box])),
                              default=0)
        return levels[box]

    for box in arrows:
        visit(box, [])
    return levels


def reach(arrows, box):
    seen, todo = set(), [box]
    while todo:
        for below in arrows[todo.pop()]:
            if below not in seen:
                seen.add(below)
                todo.append(below)
    return seen


def drawn(arrows):
    """Arrows that do not follow from others."""
    return [(box, below) for box in arrows for below in sorted(arrows[box])
            if not any(below in reach(arrows, other) for other in arrows[box] if other != below)]


def draw_panel(panel, includes, top):
    arrows = arrows_of(panel, includes)
    levels = find_levels(arrows, includes)
    height = max(levels.values())
    places = {}
    for level in range(height + 1):
        row = sorted(box for box in arrows if levels[box] == level)
        for i, box in enumerate(row):
            places[box] = (WIDTH * (i + 1) // (len(row) + 1), top + TITLE + (height - level) * ROW)
    lines = [f'<text x="10" y="{top + 18}" class="title">{panel}</text>']
    for box, below in drawn(arrows):
        (x1, y1), (x2, y2) = places[box], places[below]
        lines.append(f'<path d="M{x1} {y1 + BOX_HEIGHT} L{x2} {y2 - 2}" marker-end="url(#tip)"/>')
    for box, (x, y) in sorted(places.items()):
        label = box[len(panel) + 1:] or box
        lines.append(f'<rect x="{x - BOX_WIDTH // 2}" y="{y}" width="{BOX_WIDTH}" '
                     f'height="{BOX_HEIGHT}" rx="4"/>')
        lines.append(f'<text x="{x}" y="{y + 17}" text-anchor="middle">{label}</text>')
    return lines, top + TITLE + (height + 1) * ROW


def draw(includes):
    body, top = [], 0
    for panel in PANELS:
        lines, top = draw_panel(panel, includes, top)
        body += lines
    head = f"""<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}">
<!-- made by tools/draw_rooms.py -->
<style>
text {{ font: 13px sans-serif; }} .title {{ font-weight: bold; }}
rect {{ fill: #eef3fa; stroke: #35577d; }} path {{ stroke: #777; fill: none; }}
</style>
<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="3" orient="auto">
<path d="M0 0 L7 3 L0 6" /></marker></defs>
<rect width="{WIDTH}" height="{top}" style="fill:white;stroke:none"/>"""
    return "\n".join([head] + body + ["</svg>\n"])


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    text = draw(read_includes())
    if not sys.argv[1:]:
        OUT.write_text(text)
    elif not OUT.exists() or OUT.read_text() != text:
        sys.exit(f"error: {OUT.relative_to(ROOT)}: found other includes than it shows; "
                 "tools/draw_rooms.py draws them")


if __name__ == "__main__":
    main()
