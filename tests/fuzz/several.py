"""Seeds tried by several processes at once; one that dies or hangs is a failure of the seed that it was at.

A process tries some hundred seeds, so that what it remembers of programs doesn't grow. Knows nothing of programs.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import NamedTuple

CHUNK = 500
"""Seeds of a process; to start one takes as long as some tens of them."""
PATIENCE = 600.0
"""Seconds after which a process hangs that says nothing."""

Attempt = Callable[[int, list[str]], None]


class Tried(NamedTuple):
    seed: int
    failure: str | None


@dataclass
class Worker:
    """A process that tries the seeds from ``at`` to ``end``, and tells of each."""

    process: SpawnProcess
    told: Connection
    at: int
    end: int
    heard: float = field(default_factory=time.monotonic)

    def hear(self) -> tuple[Tried | None, bool]:
        """What it says, and whether that was the last."""
        self.heard = time.monotonic()
        try:
            seed, failure = self.told.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            return (None if self.at == self.end else self.lost(f"died ({self.process.exitcode})")), True
        self.at = seed + 1
        return Tried(seed, failure), False

    def lost(self, how: str) -> Tried:
        """The seed that it was at, of which it says nothing any more."""
        self.at += 1
        return Tried(self.at - 1, f"the process {how}")


def work(attempt: Attempt, platforms: list[str], first: int, end: int, told: Connection) -> None:
    """What a process does."""
    for seed in range(first, end):
        failure = None
        try:
            attempt(seed, platforms)
        except Exception as e:
            failure = "\n".join([f"{type(e).__name__}: {e}", *getattr(e, "__notes__", [])])
        told.send((seed, failure))


class Crew:
    """``jobs`` processes, which try seeds from ``seed`` on for as long as they are asked."""

    def __init__(self, attempt: Attempt, platforms: list[str], jobs: int, seed: int) -> None:
        self.attempt, self.platforms, self.seed = attempt, platforms, seed
        self.context: SpawnContext = multiprocessing.get_context("spawn")
        self.workers = [self._start(*self._next()) for _ in range(jobs)]

    def _next(self) -> tuple[int, int]:
        first, self.seed = self.seed, self.seed + CHUNK
        return first, self.seed

    def _start(self, first: int, end: int) -> Worker:
        told, tell = self.context.Pipe(duplex=False)
        process = self.context.Process(target=work, args=(self.attempt, self.platforms, first, end, tell), daemon=True)
        process.start()
        tell.close()
        return Worker(process, told, first, end)

    def tried(self, seconds: float) -> Iterator[Tried]:
        """What is known after at most so many seconds."""
        ready = wait([w.told for w in self.workers], seconds)
        for worker in list(self.workers):
            if worker.told in ready:
                said, over = worker.hear()
            elif time.monotonic() - worker.heard > PATIENCE:
                worker.process.kill()
                said, over = worker.lost(f"said nothing for {PATIENCE:.0f} seconds"), True
            else:
                continue
            if said is not None:
                yield said
            if over:
                self._replace(worker)

    def _replace(self, worker: Worker) -> None:
        """By one that goes on where it ended."""
        worker.process.join()
        worker.told.close()
        rest = (worker.at, worker.end) if worker.at < worker.end else self._next()
        self.workers[self.workers.index(worker)] = self._start(*rest)

    def close(self) -> None:
        for worker in self.workers:
            worker.process.kill()
            worker.process.join()
            worker.told.close()
