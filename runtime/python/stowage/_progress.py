# SPDX-License-Identifier: Apache-2.0
"""One line on stderr for what takes longer than a second, as the program `stowage` shows it.

Only in a terminal or a notebook; STOWAGE_PROGRESS=0 turns it off. The line is erased at the end.
"""

import contextlib
import os
import sys
import threading
import time

_DELAY = 1.0  # seconds before the first line, and between two
_lock = threading.Lock()
_line = None  # of the thread that is at work


@contextlib.contextmanager
def phase(what):
    """Says `what` while the block runs. One inside another follows it: "batch 16: capturing f"."""
    global _line
    with _lock:
        mine = _line is not None and _line.thread == threading.get_ident()
        begins = _line is None and is_watched()
        if begins:
            _line = _Line()
        line = _line if mine or begins else None
    if line is None:  # nobody watches, or another thread has the line
        yield
        return
    line.phases.append(what)
    try:
        yield
    finally:
        line.phases.pop()
        if begins:
            with _lock:
                _line = None
            line.end()


def is_watched():
    """Does a person read stderr?"""
    if os.environ.get("STOWAGE_PROGRESS") == "0" or "CI" in os.environ:
        return False
    stream = _stderr()
    return stream is not None and (_in_notebook() or stream.isatty())


def _stderr():
    return sys.stderr


def _in_notebook():
    """In a kernel of Jupyter, whose streams are no terminals."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class _Line:
    """A thread that writes it: the library plans without the lock of the interpreter."""

    def __init__(self):
        self.thread = threading.get_ident()
        self.phases = []
        self._stream = _stderr()
        self._width = 0  # of what is shown
        self._begin = time.monotonic()
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="stowage progress", daemon=True)
        self._ticker.start()

    def end(self):
        self._over.set()
        self._ticker.join()
        if self._width:
            self._write("")

    def _tick(self):
        while not self._over.wait(_DELAY):
            seconds = time.monotonic() - self._begin
            self._write(f"{': '.join(self.phases)}  {seconds:.0f} s")

    def _write(self, text):
        """Over the line before, without control codes, which some notebooks show."""
        text = text.encode("ascii", "replace").decode().replace("\n", " ")[:79]
        rest = " " * max(self._width - len(text), 0)
        ending = "" if text else "\r"
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
            self._stream.write(f"\r{text}{rest}{ending}")
            self._stream.flush()
        self._width = len(text)
