"""What happens while one program is compiled: seconds per phase, and for those who want to see it, the program itself.

Keeps texts, not graphs, so that nothing lives longer because it was looked at.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator
from typing import TypeVar

from polyax.runtime.contract.report import Snapshot

T = TypeVar("T")


class Journal:
    """``keep``: somebody wants to see the stages; otherwise only times are taken."""

    def __init__(self, keep: bool = False) -> None:
        self.keep = keep
        self.phases: dict[str, float] = {}
        self.stages: list[Snapshot] = []

    @contextlib.contextmanager
    def phase(self, name: str) -> Generator[None]:
        """Adds the time that the block takes to the phase ``name``."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.perf_counter() - began

    def note(self, name: str, text: Callable[[T], str], subject: T) -> None:
        """Keeps ``text(subject)``, which is only made if somebody wants it."""
        if self.keep:
            self.stages.append(Snapshot(name, text(subject)))
