"""How far the suite is, in one line of a terminal that is written again and again."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import IO

WIDTH = 30
PAUSE = 0.1
"""Seconds between two pictures, at least."""


class ProgressLine:
    """A bar on ``file``, which is gone at the end of the block.

    >>> import io
    >>> file = io.StringIO()
    >>> with ProgressLine(file) as line:
    ...     line("scalars", 1, 2)
    >>> file.getvalue().split("\\r")[1].rstrip()
    '[###############               ] 1/2 scalars'
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._last = 0.0

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._write("")

    def __call__(self, level: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last >= PAUSE:
            self._last = now
            bar = "#" * (WIDTH * done // max(total, 1))
            self._write(f"[{bar:<{WIDTH}}] {done}/{total} {level}")

    def _write(self, text: str) -> None:
        self._file.write(f"\r{text:<{WIDTH + 40}}" if text else "\r" + " " * (WIDTH + 40) + "\r")
        self._file.flush()


def line_of_terminal() -> ProgressLine | None:
    """On standard error, if a person looks at it."""
    return ProgressLine(sys.__stderr__) if sys.__stderr__ is not None and sys.__stderr__.isatty() else None
