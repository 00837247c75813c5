"""Work that several threads begin at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def together(work: Callable[[], Any], count: int = 8) -> list[Any]:
    """What ``work`` gives in each of ``count`` threads; fails if one of them failed or doesn't end."""
    start, results = threading.Barrier(count), []

    def run() -> None:
        start.wait()
        results.append(work())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
        assert not t.is_alive()
    assert len(results) == count
    return results
