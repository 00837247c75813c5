"""``MpiGroup``: processes that exchange memory through an MPI communicator, watched while they wait for each other."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from polyax.backend import ProcessGroup, Transfer
from polyax_mpi.calls import finish
from polyax_mpi.operations import reduction
from polyax_mpi.watching import Watch

Pair = tuple[np.ndarray, np.ndarray]
PACKED = 1 << 16
"""Arrays of at most this many bytes are reduced together: each call costs more than copying them."""


class MpiGroup(ProcessGroup):
    """Calls are made by one thread at a time; other threads use groups of their own."""

    def __init__(self, comm: MPI.Intracomm, ranks: tuple[int, ...], watch: Watch) -> None:
        self.comm = comm
        self.ranks = ranks
        self.rank = comm.rank
        self.watch = watch
        self.closed = False
        self._parts: dict[Any, MpiGroup] = {}

    def _wait(self, what: str, start: Callable[[], Sequence[MPI.Request]]) -> None:
        with self.watch.waiting(what, self.ranks):
            finish(start)

    def begin(self, what: str) -> None:
        self.watch.count(what, 1)

    def end(self, what: str) -> None:
        self.watch.count(what, -1)

    def gather(self, data: bytes, what: str) -> list[bytes]:
        lengths = np.empty(self.size, np.int64)
        own = np.array([len(data)])
        self._wait(what, lambda: [self.comm.Iallgather(own, lengths)])
        whole = np.empty(int(lengths.sum()), np.uint8)
        mine = np.frombuffer(data, np.uint8)
        self._wait(what, lambda: [self.comm.Iallgatherv(mine, [whole, lengths])])
        return [part.tobytes() for part in np.split(whole, np.cumsum(lengths)[:-1])]

    def all_reduce(self, pairs: Sequence[Pair], operation: str, what: str) -> None:
        """Large arrays where they lie; small ones of a dtype packed together."""
        large = [p for p in pairs if p[0].nbytes > PACKED]
        packed = _packed([p for p in pairs if 0 < p[0].nbytes <= PACKED])
        calls = [*large, *((memory, memory) for memory, _ in packed)]
        self._wait(f"{operation} of {what}", lambda: [self._reduce(*pair, operation) for pair in calls])
        for memory, targets in packed:
            _unpack(memory, targets)

    def _reduce(self, source: np.ndarray, target: np.ndarray, operation: str) -> MPI.Request:
        how = reduction(operation, target.dtype)
        same = source.ctypes.data == target.ctypes.data
        return self.comm.Iallreduce(MPI.IN_PLACE if same else how.buffer(source), how.buffer(target), how.operation)

    def exchange(self, sends: Sequence[Transfer], receives: Sequence[Transfer], what: str) -> None:
        def start() -> list[MPI.Request]:
            coming = [self.comm.Irecv(_raw(t.data), t.place) for t in receives]
            return [*coming, *(self.comm.Isend(_raw(t.data), t.place) for t in sends)]

        self._wait(f"exchange of {what}", start)

    def among(self, places: Sequence[int], key: Hashable = None) -> MpiGroup:
        wanted = tuple(places), key
        found = self._parts.get(wanted)
        if found is None:
            group = self.comm.Get_group().Incl(list(places))
            ranks = tuple(self.ranks[n] for n in places)
            with self.watch.waiting("connecting processes", ranks):
                found = MpiGroup(self.comm.Create_group(group), ranks, self.watch)
            self._parts[wanted] = found
        return found

    def abort(self, message: str) -> None:
        sys.stdout.flush()
        self.watch.failed(message)
        self.comm.Abort(1)

    def close(self) -> None:
        self.closed = True
        self.watch.close()

    def leave_to_parent(self) -> None:
        """In a process that was forked off: the connections are those of the process that it came from."""
        self.closed = True
        self.watch.leave_to_parent()


def _raw(x: np.ndarray) -> Any:
    return [x.reshape(-1).view(np.uint8), MPI.BYTE]


def _packed(pairs: Sequence[Pair]) -> list[tuple[np.ndarray, list[np.ndarray]]]:
    """For each dtype the sources in one piece of memory, and the targets."""
    kinds: dict[np.dtype, list[Pair]] = defaultdict(list)
    for pair in pairs:
        kinds[pair[0].dtype].append(pair)
    return [(np.concatenate([s for s, _ in some]), [t for _, t in some]) for some in kinds.values()]


def _unpack(memory: np.ndarray, targets: Sequence[np.ndarray]) -> None:
    begin = 0
    for target in targets:
        target[...] = memory[begin : begin + target.size]
        begin += target.size
