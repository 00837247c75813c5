"""Attempts that go wrong in every way, for the tests of those who watch over them."""

from __future__ import annotations

import os
import signal
import time


def attempt(seed: int, platforms: list[str]) -> None:
    """Of twenty seeds one fails, one ends the process, and one hangs."""
    assert platforms == ["cpu"]
    if seed % 20 == 3:
        raise ValueError(f"{seed} is wrong")
    if seed % 20 == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    if seed % 20 == 11:
        time.sleep(1000)
