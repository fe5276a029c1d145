# SPDX-License-Identifier: Apache-2.0
"""Exceptions, one class for each kind of error that a caller may want to tell apart."""

import json

_MARK = "stowage:"


class Error(Exception):
    """Anything that Stowage itself reports. `code` is the library's name of the kind."""

    code = "internal"

    def __init__(self, message, notes=(), more=()):
        super().__init__("\n".join([message, *(f"note: {note}" for note in notes), *more]))


class Unsupported(Error):
    """The step does something that no plan can hold; says what, where, and a way out."""

    code = "unsupported"


class Infeasible(Error):
    """No plan fits. `smallest_budget` (bytes) does; `holders` says what fills the fullest moment.

    ways: what else would do, where the step's own plan was asked for: dicts with "change" ("a disk
    of 2.00 GiB") and "fits"; where that alone does not fit, "smallest_budget_bytes", which is a
    bound where "at_least" is true.
    """

    code = "infeasible"
    budget = 0
    smallest_budget = 0
    space = "device"
    holders = ()
    ways = ()


class StepChanged(Error):
    """The step is not the captured one any more. State is that of the step before."""

    code = "plan_mismatch"


class InvalidArgument(Error, ValueError):
    """A wrong value from the caller."""

    code = "invalid_argument"


class OutOfMemory(Error, MemoryError):
    """The device or the host refused memory that a plan needs."""

    code = "out_of_device_memory"


class EnvironmentError(Error):  # noqa: A001 - the library's own name of the kind
    """No GPU, or a driver or library that does not fit."""

    code = "environment"


class FileError(Error, OSError):
    """A file that cannot be read, or is not what it should be."""

    code = "io"


class TorchError(Error):
    """What torch itself reported while a planned step ran."""

    code = "torch"


_CLASSES = {
    kind.code: kind
    for kind in (Unsupported, Infeasible, StepChanged, InvalidArgument, OutOfMemory,
                 EnvironmentError, FileError, TorchError)
}
_CLASSES["parse"] = FileError
_CLASSES["cuda"] = EnvironmentError


def from_library(error):
    """The exception that a RuntimeError from the library stands for; None for one that is not its."""
    text = str(error)
    # Not the namespace in a stack trace of C++.
    at = text.find(_MARK + "{")
    if at < 0:
        return None
    told, _ = json.JSONDecoder().raw_decode(text[at + len(_MARK):])
    kind = _CLASSES.get(told["code"], Error)
    message = told["message"]
    if "file" in told:
        message = f"{told['file']}: {message}"
    ways = told.get("infeasible", {}).get("ways", [])
    made = kind(message, told["notes"], [_describe_way(way) for way in ways])
    made.code = told["code"]
    if "infeasible" in told:
        why = told["infeasible"]
        made.budget = why["budget_bytes"]
        made.smallest_budget = why["smallest_budget_bytes"]
        made.space = why["space"]
        made.holders = tuple((one["storage"], one["bytes"]) for one in why["holders"])
        made.ways = tuple(ways)
    return made


def _describe_way(way):
    """As the command line words it, with exact bytes."""
    if way["fits"]:
        return f"or {way['change']}: then it fits"
    bound = "at least" if way["at_least"] else "are enough"
    return f"or {way['change']}: then {way['smallest_budget_bytes']} bytes {bound}"
