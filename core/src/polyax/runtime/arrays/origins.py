"""Where large arrays were made: the user's calls at that time, for profiles of memory.

Only arrays of a size that takes longer to fill than their origin takes to note; nothing is asked of others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.dtypes import is_extended
from polyax.ir.source import is_internal
from polyax.runtime.arrays.array import Array
from polyax.trace.tree import tree_leaves

least = 1 << 20
"""Bytes of the arrays that are large; see ``note_from``."""
DEPTH = 32
Calls = tuple[tuple[CodeType, int], ...]
"""Code and instruction of each call, the innermost first."""


def note_from(nbytes: int) -> None:
    """From now on notes where arrays of at least ``nbytes`` are made, by programs that are yet to be compiled."""
    global least
    least = nbytes


def has_large(avals: Sequence[ShapedArray]) -> bool:
    return any(not is_extended(a.dtype) and a.nbytes >= least for a in avals)


def note(arrays: Any) -> None:
    """Notes where large arrays in a pytree were made, here."""
    here = _calls()
    for x in tree_leaves(arrays):
        if type(x) is Array and x.nbytes >= least:
            x._origin = here


def noting(entry: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``entry``, which notes where its large results were made."""

    def noted(leaves: Any) -> Any:
        made = entry(leaves)
        note(made)
        return made

    return noted


def origin_of(x: Array) -> Calls:
    """The calls that made it; none if they weren't noted."""
    return getattr(x, "_origin", ())


def _calls() -> Calls:
    found: list[tuple[CodeType, int]] = []
    frame = sys._getframe(1)
    while frame is not None and len(found) < DEPTH:
        if not is_internal(frame.f_code.co_filename):
            found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found)
