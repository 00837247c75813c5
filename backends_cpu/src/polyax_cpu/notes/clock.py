"""The clock that notes are written by: where the system keeps time by the processor's counter, that itself, which takes
less than half of the time to read. What the other clock says is noted now and then.
"""

from __future__ import annotations

import ctypes
import functools
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from polyax_cpu.llvm import Module

ANCHOR = "polyax_anchor"
TRIES = 8
"""How often clocks are compared where it has to succeed: a thread may lose its core between two looks."""
Anchor = tuple[int, int, int]
"""Nanoseconds, between two looks at the clock of notes: before, time, after."""
_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


@functools.cache
def counts() -> bool:
    """Whether there is a counter that the system trusts: it is the same on all cores and never stops."""
    try:
        return platform.machine() == "x86_64" and _SOURCE.read_text().strip() == "tsc"
    except OSError:
        return False


def define_clock(module: Module) -> None:
    """``ticks``: what the clock shows, in a unit of its own."""
    b = module.function("i64", "ticks", [], "alwaysinline")
    b.ret(b.call("i64", "llvm.readcyclecounter" if counts() else "now"))


def anchors(symbols: Mapping[str, int]) -> list[Anchor]:
    """Some of now."""
    look, found = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(symbols[ANCHOR]), []
    for _ in range(TRIES):
        times = (ctypes.c_int64 * 3)()
        look(ctypes.addressof(times))
        found.append(tuple(times))
    return found


class NoteClock:
    """What ``ticks`` are in nanoseconds, between times that are known by both clocks."""

    def __init__(self, anchors: Sequence[Anchor]) -> None:
        quick = 4 * min(after - before for before, _, after in anchors)
        known = sorted(a for a in anchors if a[2] - a[0] <= quick)
        self._ticks = np.array([before + (after - before) // 2 for before, _, after in known])
        self._times = np.array([time for _, time, _ in known])

    def times(self, ticks: np.ndarray) -> np.ndarray:
        """In their order: what comes later has no earlier time."""
        known, times = self._ticks - self._ticks[0], self._times - self._times[0]  # small numbers are exact as floats
        return np.interp(ticks - self._ticks[0], known, times).astype(np.int64) + self._times[0]
