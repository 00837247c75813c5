"""Communication libraries of GPUs (NCCL and its like): what one gives, and groups of devices that meet through it.

Knows no vendor's library and no collective.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from polyax.runtime.contract.collectives import Axes, Group, Groups
from polyax_kernels.gpu.runtime import Runtime

Key = tuple[tuple[Any, ...], Groups | None]
"""The named axes, and the groups along them, of a collective."""


class Communicator(ABC):
    """One device's end of a connection. Calls put work into the device's queue and return; all members must make them,
    in the same order. ``source`` and ``target`` are addresses; ``dtype`` is a name, ``count`` counts its elements."""

    @abstractmethod
    def together(self) -> AbstractContextManager[Any]:
        """What is called inside is one exchange: none of it waits for another part."""

    @abstractmethod
    def all_reduce(self, source: int, target: int, count: int, dtype: str, operation: str) -> None:
        """``operation``: psum, pmax or pmin."""

    @abstractmethod
    def all_gather(self, source: int, target: int, nbytes: int) -> None:
        """Each member has ``nbytes``; ``target`` gets those of all, in order."""

    @abstractmethod
    def reduce_scatter(self, source: int, target: int, count: int, dtype: str) -> None:
        """Each member gets ``count`` elements of the sum, in order."""

    @abstractmethod
    def send(self, source: int, nbytes: int, peer: int) -> None: ...

    @abstractmethod
    def receive(self, target: int, nbytes: int, peer: int) -> None: ...


@dataclass(frozen=True)
class CommunicationLibrary:
    """What a backend tells of its library."""

    name: str
    why_missing: Callable[[], str | None]
    connect: Callable[[Sequence[Any]], Sequence[Communicator]]
    """Connects the devices of these runtimes; gives one end for each."""
    sums: frozenset[str]
    """The dtypes that it adds. Complex numbers are added by parts."""
    extrema: frozenset[str]
    """The dtypes of which it has the maximum and the minimum, NaN included."""


class Connections:
    """The connections between some devices, numbered as members of a group; made at first use and kept."""

    def __init__(self, library: CommunicationLibrary, runtimes: Sequence[Runtime]) -> None:
        self.library = library
        self.runtimes = runtimes
        self.known: dict[Key, dict[int, Communicator]] = {}

    def connect(self, key: Key, together: Sequence[Sequence[int]]) -> None:
        ends: dict[int, Communicator] = {}
        for members in together:
            found = self.library.connect([self.runtimes[n] for n in members])
            ends.update(zip(members, found, strict=True))
        self.known[key] = ends


class LibraryGroup(Group):
    """Members whose devices exchange memory directly."""

    def __init__(self, axes: Axes, connections: Connections) -> None:
        super().__init__(axes)
        self.connections = connections

    def communicator(self, rank: int, names: tuple[Any, ...], groups: Groups | None) -> Communicator:
        """The end of member ``rank`` for one collective, once all have come: a device that waits for one whose program
        failed would wait for ever. Connecting waits until these devices are idle, as libraries demand."""
        known, key = self.connections.known, (names, groups)
        if key not in known:  # for all members or for none: nobody connects before all have come
            self.connections.runtimes[rank].synchronize()
            self.meet(rank, None)
            if rank == 0:
                peers = (tuple(self.peers(n, names, groups)[0]) for n in range(self.size))
                self.connections.connect(key, list(dict.fromkeys(peers)))
        self.meet(rank, None)
        return known[key][rank]
