"""A small pool of threads that share the rows of one kernel. They never block on anything but their work."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

from polyax_kernels import settings

Rows = Callable[[int, int], None]
"""``run(begin, end)``; it must release the interpreter's lock to be of use."""

_pool: ThreadPoolExecutor | None = None
_lock = threading.Lock()
_here = threading.local()
"""``shares``: this thread has a share already, within which nothing is shared again."""


def _start_anew() -> None:
    """Threads stay behind in a process that forks."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_start_anew)


def num_threads() -> int:
    """``config.num_threads``, or one per core that this process may use."""
    return settings.num_threads() or len(os.sched_getaffinity(0))


def _workers() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max(1, num_threads() - 1), "polyax-compute")
        return _pool


def parallel_for(extent: int, run: Rows) -> None:
    """``run`` on ranges that cover ``0..extent``: the first in the calling thread, the others beside it."""
    parts = 1 if getattr(_here, "shares", False) else min(num_threads(), extent)
    if parts <= 1:
        run(0, extent)
        return

    def share(begin: int, end: int) -> None:
        _here.shares = True
        try:
            run(begin, end)
        finally:
            _here.shares = False

    bounds = [extent * n // parts for n in range(parts + 1)]
    futures = [_workers().submit(share, bounds[n], bounds[n + 1]) for n in range(1, parts)]
    share(0, bounds[1])
    wait(futures)
    for future in futures:
        future.result()  # raises what that part raised
