# SPDX-License-Identifier: Apache-2.0
"""Sizes in words, as on the command line: "24GiB", "512MB", "60%peak", or a number of bytes."""

import re

from ._errors import InvalidArgument

_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", start=1):
    _UNITS[_letter] = _UNITS[_letter + "ib"] = 2 ** (10 * _power)
    _UNITS[_letter + "b"] = 10 ** (3 * _power)
_MOST = 2**60


def parse_size(text, what):
    """(bytes, False), or (millionths, True) for a share of the unplanned peak."""
    if isinstance(text, int) and not isinstance(text, bool) and 0 <= text <= _MOST:
        return text, False
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*|%peak|%)\s*", str(text))
    if found and not isinstance(text, (int, float)):
        number, unit = float(found[1]), found[2]
        if unit in ("%peak", "%"):
            return round(number * 10_000), True
        unit = unit.lower()
        if unit in _UNITS and number * _UNITS[unit] <= _MOST:
            return int(number * _UNITS[unit]), False
    raise InvalidArgument(
        f"{what}: found {text!r}, expected bytes as a number or as '24GiB', '512MB', or a share of "
        "what the step needs unplanned, '60%peak'"
    )


def parse_bytes(text, what):
    """A size that is no share of anything."""
    size, of_peak = parse_size(text, what)
    if of_peak:
        raise InvalidArgument(f"{what}: found {text!r}, expected bytes as a number or as '96GiB'")
    return size


def format_size(count):
    """"1.50 GiB"."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{count} B" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def format_duration(nanoseconds):
    """"1.50 ms", as the library writes it."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.2f} {unit}"
    return f"{nanoseconds:.0f} ns"
