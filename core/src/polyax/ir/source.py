"""Where in the user's program an equation comes from: kept as (code object, instruction), resolved only for errors."""

from __future__ import annotations

import os
import sys
from types import CodeType
from typing import NamedTuple

_INTERNAL: set[str] = {os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep}
_KNOWN: dict[str, bool] = {}  # file name -> whether it is one of polyax's own


def register_internal(path: str) -> None:
    """Frames of files below ``path`` are never shown as the user's line."""
    _INTERNAL.add(os.path.abspath(path) + os.sep)
    _KNOWN.clear()


def is_internal(filename: str) -> bool:
    known = _KNOWN.get(filename)
    if known is None:
        known = any(filename.startswith(p) for p in _INTERNAL) or filename.startswith("<frozen")
        _KNOWN[filename] = known
    return known


class Source(NamedTuple):
    code: CodeType
    instruction: int
    scope: str = ""

    @property
    def line(self) -> int:
        for start, end, line in self.code.co_lines():
            if start <= self.instruction < end and line is not None:
                return line
        return self.code.co_firstlineno

    def __str__(self) -> str:
        scope = f" in {self.scope}" if self.scope else ""
        return f"{self.code.co_filename}:{self.line} ({self.code.co_name}){scope}"


def user_source(scope: str = "") -> Source | None:
    """The innermost frame that is not polyax's own."""
    frame = sys._getframe(1)
    known = _KNOWN
    while frame is not None:
        code = frame.f_code
        internal = known.get(code.co_filename)
        if internal is None:
            internal = is_internal(code.co_filename)
        if not internal:
            return Source(code, frame.f_lasti, scope)
        frame = frame.f_back
    return None
