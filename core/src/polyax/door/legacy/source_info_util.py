"""``jax._src.source_info_util``: where equations come from, in words and in numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

from polyax.ir.source import Source


class UserFrame(NamedTuple):
    """A place in a user's function."""

    file_name: str
    function_name: str
    start_line: int
    start_column: int


def user_frame(traceback: Any) -> UserFrame | None:
    """The user's line of ``eqn.source_info.traceback``, or of what has it; None where there is none."""
    line: Source | None = traceback and traceback.traceback
    if line is None:
        return None
    return UserFrame(line.code.co_filename, line.code.co_qualname, line.line, line.column)


def summarize(source_info: Any, num_frames: int = 1) -> str:
    """``file:line:column (function)`` of ``eqn.source_info``; polyax keeps no more than one line of an equation."""
    return source_info.traceback.place if source_info.traceback else "unknown"
