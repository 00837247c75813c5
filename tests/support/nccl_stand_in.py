"""``cupy.cuda.nccl`` made of threads that exchange host memory at addresses, with NCCL's semantics of groups.

What is put together between ``groupStart`` and ``groupEnd`` happens at its end; members must call the same exchanges.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np

from support.cupy_stand_in import at

DTYPES = (*["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"], ml_dtypes.bfloat16)
OPERATIONS = {0: np.add, 2: np.maximum, 3: np.minimum}
_group = threading.local()


class NcclError(RuntimeError): ...


def groupStart() -> None:
    _group.waiting = []


def groupEnd() -> None:
    waiting, _group.waiting = _group.waiting, None
    if waiting:
        waiting[0][0].exchange([call for _, call in waiting])


def memory(address: int, count: int, datatype: int) -> np.ndarray:
    dtype = np.dtype(DTYPES[datatype])
    return at(address, (count * dtype.itemsize,), np.uint8).view(dtype)


class Shared:
    """What the members of one communicator have in common: a table that each puts its calls on."""

    def __init__(self, size: int) -> None:
        self.table: list[Any] = [None] * size
        self.barrier = threading.Barrier(size, timeout=20)


_named: dict[tuple[int, ...], Shared] = {}


def get_unique_id() -> tuple[int, ...]:
    """Numbers between -128 and 127, as CuPy gives."""
    return tuple(int(n) for n in np.random.default_rng().integers(-128, 128, 128))


class NcclCommunicator:
    """One end. Each exchange is: all put their calls on the table, all compute, all write."""

    made: list[tuple[int, ...]]
    calls: list[str]

    def __init__(self, ndev: int, commId: tuple[int, ...], rank: int) -> None:
        self.shared = _named.setdefault(commId, Shared(ndev))
        self.rank = rank

    @classmethod
    def initAll(cls, devices: Sequence[int]) -> list[NcclCommunicator]:
        cls.made.append(tuple(devices))
        name = get_unique_id()
        return [cls(len(devices), name, n) for n in range(len(devices))]

    def put(self, *call: Any) -> None:
        self.calls.append(call[0])
        if getattr(_group, "waiting", None) is None:
            self.exchange([call])
        else:
            _group.waiting.append((self, call))

    def exchange(self, calls: list[Any]) -> None:
        self.shared.table[self.rank] = calls
        self.shared.barrier.wait()
        found = [(target, value) for n, c in enumerate(calls) for target, value in self.outcome(n, c)]
        self.shared.barrier.wait()
        for target, value in found:
            at(target, (value.nbytes,), np.uint8)[...] = value.view(np.uint8)
        self.shared.barrier.wait()

    def outcome(self, number: int, call: Any) -> list[tuple[int, np.ndarray]]:
        name, _, target, count, dtype, *more = call
        if name == "send":
            return []
        if name == "recv":
            sent = [c for c in self.shared.table[more[0]] if c[0] == "send" and c[5] == self.rank]
            assert [c[3] for c in sent] == [count], "each receives what one sends"
            return [(target, memory(sent[0][1], count, dtype).copy())]
        others = [calls[number] for calls in self.shared.table]
        assert all((c[0], *c[3:]) == (name, *call[3:]) for c in others), "members must agree"
        total = count * len(others) if name == "reduceScatter" else count
        values = [memory(c[1], total, dtype) for c in others]
        if name == "allGather":
            return [(target, np.concatenate(values))]
        result = reduce(OPERATIONS[more[0]], values)
        own = slice(self.rank * count, (self.rank + 1) * count)
        return [(target, result[own].copy() if name == "reduceScatter" else result.copy())]

    def allReduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int) -> None:
        self.put("allReduce", sendbuf, recvbuf, count, datatype, op)

    def allGather(self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int) -> None:
        self.put("allGather", sendbuf, recvbuf, count, datatype)

    def reduceScatter(self, sendbuf: int, recvbuf: int, recvcount: int, datatype: int, op: int, stream: int) -> None:
        self.put("reduceScatter", sendbuf, recvbuf, recvcount, datatype, op)

    def send(self, sendbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self.put("send", sendbuf, None, count, datatype, peer)

    def recv(self, recvbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self.put("recv", None, recvbuf, count, datatype, peer)
