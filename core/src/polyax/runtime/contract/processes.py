"""Several processes that run one program: what the core asks of whoever connects them, and which process this one is.

A plugin connects them (``polyax_processes``); until it has been asked to, a process is alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Transfer(NamedTuple):
    """Memory (contiguous) that goes to, or comes from, the process with this place in the group."""

    place: int
    data: np.ndarray


class ProcessGroup(ABC):
    """Some processes, this one among them. All of them must make the same calls, in the same order.

    ``ranks``: their numbers among all processes. ``what``: the program that asks, for messages.
    """

    ranks: tuple[int, ...] = (0,)
    rank: int = 0
    """The place of this process in ``ranks``."""

    @property
    def size(self) -> int:
        return len(self.ranks)

    @abstractmethod
    def gather(self, data: bytes, what: str) -> list[bytes]:
        """What each of them gives, in their order; short messages."""

    @abstractmethod
    def all_reduce(self, pairs: Sequence[tuple[np.ndarray, np.ndarray]], operation: str, what: str) -> None:
        """Puts into each target what the sources of all make together; a target may be its source.

        ``operation``: psum, pmax or pmin, with NumPy's meaning for every dtype.
        """

    @abstractmethod
    def exchange(self, sends: Sequence[Transfer], receives: Sequence[Transfer], what: str) -> None:
        """Messages from process to process; those between two of them arrive in the order in which they were sent."""

    def begin(self, what: str) -> None:  # noqa: B027  (needed by those that watch)
        """A program of these processes is under way here: who waits for this one in it doesn't wait in vain."""

    def end(self, what: str) -> None:  # noqa: B027
        """It has ended here."""

    @abstractmethod
    def among(self, places: Sequence[int], key: object = None) -> ProcessGroup:
        """A connection of some of them, this one included, of its own for each ``key``. Only they call it."""

    @abstractmethod
    def abort(self, message: str) -> None:
        """Ends all processes, and tells why."""

    @abstractmethod
    def close(self) -> None:
        """Takes leave: this process asks nothing more of the others."""


class Alone(ProcessGroup):
    """The group of a process that has no others."""

    def gather(self, data: bytes, what: str) -> list[bytes]:
        return [data]

    def all_reduce(self, pairs: Sequence[tuple[np.ndarray, np.ndarray]], operation: str, what: str) -> None:
        for source, target in pairs:
            target[...] = source

    def exchange(self, sends: Sequence[Transfer], receives: Sequence[Transfer], what: str) -> None:
        for sent, received in zip(sends, receives, strict=True):
            received.data[...] = sent.data

    def among(self, places: Sequence[int], key: object = None) -> ProcessGroup:
        return self

    def abort(self, message: str) -> None:
        raise SystemExit(message)

    def close(self) -> None: ...


@dataclass(frozen=True)
class Wanted:
    """What ``distributed.initialize`` was asked for; None: as the program was started."""

    num_processes: int | None = None
    process_id: int | None = None
    initialization_timeout: float = 300
    heartbeat_timeout: float = 100


@dataclass(frozen=True)
class ProcessSpec:
    """What a plugin's ``polyax_processes`` hook yields. Making one imports no library."""

    name: str
    """As in ``distributed.initialize(cluster_detection_method=...)``."""
    probe: Callable[[], str | None]
    """None: this program was started as several processes that ``connect`` can connect. Else why not."""
    connect: Callable[[Wanted], ProcessGroup]


_here: list[ProcessGroup] = [Alone()]


def here() -> ProcessGroup:
    """All processes of the program."""
    return _here[-1]


def join(group: ProcessGroup) -> None:
    """This process is one of ``group`` from now on."""
    _here[:] = [group]


def leave() -> None:
    """This process is alone again."""
    group = here()
    _here[:] = [Alone()]
    group.close()
