"""``HostKernelBackend``: a kernel backend whose devices are virtual devices of the host, with NumPy memory.

A subclass turns a kernel into a function of the host ABI,
``void k(void **buffers, const int64_t *scalars, int64_t begin, int64_t end)``,
and may turn whole plans into native code instead.
"""

from __future__ import annotations

import ctypes
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.engines.host import LIBRARY
from polyax.ir.aval import ShapedArray
from polyax.ir.blame import expected
from polyax.ir.config import config
from polyax.ir.errors import PluginError
from polyax.reference.rules_together import in_order
from polyax.runtime.contract.backend import Buffer, CompileOptions, Device, Executable, Queue, Token
from polyax.runtime.contract.collectives import Axes, Group
from polyax.runtime.contract.host_devices import host_devices
from polyax.runtime.contract.queue import HELP_COST, INLINE_COST, queue_of
from polyax_kernels.backend import KernelBackend
from polyax_kernels.emit.schedule import choose
from polyax_kernels.host.meeting import Arrays, Meeting, by_turns, calls_users, meets, shared, takes_turns
from polyax_kernels.host.threads import parallel_for
from polyax_kernels.ir.kernel import Kernel
from polyax_kernels.ir.keys import structural_key
from polyax_kernels.lower import cumulative, widened
from polyax_kernels.lower.lowering import CallContext, Family
from polyax_kernels.plan.journal import Journal
from polyax_kernels.plan.plan import CallStep, ControlStep, CopyStep, KernelStep, Plan, Step
from polyax_kernels.run.control import control_runner
from polyax_kernels.run.executable import PlanExecutable, Runner
from polyax_kernels.run.memory import EXPORTED, GuardedShelf, Memory, Pool, Promised, Shelf, Window, foreign, whole

FAMILY = {**widened.LOWERINGS, **cumulative.lowerings(long=1 << 13, rows=8)}
"""Running values of rows too few to be computed side by side are those of chunks."""
PARALLEL_COST = 200_000
"""Kernels of fewer scalar operations or bytes run on one thread."""

Function = Callable[[Any, Any, int, int], Any]
"""A kernel of the host ABI; called with a ctypes array of pointers, one of int64, begin and end."""

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
"""The ctypes prototype of the host ABI; calls release the interpreter's lock."""


class HostKernelBackend(KernelBackend):
    """Devices, memory and launches on the host."""

    library = LIBRARY

    def __init__(self, name: str, kind: str = "cpu") -> None:
        super().__init__(name)
        self.pool = Pool(name)
        self._kernels: dict[str, Function] = {}
        self._lock = threading.RLock()
        self._devices = host_devices(self, kind)

    def family_lowerings(self) -> Family:
        return FAMILY

    @abstractmethod
    def compile_function(self, kernel: Kernel) -> Function:
        """The kernel as a function of the host ABI, made by ``FUNCTION(address)``; it must keep its code alive."""

    def compiled(self, kernel: Kernel) -> Function:
        """``compile_function`` of a kernel in canonical form; each distinct one is compiled once."""
        key = structural_key(kernel)
        found = self._kernels.get(key)
        if found is None:
            with self._lock:
                if key not in self._kernels:
                    made = self.compile_function(kernel)
                    self._kernels[key] = expected(made, Callable, "compile_function gave", "a function of the host ABI")
                found = self._kernels[key]
        return found

    def devices(self) -> Sequence[Device]:
        return self._devices

    def empty(self, nbytes: int, device: Device) -> Memory:
        return self.pool.empty(nbytes)

    def to_device(self, host: np.ndarray, device: Device) -> Memory:
        if reason := self.why_no_dtype(host.dtype):
            raise TypeError(f"{device}: {reason}")
        memory = self.pool.empty(host.nbytes)
        memory.array(host.shape, host.dtype)[...] = host
        return memory

    def adopt(self, host: np.ndarray, device: Device) -> Memory | None:
        return foreign(host, self.pool)

    def to_host(self, buffer: Buffer, aval: ShapedArray) -> np.ndarray:
        assert isinstance(buffer, Memory)
        buffer.wait()
        buffer.seen = EXPORTED
        view = buffer.array(aval.shape, aval.dtype)
        view.flags.writeable = False
        return view

    def copy(self, buffer: Buffer, aval: ShapedArray, source: Device, target: Device) -> Buffer:
        """The devices share the host's memory."""
        if source.backend is not self or source is target:
            return super().copy(buffer, aval, source, target)
        assert isinstance(buffer, Memory)
        buffer.share()
        return buffer

    def twin(self, device: Device) -> Device:
        """Launches of any device may share the memory of a program's literals."""
        return self._devices[0]

    def synchronize(self, device: Device) -> None:
        device.queue.synchronize()

    def memory_stats(self, device: Device) -> dict[str, int] | None:
        return self.pool.stats()

    def compile_plan(self, plan: Plan, options: CompileOptions, journal: Journal) -> Executable:
        return HostExecutable(self, plan, options, journal)


class HostExecutable(PlanExecutable):
    """Steps are run on NumPy memory."""

    def __init__(self, backend: HostKernelBackend, plan: Plan, options: CompileOptions, journal: Journal) -> None:
        device = options.device
        self.context = CallContext(device)
        self.queue = queue_of(device)
        super().__init__(backend, plan, options, journal)
        self.takes_turns = takes_turns(plan)
        self.calls_users = calls_users(plan)

    def run_members(self, every: Sequence[Sequence[Any]], copies: Sequence[tuple[Any, Any]], axes: Axes) -> None:
        """Between two collectives a member runs in one thread; long programs are shared by several."""
        for source, target in copies:
            self.duplicate(source, target)
        alone = self.calls_users or self.cost * len(every) <= INLINE_COST
        group = Group(axes)
        group.what = self.name
        by_turns(self.steps, every, group, in_order if alone else shared)

    def launch_members(self, members: Sequence[Sequence[Any]], queue: Queue, axes: Axes) -> Any:
        """What calls users runs on the queue's thread, so that their errors are those of the results."""
        return super().launch_members(members, _Later(queue) if self.calls_users else queue, axes)

    def shelf(self, nbytes: int) -> Shelf:
        return self.backend.pool.shelf(nbytes)

    def fresh(self) -> list[Any]:
        return [Promised(shelf) for shelf in self.shelves] if self.queue.tasks else super().fresh()

    def duplicate(self, source: Memory, target: Memory) -> None:
        target.data[...] = source.data

    def window(self, base: Any, offset: int) -> Window:
        return Window(base, offset)

    def peek(self, base: Any, offset: int, dtype: np.dtype) -> Any:
        return base.array((), dtype, offset)[()]

    def runner(self, step: Step) -> Runner:
        if isinstance(step, CopyStep):
            return _copier(step)
        if isinstance(step, CallStep):
            arrays = _arrays(step)
            called = _caller(step, self.context, arrays)
            return Meeting(step, arrays, called) if meets(step) else called
        if isinstance(step, ControlStep):
            return control_runner(self, step)
        return _launcher(step, self.backend.compiled(step.kernel))


_MARK = np.frombuffer(b"unfilled", np.uint8)


class _Later(Queue):
    """A queue that runs nothing in the calling thread."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue

    def run(self, work: Callable[[], None], inputs: Sequence[Buffer], cost: int) -> Token | None:
        return self.queue.run(work, inputs, max(cost, HELP_COST + 1))

    def synchronize(self) -> None:
        self.queue.synchronize()


def _copier(step: CopyStep) -> Runner:
    (source, target), nbytes = (step.source, step.target), step.nbytes

    def run(bases: Sequence[Memory]) -> None:
        to = bases[target.base].data[target.offset : target.offset + nbytes]
        to[...] = bases[source.base].data[source.offset : source.offset + nbytes]

    return run


def _arrays(step: CallStep) -> Arrays:
    """Library calls see NumPy arrays; where there are checks, they can't write to operands."""
    outs = [(r.base, r.offset, a.shape, a.dtype) for r, a in zip(step.outs, step.out_avals, strict=True)]
    args = [(r.base, r.offset, a.shape, a.dtype) for r, a in zip(step.args, step.arg_avals, strict=True)]

    def arrays(bases: Sequence[Memory]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        return (
            [bases[b].array(shape, dtype, offset) for b, offset, shape, dtype in outs],
            [bases[b].array(shape, dtype, offset) for b, offset, shape, dtype in args],
        )

    def protected(bases: Sequence[Memory]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        results, operands = arrays(bases)
        for x in operands:
            x.flags.writeable = False
        return results, operands

    return protected if config.checks else arrays


def _caller(step: CallStep, context: CallContext, arrays: Arrays) -> Runner:
    ready = step.lowering.ready(context, step.out_avals, step.arg_avals, step.params)

    def run(bases: Sequence[Memory]) -> None:
        ready(*arrays(bases))

    def checked(bases: Sequence[Memory]) -> None:
        outs, args = arrays(bases)
        marked = _mark(outs, args)
        ready(outs, args)
        for n, (x, before) in marked.items():
            if np.array_equal(_bytes(x), before):
                raise PluginError(f"the library call wrote nothing to result {n}: fill outs[{n}], such as by [...] =")

    return checked if config.checks else run


def _mark(outs: Sequence[np.ndarray], args: Sequence[np.ndarray]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Bytes that nobody computes by chance in the memory of results, by number, which isn't that of an operand: what
    was there before may look right."""
    marked: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for n, x in enumerate(outs):
        if x.nbytes >= len(_MARK) and x.flags.c_contiguous and not any(np.may_share_memory(x, y) for y in args):
            marked[n] = x, np.resize(_MARK, x.nbytes)
            _bytes(x)[...] = marked[n][1]
    return marked


def _bytes(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1).view(np.uint8)


def _launcher(step: KernelStep, function: Function) -> Runner:
    places = [(r.base, r.offset) for r in step.operands]
    scalars = (ctypes.c_int64 * max(1, len(step.scalars)))(*step.scalars)
    pointers = ctypes.c_void_p * max(1, len(places))
    extent = rows(step)
    parallel = max(step.bytes_moved, step.flops) > PARALLEL_COST and extent > 1 and choose(step.kernel).parallel > 0

    def run(bases: Sequence[Any]) -> None:
        buffers = pointers(*[bases[b].pointer + offset for b, offset in places])
        if parallel:
            parallel_for(extent, lambda begin, end: function(buffers, scalars, begin, end))
        else:
            function(buffers, scalars, 0, extent)

    return _within_memory(run, [base for base, _ in places]) if config.checks else run


def _within_memory(run: Runner, operands: Sequence[int]) -> Runner:
    """``run`` of a kernel, behind which it is looked at whether that kernel wrote beside its operands."""

    def checked(bases: Sequence[Any]) -> None:
        run(bases)
        for block in {id(b): b for b in (whole(bases[n]) for n in operands)}.values():
            if isinstance(block.shelf, GuardedShelf) and (place := block.shelf.trespass(block.pointer)):
                raise PluginError(
                    f"the kernel wrote to {place}, which belong to none of its operands: an offset that its emitter "
                    "computes is wrong, or its code is. polyax_conformance.parts.check_emitter finds the smallest such"
                )

    return checked


def rows(step: KernelStep) -> int:
    """The extent of the first grid axis; 1 if the grid is empty."""
    if not step.kernel.grid:
        return 1
    extent = step.kernel.grid[0].extent
    return extent if isinstance(extent, int) else step.scalars[extent.attr]
