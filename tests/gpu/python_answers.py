# SPDX-License-Identifier: Apache-2.0
"""What the scripts of the Python package say of their rows: one answer of the kind "python" each."""

import importlib.metadata
import platform

from preconditions import open_answer

PACKAGES = ("transformers", "peft")


def open_python_answer(path):
    """Without a path nothing is written, as by open_answer."""
    answer = open_answer(path, "python", "stowage")
    if path:
        versions = {"python": platform.python_version(), "torch": importlib.metadata.version("torch")}
        for name in PACKAGES:
            try:
                versions[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue
        answer.answer["versions"].update(versions)
    return answer


def add_row(answer, check, case, good, verdict, **facts):
    """good: as promised. verdict: in a word or a message."""
    row = {"check": check, "case": case, "good": good, "verdict": verdict, **facts}
    if answer.path:
        answer.add(row)
    return row
