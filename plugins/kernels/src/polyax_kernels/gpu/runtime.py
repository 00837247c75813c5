"""What the generic GPU path asks of one device: memory, transfers, compiled functions and launches. All of it is here.

A runtime knows its vendor's library and nothing of kernels, plans or arrays. Its calls come from any thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir.errors import PolyaxRuntimeError
from polyax.runtime.contract.probes import Stamp, declare
from polyax_kernels.ir.limits import Limits
from polyax_kernels.run.shortage import OutOfMemory


class DeviceError(PolyaxRuntimeError):
    """The device failed: it was lost, or refused what it was asked for. The text names it."""


class DeviceOutOfMemory(DeviceError, OutOfMemory):
    """The device has no memory for it."""


class KernelRejected(DeviceError):
    """The vendor's compiler refused a program; the text holds its log and the program."""

    def __init__(self, device: str, log: str, source: str) -> None:
        super().__init__(f"the compiler of {device} rejected a kernel:\n{log.strip()}\nThe program:\n{source}")
        self.log = log
        self.source = source


class Mark(ABC):
    """A point in a device's queue."""

    __slots__ = ()

    @abstractmethod
    def done(self) -> bool:
        """Whether everything before this point has ended, well or not."""

    @abstractmethod
    def wait(self) -> None:
        """Returns when everything before this point has ended.

        Raises:
          DeviceError: some of it failed.
        """


class EventMark(Mark):
    """An event with ``done`` and ``synchronize``, of a runtime whose ``current()`` turns ``failures`` into errors."""

    __slots__ = ("event", "failures", "runtime")

    def __init__(self, runtime: Any, event: Any, failures: tuple[type[Exception], ...]) -> None:
        self.runtime = runtime
        self.event = event
        self.failures = failures

    def done(self) -> bool:
        """On a lost device everything has ended: ``wait`` tells how."""
        try:
            return self.event.done
        except self.failures:
            return True

    def wait(self) -> None:
        with self.runtime.current():
            self.event.synchronize()


class Runtime(ABC):
    """One device. Work is put into its queue and runs in the order of the calls; only ``read``, ``Mark.wait`` and
    ``synchronize`` block. Memory is whatever ``allocate`` returns: when nobody refers to it any more it may be used
    for other work put into the queue later, which the order makes safe.

    Failures of the vendor's library are raised as ``DeviceError``, with the vendor's text.
    """

    kind: str
    """What the device is called: ``Device.device_kind``."""
    limits: Limits
    """The numbers that the vendor's library gives; what ``gpu/schedule.py`` decides by."""
    timed = False
    """Whether a trace is taken, which may ask for ``stamp``."""

    @abstractmethod
    def allocate(self, nbytes: int) -> Any:
        """Memory of at least one byte, with any contents, aligned to 64 bytes.

        Raises:
          MemoryError: there is none. (Who calls says what is live.)
        """

    @abstractmethod
    def write(self, target: Any, offset: int, host: np.ndarray) -> None:
        """Copies ``host`` (C-contiguous) to ``target``; the caller may change it afterwards."""

    @abstractmethod
    def read(self, source: Any, offset: int, host: np.ndarray) -> None:
        """Fills ``host`` (C-contiguous); waits for everything before."""

    @abstractmethod
    def copy(self, source: Any, source_offset: int, target: Any, target_offset: int, nbytes: int) -> None:
        """Copies between two places that don't overlap, on this device."""

    def copy_from(self, peer: Runtime, source: Any, target: Any, nbytes: int) -> None:
        """Copies the first ``nbytes`` of ``source``, memory of ``peer``, to ``target``; without this, by the host."""
        host = np.empty(nbytes, np.uint8)
        peer.read(source, 0, host)
        self.write(target, 0, host)

    @abstractmethod
    def load(self, source: str, name: str) -> Any:
        """The function ``name`` of the program ``source``, compiled.

        Raises:
          KernelRejected: the compiler doesn't accept it.
        """

    joins: bool = False
    """Whether a compiler that takes long to begin makes several functions sooner together than one by one: then it has
    the next function."""

    def load_all(self, source: str, names: Sequence[str]) -> Sequence[Any]:
        """The functions ``names`` of one program, compiled at once.

        Raises:
          KernelRejected: the compiler doesn't accept it.
        """
        raise NotImplementedError(f"{self.kind} compiles functions one by one")

    @abstractmethod
    def launch(
        self,
        function: Any,
        groups: tuple[int, ...],
        threads: tuple[int, ...],
        operands: Sequence[tuple[Any, int]],
        scalars: Sequence[int],
    ) -> None:
        """Starts ``function`` on ``groups`` groups of ``threads`` threads each, along one to three dimensions.

        ``operands``: memory and byte offset of each; ``scalars``: values of int64. Both in the order in which the
        backend's emitter declares them in ``signature``.
        """

    records: bool = False
    """Whether the device can start many launches and copies at once: then it has the next three functions."""

    def address(self, memory: Any) -> int:
        """Where ``memory`` begins."""
        raise NotImplementedError(f"{self.kind} can't record work")

    def record(self, work: Callable[[], None]) -> Any:
        """The launches and copies that ``work`` makes; none of them happens."""
        raise NotImplementedError(f"{self.kind} can't record work")

    def replay(self, recording: Any) -> None:
        """Puts what was recorded into the queue, for the same memory."""
        raise NotImplementedError(f"{self.kind} can't record work")

    @abstractmethod
    def mark(self) -> Mark:
        """The point in the queue after everything that was put there so far."""

    def stamp(self) -> Stamp | None:
        """The same for traces, which ask later when the device came to it. None: it doesn't know; they wait instead."""
        return None

    @abstractmethod
    def synchronize(self) -> None:
        """Returns when the queue is empty; errors stay with their marks."""

    def memory_stats(self) -> dict[str, int]:
        """What the vendor's library knows, under JAX's names (``bytes_limit``, ``bytes_reserved``, ...)."""
        return {}


declare(Runtime, "timed", lambda *_: True)
