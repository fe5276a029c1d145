# SPDX-License-Identifier: Apache-2.0
"""How results show themselves in a notebook: plain HTML, without scripts, in the page's colours."""

import html

from ._sizes import format_size


def table(rows, head=None):
    """rows: lists of texts; head: texts, or None."""
    lines = ["<table>"]
    if head is not None:
        lines.append("<tr>" + "".join(f"<th>{html.escape(one)}</th>" for one in head) + "</tr>")
    for row in rows:
        cells = "".join(f'<td style="text-align:left">{html.escape(one)}</td>' for one in row)
        lines.append(f"<tr>{cells}</tr>")
    return "\n".join([*lines, "</table>"])


def bars(sizes):
    """Bytes as bars under each other. sizes: name -> bytes."""
    width, height, longest = 360, 22, max([*sizes.values(), 1])
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{height * len(sizes)}" '
             'font-family="sans-serif" font-size="13">']
    for position, (name, size) in enumerate(sizes.items()):
        top, long = position * height, round(width * size / longest)
        lines.append(f'<text x="0" y="{top + 16}" fill="currentColor">{html.escape(name)}</text>')
        lines.append(f'<rect x="100" y="{top + 4}" width="{long}" height="{height - 8}" '
                     'fill="#4c8bb8"/>')
        lines.append(f'<text x="{106 + long}" y="{top + 16}" fill="currentColor">'
                     f"{html.escape(format_size(size))}</text>")
    return "\n".join([*lines, "</svg>"])
