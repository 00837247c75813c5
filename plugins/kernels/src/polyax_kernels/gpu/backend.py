"""``GpuBackend``: kernels, plans and memory on devices with a queue of their own.

A backend for one vendor's library adds ``runtimes``, one per device, its dialect of ``GpuEmitter``, and lowerings for
the libraries that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from polyax.engines.host import LIBRARY
from polyax.ir.aval import ShapedArray
from polyax.ir.blame import expected
from polyax.ir.errors import PluginError
from polyax.ir.primitive import Primitive
from polyax.runtime.contract.backend import Buffer, CompileOptions, Device
from polyax.runtime.contract.collectives import Axes, Group
from polyax.runtime.contract.processes import Alone, ProcessGroup
from polyax_kernels.backend import KernelBackend
from polyax_kernels.emit.c import program
from polyax_kernels.gpu.collectives import leading
from polyax_kernels.gpu.collectives.communication import CommunicationLibrary, Connections, LibraryGroup
from polyax_kernels.gpu.emitter import GpuEmitter, gpu_function, gpu_source
from polyax_kernels.gpu.executable import GpuExecutable
from polyax_kernels.gpu.host import through_host
from polyax_kernels.gpu.kernels import GpuKernel, KernelTable, Named
from polyax_kernels.gpu.lowerings import LOWERINGS
from polyax_kernels.gpu.memory import GpuBuffer, GpuStore
from polyax_kernels.gpu.queue import GpuQueue
from polyax_kernels.gpu.runtime import Runtime
from polyax_kernels.gpu.schedule import GpuSchedule
from polyax_kernels.ir.kernel import Kernel
from polyax_kernels.ir.limits import Limits
from polyax_kernels.lower.fallback import host_rule
from polyax_kernels.lower.lowering import Call, Family
from polyax_kernels.plan.journal import Journal
from polyax_kernels.plan.plan import KernelStep, Plan, walk_steps


def checked(runtime: Any) -> Runtime:
    """``runtime``, which says what its device is.

    Raises:
      PluginError: it isn't a Runtime, or has no ``kind`` or ``limits``.
    """
    expected(runtime, Runtime, "a device of the backend is", "a Runtime")
    whose = type(runtime).__name__
    expected(getattr(runtime, "kind", None), str, f"{whose}.kind is", "what the device is called")
    expected(getattr(runtime, "limits", None), Limits, f"{whose}.limits is", "its Limits")
    return runtime


class GpuBackend(KernelBackend):
    """What a subclass gives: ``emitter`` or ``write``, and the runtimes in the order of their devices.

    A lowering's ``Call.run(ctx, outs, args, **params)`` gets ``View``s: ``memory, offset`` (in bytes) and ``aval``, and
    ``ctx.runtime``, which it may put work into. Primitives in ``library`` for which there is none go through the host.
    """

    emitter: ClassVar[type[GpuEmitter]] = GpuEmitter
    operands = "device"
    in_host_memory = False
    library = LIBRARY
    communication: ClassVar[CommunicationLibrary | None] = None
    """What collectives between devices go through, if not the host; ``collectives.lowerings`` are for it."""

    def __init__(self, name: str, runtimes: Sequence[Runtime]) -> None:
        super().__init__(name)
        self._connections: dict[tuple[tuple[Device, ...], Axes], Connections] = {}
        self.runtimes = tuple(map(checked, runtimes))
        self.stores = tuple(GpuStore(r, f"{name}:{n} ({r.kind})") for n, r in enumerate(runtimes))
        self.kernels = tuple(KernelTable(r, self.write, self.write_all) for r in runtimes)
        self._devices = tuple(
            Device(self, n, kind=r.kind, queue=GpuQueue(f"{name}:{n}", r)) for n, r in enumerate(runtimes)
        )

    def opened(self) -> None:
        emitter: Any = self.emitter
        if not (isinstance(emitter, type) and issubclass(emitter, GpuEmitter)):
            raise PluginError(f"{type(self).__name__}.emitter is {emitter!r}, not a class derived from GpuEmitter")
        super().opened()

    # --- devices and memory ---

    def devices(self) -> Sequence[Device]:
        return self._devices

    def empty(self, nbytes: int, device: Device) -> GpuBuffer:
        return self.stores[device.local_hardware_id].shelf(nbytes).take()

    def to_device(self, host: np.ndarray, device: Device) -> GpuBuffer:
        if reason := self.runtimes[device.local_hardware_id].limits.why_not(host.dtype):
            raise TypeError(f"{device}: {reason}")
        if host.shape == ():
            return self.stores[device.local_hardware_id].scalar(host)
        buffer = self.empty(host.nbytes, device)
        if host.nbytes:
            self.runtimes[device.local_hardware_id].write(buffer.memory, 0, host)
        return buffer

    def to_host(self, buffer: Buffer, aval: ShapedArray) -> np.ndarray:
        assert isinstance(buffer, GpuBuffer)
        buffer.wait()
        host = np.empty(aval.shape, aval.dtype)
        if host.nbytes:
            buffer.shelf.store.runtime.read(buffer.memory, 0, host)
        host.flags.writeable = False
        return host

    def copy(self, buffer: Buffer, aval: ShapedArray, source: Device, target: Device) -> Buffer:
        """Directly between devices of this backend, if they can."""
        if source.backend is not self:
            return super().copy(buffer, aval, source, target)
        assert isinstance(buffer, GpuBuffer)
        buffer.wait()
        copied = self.empty(aval.nbytes, target)
        here, there = self.runtimes[source.local_hardware_id], self.runtimes[target.local_hardware_id]
        if not aval.nbytes:
            pass
        elif here is there:
            here.copy(buffer.memory, 0, copied.memory, 0, aval.nbytes)
        else:
            there.copy_from(here, buffer.memory, copied.memory, aval.nbytes)
        copied.mark = there.mark()
        return copied

    def synchronize(self, device: Device) -> None:
        device.queue.synchronize()

    def collectives(self, devices: Sequence[Device], axes: Axes, link: ProcessGroup | None = None) -> Group:
        """Through the library, if there is one and anything to connect. Asked by one thread at a time."""
        library = self.communication
        if library is None or len(devices) < 2 or library.why_missing() is not None:
            return super().collectives(devices, axes, link)
        key = tuple(devices), axes
        if key not in self._connections:
            own = {n: self.runtimes[d.local_hardware_id] for n, d in enumerate(devices) if d.is_addressable}
            self._connections[key] = Connections(library, own)
        homes = [0 if link is None else link.ranks.index(d.process_index) for d in devices]
        return LibraryGroup(axes, self._connections[key], homes, link or Alone())

    def memory_stats(self, device: Device) -> dict[str, int] | None:
        return self.stores[device.local_hardware_id].stats()

    @property
    def index_dtype(self) -> np.dtype:
        """The narrowest of its devices."""
        return min((r.limits.index_dtype for r in self.runtimes), key=lambda dtype: dtype.itemsize)

    def why_no_dtype(self, dtype: Any) -> str | None:
        """The reason why no device here has arrays of ``dtype``."""
        reasons = [r.limits.why_not(dtype) for r in self.runtimes]
        return None if None in reasons else f"{self.name}: {reasons[0]}"

    # --- compilation ---

    def write(self, kernel: Kernel, schedule: GpuSchedule) -> str:
        """The text that ``Runtime.load`` takes, with one function ``NAME``: in the dialect of C of ``emitter``. Who
        writes another language says this instead, and gives ``family_lowerings`` of its own, which are in C."""
        return gpu_source(kernel, schedule, self.emitter)

    def write_all(self, named: Named) -> str:
        """The text that ``Runtime.load_all`` takes, with all of these functions: asked of runtimes that ``joins``."""
        return program([gpu_function(kernel, schedule, self.emitter, name) for name, kernel, schedule in named])

    def limits_of(self, device: Device) -> Limits:
        return self.runtimes[device.local_hardware_id].limits

    def family_lowerings(self) -> Family:
        return LOWERINGS if self.communication is None else {**LOWERINGS, **leading.LOWERINGS}

    def host_rule(self) -> Callable[[Primitive], Call | str]:
        choose = host_rule(self.name, self.library)

        def rule(primitive: Primitive) -> Call | str:
            found = choose(primitive)
            return found if isinstance(found, str) else through_host(found)

        return rule

    def compile_plan(self, plan: Plan, options: CompileOptions, journal: Journal) -> GpuExecutable:
        device = options.device
        kernels = self.kernels[device.local_hardware_id]
        kernels.prepare((s.kernel, s.scalars) for s in walk_steps(plan) if isinstance(s, KernelStep))

        def kernel_of(step: KernelStep) -> GpuKernel:
            return kernels.get(step.kernel, step.scalars)

        return GpuExecutable(self, plan, options, journal, self.stores[device.local_hardware_id], kernel_of)

    def source(self, kernel: Kernel) -> str:
        return self.kernels[0].source(kernel)
