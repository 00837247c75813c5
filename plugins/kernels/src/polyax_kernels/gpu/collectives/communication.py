"""Communication libraries of GPUs (NCCL and its like): what one gives, and groups of devices that meet through it.

Knows no vendor's library and no collective.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from polyax.runtime.contract.collectives import Axes, Groups
from polyax.runtime.contract.processes import ProcessGroup
from polyax.runtime.contract.spanning import SpanningGroup
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
    identity: Callable[[], bytes] | None = None
    """A new name of a connection, which one process makes and all that take part are told; None: only within one."""
    join: Callable[[Sequence[Any], Sequence[int], int, bytes], Sequence[Communicator]] | None = None
    """Connects the devices of these runtimes as members of these numbers, among so many in several processes."""


class Connections:
    """The connections between some devices, numbered as members of a group; made at first use and kept.

    ``runtimes``: those of the members in this process.
    """

    def __init__(self, library: CommunicationLibrary, runtimes: Mapping[int, Runtime]) -> None:
        self.library = library
        self.runtimes = runtimes
        self.known: dict[Key, dict[int, Communicator]] = {}

    def connect(self, key: Key, together: Sequence[Sequence[int]], group: LibraryGroup) -> None:
        """All processes connect the same members in the same order."""
        ends: dict[int, Communicator] = {}
        for members in together:
            here = [n for n in members if n in self.runtimes]
            if here:
                ends.update(zip(here, self._connected(members, here, group), strict=True))
        self.known[key] = ends

    def _connected(self, members: Sequence[int], here: Sequence[int], group: LibraryGroup) -> Sequence[Communicator]:
        library, runtimes = self.library, [self.runtimes[n] for n in here]
        if len(here) == len(members):
            return library.connect(runtimes)
        assert library.identity is not None and library.join is not None, f"{library.name} connects one process only"
        name = library.identity() if members[0] in self.runtimes else b""
        told = group.link_of(group.homes_of(members)).gather(name, f"connecting by {library.name}")
        return library.join(runtimes, [members.index(n) for n in here], len(members), b"".join(told))


class LibraryGroup(SpanningGroup):
    """Members whose devices exchange memory directly; processes only tell each other how they are connected."""

    def __init__(self, axes: Axes, connections: Connections, homes: Sequence[int], link: ProcessGroup) -> None:
        super().__init__(axes, homes, link)
        self.connections = connections

    def communicator(self, rank: int, names: tuple[Any, ...], groups: Groups | None) -> Communicator:
        """The end of member ``rank`` for one collective, once all have come: a device that waits for one whose program
        failed would wait for ever. Connecting waits until these devices are idle, as libraries demand."""
        known, key = self.connections.known, (names, groups)
        if key not in known:  # for all members or for none: nobody connects before all have come
            self.connections.runtimes[rank].synchronize()
            self.meet(rank, None)
            if self.leads(rank):
                peers = (tuple(self.peers(n, names, groups)[0]) for n in range(self.size))
                self.connections.connect(key, list(dict.fromkeys(peers)), self)
        self.meet(rank, None)
        return known[key][rank]
