# SPDX-License-Identifier: Apache-2.0
"""What a plan may take and do, as the user says it and as the library reads it."""

import dataclasses
import json
import os

from ._errors import InvalidArgument
from ._sizes import parse_bytes, parse_size


@dataclasses.dataclass(frozen=True)
class PlanOptions:
    """As in stowage.step. Wrong ones are refused when a plan is made."""

    budget: object
    host: object = None
    allow: object = None
    disk: object = None
    verify_disk: bool = False

    def replaced(self, **others):
        """With those of `others` that are given."""
        return dataclasses.replace(
            self, **{name: value for name, value in others.items() if value is not None})

    def request(self, ways):
        """For the library. ways: an infeasible error says what else would do."""
        budget, of_peak = parse_size(self.budget, "budget")
        request = {"budget": budget, "of_peak": of_peak, "ways": ways}
        if self.host is not None:
            request["host"] = parse_bytes(self.host, "host")
        if self.allow is not None:
            request["allow"] = _words_of(self.allow)
        if self.disk is not None:
            request["disk_folder"], request["disk"] = parse_disk(self.disk)
            request["verify_disk"] = bool(self.verify_disk)
        elif self.verify_disk:
            raise InvalidArgument(
                "verify_disk: found True and no disk, expected disk='/scratch:500GiB' beside it")
        return json.dumps(request)


def _words_of(allow):
    """"offload,recompute" of that, or of a list of such words."""
    if isinstance(allow, str):
        return allow
    if isinstance(allow, (list, tuple, set)) and all(isinstance(word, str) for word in allow):
        return ",".join(allow) or "none"
    raise InvalidArgument(
        f"allow: found {allow!r}, expected words as in 'offload,recompute', or a list of them")


def parse_disk(disk):
    """(folder, bytes)"""
    pair = disk.rpartition(":")[::2] if isinstance(disk, str) else disk
    is_pair = isinstance(pair, (list, tuple)) and len(pair) == 2
    if not is_pair or not isinstance(pair[0], (str, os.PathLike)) or not str(pair[0]):
        raise InvalidArgument(
            f"disk: found {disk!r}, expected a folder and bytes, as '/scratch:500GiB' or "
            "('/scratch', '500GiB')")
    size = parse_bytes(pair[1], "disk")
    if size == 0:
        raise InvalidArgument(f"disk: found {disk!r} without bytes, expected some, or disk=None")
    return os.path.abspath(pair[0]), size
