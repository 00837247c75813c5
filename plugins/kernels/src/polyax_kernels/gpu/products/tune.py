"""A short search for the fastest of some candidates, remembered in memory and on disk.

Results of a search are kept per device and kind of work, so that a process never changes its mind. Knows nothing of
what it times.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from polyax.runtime.contract.cache import DiskCache
from polyax_kernels import settings

T = TypeVar("T")

BUDGET = 0.3
"""Seconds of measuring."""
PATIENCE = 1.5
"""Seconds of measuring and compiling, after which no more candidates are tried."""
REPEATS = 3

_known: dict[str, Any] = {}
_lock = threading.RLock()
_cache = DiskCache("tuning")


def fastest(key: str, candidates: Sequence[T], timed: Callable[[T], float]) -> T:
    """The candidate (a dataclass) for which ``timed`` gives the least seconds; the first one if tuning is off.

    ``key`` says all that the answer depends on. ``timed`` may compile when it is first called for a candidate; it gives
    infinity for one that the device doesn't take.
    """
    if not settings.tune():
        return candidates[0]
    with _lock:
        if key not in _known:
            _known[key] = _remembered(key, candidates) or _found(key, candidates, timed)
        return _known[key]


def _remembered(key: str, candidates: Sequence[T]) -> T | None:
    """What an earlier process found, if it is one of the candidates still."""
    data = _cache.get(key)
    try:
        found = None if data is None else json.loads(data)
    except ValueError:
        return None
    return next((c for c in candidates if describe(c) == found), None)


def describe(candidate: Any) -> dict[str, Any]:
    """As it is kept on disk."""
    return {"kind": type(candidate).__name__, **asdict(candidate)}


def _found(key: str, candidates: Sequence[T], timed: Callable[[T], float]) -> T:
    started, measured = time.perf_counter(), 0.0
    times: dict[T, float] = {}
    for candidate in candidates:
        if timed(candidate) == math.inf:  # else it is compiled now
            continue
        for _ in range(REPEATS):
            seconds = timed(candidate)
            times[candidate] = min(seconds, times.get(candidate, seconds))
            measured += seconds
        if measured >= BUDGET or time.perf_counter() - started > PATIENCE:
            break
    best = min(times, key=lambda c: times[c]) if times else candidates[0]
    _cache.put(key, json.dumps(describe(best)).encode())
    return best
