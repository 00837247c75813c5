"""NCCL as a communication library. Imports it when it is first asked for, as machines may lack it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator, Sequence
from functools import cache
from typing import Any

from polyax_kernels.api.gpu import CommunicationLibrary, Communicator, DeviceError
from polyax_kernels.api.lowerings import toolkits

INTEGERS = {"int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5}  # in ncclDataType_t
TYPES = INTEGERS | {"float16": 6, "float32": 7, "float64": 8, "bfloat16": 9}
OPERATIONS = {"psum": 0, "pmax": 2, "pmin": 3}  # in ncclRedOp_t
BYTES = TYPES["uint8"]


class NcclCommunicator(Communicator):
    """``end`` is CuPy's communicator of the GPU."""

    def __init__(self, runtime: Any, end: Any) -> None:
        self.runtime, self.end = runtime, end

    @contextlib.contextmanager
    def together(self) -> Generator[None]:
        from cupy_backends.cuda.libs import nccl

        nccl.groupStart()
        try:
            yield
        finally:
            with failing():
                nccl.groupEnd()

    def _put(self, name: str, *args: int) -> None:
        with self.runtime.current(), failing():
            getattr(self.end, name)(*args, self.runtime.stream.ptr)

    def all_reduce(self, source: int, target: int, count: int, dtype: str, operation: str) -> None:
        self._put("allReduce", source, target, count, TYPES[dtype], OPERATIONS[operation])

    def all_gather(self, source: int, target: int, nbytes: int) -> None:
        self._put("allGather", source, target, nbytes, BYTES)

    def reduce_scatter(self, source: int, target: int, count: int, dtype: str) -> None:
        self._put("reduceScatter", source, target, count, TYPES[dtype], OPERATIONS["psum"])

    def send(self, source: int, nbytes: int, peer: int) -> None:
        self._put("send", source, nbytes, BYTES, peer)

    def receive(self, target: int, nbytes: int, peer: int) -> None:
        self._put("recv", target, nbytes, BYTES, peer)


@contextlib.contextmanager
def failing() -> Generator[Any]:
    """NCCL, whose failures are raised as ``DeviceError``."""
    from cupy_backends.cuda.libs import nccl

    try:
        yield nccl
    except nccl.NcclError as e:
        raise DeviceError(f"NCCL failed: {e}") from e


def connect(runtimes: Sequence[Any]) -> list[NcclCommunicator]:
    with failing() as nccl:
        ends = nccl.NcclCommunicator.initAll([r.number for r in runtimes])
    return [NcclCommunicator(r, end) for r, end in zip(runtimes, ends, strict=True)]


def identity() -> bytes:
    with failing() as nccl:
        return json.dumps(nccl.get_unique_id()).encode()


def join(runtimes: Sequence[Any], places: Sequence[int], size: int, identity: bytes) -> list[NcclCommunicator]:
    """The GPUs of this process as members of a connection of several processes; all of them must call it."""
    ends: list[NcclCommunicator] = []
    with failing() as nccl:
        nccl.groupStart()
        for runtime, place in zip(runtimes, places, strict=True):
            with runtime.current():
                ends.append(NcclCommunicator(runtime, nccl.NcclCommunicator(size, tuple(json.loads(identity)), place)))
        nccl.groupEnd()
    return ends


@cache
def why_missing() -> str | None:
    return toolkits.why_missing("cupy_backends.cuda.libs.nccl", "NCCL", "nvidia-nccl-cu12")


# NCCL's extrema of floats drop NaN, NumPy's and ours don't: those are left to the host.
NCCL = CommunicationLibrary(
    "NCCL", why_missing, connect, frozenset(TYPES), frozenset(INTEGERS), identity=identity, join=join
)
