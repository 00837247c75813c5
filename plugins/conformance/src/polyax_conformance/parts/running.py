"""Runs one kernel: by a function, on a platform, or by what it means. Each operand has guards around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import polyax
from polyax.backend import CompileOptions, ShapedArray
from polyax_kernels.api.emitters import Kernel, NumpyEmitter, Schedule, emit_kernel
from polyax_kernels.api.plans import Journal, KernelBackend, KernelStep, Plan, Ref

GUARD = 64
"""Bytes around each operand that nobody may write to: as much as plans align memory by."""
UNTOUCHED = 0xA5
BYTE = np.dtype("uint8")


class GuardedMemory:
    """An array of one dimension between bytes that must stay as they are."""

    def __init__(self, x: np.ndarray) -> None:
        self.raw = np.full(x.nbytes + 2 * GUARD, UNTOUCHED, BYTE)
        self.array = self.raw[GUARD : GUARD + x.nbytes].view(x.dtype)
        self.array[...] = x.reshape(-1)

    @property
    def whole(self) -> bool:
        """Whether nobody wrote to the guards."""
        return bool((self.raw[:GUARD] == UNTOUCHED).all() and (self.raw[-GUARD:] == UNTOUCHED).all())


RunKernel = Callable[[Kernel, Sequence[np.ndarray], Sequence[int]], object]
"""Runs a kernel on arrays of one dimension, one for each operand that isn't scratch, with scalars; changes those that
it writes."""
Launch = Callable[[Kernel, Sequence[GuardedMemory], Sequence[int]], object]


def by_function(run: RunKernel) -> Launch:
    return lambda kernel, memories, scalars: run(kernel, [m.array for m in memories], scalars)


def by_platform(name: str) -> Launch:
    """As the platform runs a plan of one step, all of whose memory is the kernel's to write to."""
    backend = kernel_backend(name)
    device = backend.devices()[0]

    def launch(kernel: Kernel, memories: Sequence[GuardedMemory], scalars: Sequence[int]) -> None:
        plan = plan_of(kernel, memories, scalars)
        executable = backend.compile_plan(plan, CompileOptions(device, name="check_emitter"), Journal())
        outs, _ = executable.launch([backend.to_device(m.raw, device) for m in memories], device.queue)
        for memory, out, aval in zip(memories, outs, plan.results, strict=True):
            memory.raw[...] = backend.to_host(out, aval)

    return launch


def plan_of(kernel: Kernel, memories: Sequence[GuardedMemory], scalars: Sequence[int]) -> Plan:
    every = range(len(memories))
    avals = tuple(ShapedArray(m.raw.shape, BYTE) for m in memories)
    step = KernelStep(kernel, tuple(Ref(n, GUARD) for n in every), tuple(scalars), sum(m.raw.nbytes for m in memories))
    return Plan(avals, (), 0, (), [step], tuple(every), avals, overwritten=frozenset(every))


def kernel_backend(name: str) -> KernelBackend:
    """The backend of a platform.

    Raises:
      TypeError: it isn't made of kernels.
      RuntimeError: it can't be used.
    """
    backend: Any = polyax.devices(name)[0].client
    if not isinstance(backend, KernelBackend):
        raise TypeError(f"{name} isn't made of kernels; parts of others are checked by `python -m polyax check {name}`")
    return backend


def interpret(kernel: Kernel, arrays: Sequence[np.ndarray], scalars: Sequence[int]) -> None:
    """What a kernel means."""
    extent: Any = kernel.grid[0].extent if kernel.grid else 1
    stop = extent if isinstance(extent, int) else scalars[extent.attr]
    with np.errstate(all="ignore"):
        emit_kernel(kernel, Schedule(), NumpyEmitter(kernel, arrays, scalars), np.asarray(0), np.asarray(stop))
