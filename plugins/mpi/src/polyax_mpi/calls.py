"""Waiting for MPI: in the call itself where threads may call it at once, else by asking again and again.

Without ``MPI_THREAD_MULTIPLE`` one call is in MPI at a time: each is started under a lock, which is free while it
waits, so that a call of one thread can't keep that of another from ending.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from mpi4py import MPI

T = TypeVar("T")
_lock = threading.Lock()
PAUSES = 1e-5, 1e-3
"""Seconds between two questions: the first, and the longest."""


def several_threads() -> bool:
    """Whether MPI takes calls of several threads at once."""
    return MPI.Query_thread() == MPI.THREAD_MULTIPLE


def finish(start: Callable[[], Sequence[MPI.Request]]) -> None:
    """Starts calls, and returns when they have ended."""
    if several_threads():
        MPI.Request.Waitall(list(start()))
        return
    with _lock:
        requests = list(start())
    pause, longest = PAUSES
    while not _ended(requests):
        time.sleep(pause)
        pause = min(2 * pause, longest)


def _ended(requests: list[MPI.Request]) -> bool:
    with _lock:
        return MPI.Request.Testall(requests)


def alone(call: Callable[[], T]) -> T:
    """The result of a call that doesn't wait for others."""
    with _lock:
        return call()
