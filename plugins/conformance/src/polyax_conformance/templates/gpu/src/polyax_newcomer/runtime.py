"""One device: memory, copies, programs, launches, and waiting for them. Call your driver here, method by method.

Here the processor plays the device: all that is put into its queue has happened when a call returns.
"""

from __future__ import annotations

import ctypes
import itertools
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from polyax.backend import DiskCache
from polyax_kernels.api.gpu import KernelRejected, Mark, Runtime
from polyax_kernels.api.lowerings import REALS, Limits

COMPILER = ["cc", "-std=gnu99", "-O1", "-fwrapv", "-fno-math-errno", "-ffp-contract=off", "-fPIC", "-shared", "-w"]
ALIGNMENT = 64

cache = DiskCache("newcomer")
"""Programs that were compiled by an earlier process."""


class Done(Mark):
    """A point in the queue; usually an event of the driver."""

    def done(self) -> bool:
        return True

    def wait(self) -> None:
        """Raises ``DeviceError`` if something before this point failed."""


class NewcomerRuntime(Runtime):
    """A device; its calls come from any thread."""

    def __init__(self, number: int) -> None:
        self.kind = f"newcomer {number}"
        self.limits = Limits(dtypes=REALS, lanes=1, tile=1, group=1, threads=1, units=1)

    # --- memory ---

    def allocate(self, nbytes: int) -> np.ndarray:
        raw = np.empty(nbytes + ALIGNMENT, np.uint8)
        begin = -raw.ctypes.data % ALIGNMENT
        return raw[begin : begin + nbytes]

    def write(self, target: np.ndarray, offset: int, host: np.ndarray) -> None:
        target[offset : offset + host.nbytes] = host.reshape(-1).view(np.uint8)

    def read(self, source: np.ndarray, offset: int, host: np.ndarray) -> None:
        host.reshape(-1).view(np.uint8)[...] = source[offset : offset + host.nbytes]

    def copy(self, source: Any, source_offset: int, target: Any, target_offset: int, nbytes: int) -> None:
        target[target_offset : target_offset + nbytes] = source[source_offset : source_offset + nbytes]

    # --- programs ---

    def load(self, source: str, name: str) -> Any:
        """The function ``name`` of a program, in the form in which ``launch`` gets it."""
        with tempfile.TemporaryDirectory(prefix="polyax-newcomer-") as folder:
            library = Path(folder, "kernel.so")
            code = cache.get(source)
            if code is None:
                self.compile_to(library, source)
                cache.put(source, library.read_bytes())
            else:
                library.write_bytes(code)
            loaded = ctypes.CDLL(str(library))
        return loaded, loaded[name]

    def compile_to(self, library: Path, source: str) -> None:
        command = [*COMPILER, "-x", "c", "-", "-o", str(library), "-lm"]
        done = subprocess.run(command, input=source, capture_output=True, text=True)
        if done.returncode:
            raise KernelRejected(self.kind, done.stderr, source)

    def launch(
        self,
        function: Any,
        groups: tuple[int, ...],
        threads: tuple[int, ...],
        operands: Sequence[tuple[Any, int]],
        scalars: Sequence[int],
    ) -> None:
        """The arguments are those that the emitter declares: memory and offset of each operand, then the scalars."""
        library, compute = function
        arguments: list[Any] = []
        for memory, offset in operands:
            arguments += [ctypes.c_void_p(memory.ctypes.data), ctypes.c_int64(offset)]
        arguments += [ctypes.c_int64(value) for value in scalars]
        sizes = [*(*threads, 1)[:2], *(*groups, 1)[:2]]
        for x, y, i, j in itertools.product(*map(range, sizes)):
            library.place((ctypes.c_int64 * 8)(x, y, i, j, *sizes))
            compute(*arguments)

    # --- waiting ---

    def mark(self) -> Mark:
        return Done()

    def synchronize(self) -> None:
        """Returns when the queue is empty."""
