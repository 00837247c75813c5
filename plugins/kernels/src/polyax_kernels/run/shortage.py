"""When memory can't be had: what is no longer needed is given back first, then an error says what is live."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from typing import TypeVar

from polyax.ir.errors import PolyaxRuntimeError
from polyax.runtime.arrays.array import Array

T = TypeVar("T")
SHOWN = 5
"""How many arrays an error names."""


class OutOfMemory(PolyaxRuntimeError, MemoryError):
    """An allocation failed; the text says how much was asked for and what is live."""


def allocated(
    make: Callable[[], T], error: Callable[[str], Exception], release: Callable[[], object] = gc.collect
) -> T:
    """What ``make`` gives; it is tried again after ``release``: arrays in cycles of references live until a garbage
    collection.

    Raises:
      What ``error`` makes of the reason: there is no memory.
    """
    try:
        return make()
    except MemoryError:
        release()
    try:
        return make()
    except MemoryError as e:
        raise error(str(e)) from None


def shortage(where: str, nbytes: int, live: int, arrays: Iterable[Array], reason: str) -> str:
    """What was asked for, and what is live."""
    known = sorted(arrays, key=lambda x: -x.nbytes)
    shown = ", ".join(f"{x.aval} ({x.nbytes:,} bytes)" for x in known[:SHOWN]) or "none"
    return (
        f"{where} is out of memory: {nbytes:,} bytes were asked for while {live:,} are live. The largest "
        f"of {len(known)} arrays there: {shown}. Delete what isn't needed any more, donate arguments to jit, or "
        f"work in smaller pieces. The reason: {reason}"
    )
