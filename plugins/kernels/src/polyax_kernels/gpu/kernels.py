"""KernelTable of one device: each is scheduled, written in the device's language and compiled once."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyax.ir.blame import expected
from polyax_kernels.gpu.emitter import NAME, parameters
from polyax_kernels.gpu.runtime import KernelRejected, Runtime
from polyax_kernels.gpu.schedule import GpuSchedule, choose
from polyax_kernels.ir.expr import consing, remaker
from polyax_kernels.ir.kernel import Kernel, map_kernel
from polyax_kernels.ir.keys import structural_key

Named = Sequence[tuple[str, Kernel, GpuSchedule]]
"""Functions of one program."""


@dataclass(frozen=True)
class GpuKernel:
    function: Any
    """What the runtime launches."""
    schedule: GpuSchedule
    scalars: int
    """How many scalar arguments it takes."""


class KernelTable:
    """All kernels of a device. A kernel that serves all sizes may be compiled several times, with other schedules."""

    def __init__(
        self, runtime: Runtime, write: Callable[[Kernel, GpuSchedule], str], write_all: Callable[[Named], str]
    ) -> None:
        self.runtime = runtime
        self._write = write
        self._write_all = write_all
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

    def prepare(self, wanted: Iterable[tuple[Kernel, Sequence[int]]]) -> None:
        """Kernels that will be asked for, with their scalars: compiled together, where that is sooner done. Of what the
        compiler refuses then, ``get`` says which kernel it is."""
        if not self.runtime.joins:
            return
        with self._lock, contextlib.suppress(KernelRejected):
            scheduled = [(kernel, choose(kernel, self.runtime.limits, scalars)) for kernel, scalars in wanted]
            keyed = {(structural_key(kernel), schedule): kernel for kernel, schedule in scheduled}
            new = {key: kernel for key, kernel in keyed.items() if key not in self._known}
            if len(new) > 1:
                self._load_all(new)

    def _load_all(self, new: Mapping[tuple[str, GpuSchedule], Kernel]) -> None:
        named = [(f"{NAME}{n}", kernel, schedule) for n, ((_, schedule), kernel) in enumerate(new.items())]
        text = expected(self._write_all(named), str, "write_all gave", "the text of a program")
        functions = self.runtime.load_all(text, [name for name, _, _ in named])
        for (key, kernel), function in zip(new.items(), functions, strict=True):
            self._known[key] = GpuKernel(function, key[1], parameters(kernel))

    def source(self, kernel: Kernel) -> str:
        """The program text, for reports, which are made when the compilation's expressions are no longer unique."""
        with consing():
            kernel = map_kernel(kernel, remaker())
            return self._text(kernel, choose(kernel, self.runtime.limits))

    def _text(self, kernel: Kernel, schedule: GpuSchedule) -> str:
        return expected(self._write(kernel, schedule), str, "write gave", "the text of a program")
