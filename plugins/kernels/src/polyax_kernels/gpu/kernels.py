"""KernelTable of one device: each is scheduled, written in the device's language and compiled once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polyax.ir.blame import expected
from polyax_kernels.gpu.emitter import NAME, parameters
from polyax_kernels.gpu.runtime import Runtime
from polyax_kernels.gpu.schedule import GpuSchedule, choose
from polyax_kernels.ir.kernel import Kernel
from polyax_kernels.ir.keys import structural_key


@dataclass(frozen=True)
class GpuKernel:
    function: Any
    """What the runtime launches."""
    schedule: GpuSchedule
    scalars: int
    """How many scalar arguments it takes."""


class KernelTable:
    """All kernels of a device. A kernel that serves all sizes may be compiled several times, with other schedules."""

    def __init__(self, runtime: Runtime, write: Callable[[Kernel, GpuSchedule], str]) -> None:
        self.runtime = runtime
        self._write = write
        self._known: dict[tuple[str, GpuSchedule], GpuKernel] = {}
        self._lock = threading.RLock()

    def get(self, kernel: Kernel, scalars: Sequence[int] = ()) -> GpuKernel:
        """The kernel, to be launched with ``scalars``.

        Raises:
          KernelRejected: the vendor's compiler doesn't accept it.
        """
        schedule = choose(kernel, self.runtime.limits, scalars)
        key = structural_key(kernel), schedule
        with self._lock:
            if key not in self._known:
                function = self.runtime.load(self._text(kernel, schedule), NAME)
                self._known[key] = GpuKernel(function, schedule, parameters(kernel))
            return self._known[key]

    def source(self, kernel: Kernel) -> str:
        """The program text, for reports."""
        return self._text(kernel, choose(kernel, self.runtime.limits))

    def _text(self, kernel: Kernel, schedule: GpuSchedule) -> str:
        return expected(self._write(kernel, schedule), str, "write gave", "the text of a program")
