"""Kernels under NumPy: the living definition of what they mean, and the oracle for emitters of code.

The first grid axis is one array operation, all other loops are Python's: correct first, fast never.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax_kernels.emit.emitter import Emitter
from polyax_kernels.emit.walker import emit_kernel
from polyax_kernels.ir import scalars
from polyax_kernels.ir.kernel import Kernel, Schedule

Array = np.ndarray


class NumpyEmitter(Emitter[Array]):
    """Runs while it is being walked. ``buffers``: the arrays of the operands that aren't local, one-dimensional."""

    def __init__(self, kernel: Kernel, buffers: Sequence[Array], params: Sequence[Any] = ()) -> None:
        arguments = iter(buffers)
        self.memory = {n: next(arguments) for n, o in enumerate(kernel.operands) if o.role != "local"}
        self.params = params
        self.scratch: list[tuple[int, np.dtype, int]] = []
        self.points: Array = np.zeros((), np.int64)
        """The numbers of the points that are computed at once; each has a column in local memory."""

    def supports(self, name: str, dtype: np.dtype) -> bool:
        return True

    def const(self, value: Any, dtype: np.dtype) -> Array:
        return np.asarray(value, dtype)

    def param(self, position: int, dtype: np.dtype) -> Array:
        return np.asarray(self.params[position], dtype)

    def op(self, name: str, dtype: np.dtype, *args: Array) -> Array:
        return scalars.evaluate(name, *args)

    def cast(self, x: Array, source: np.dtype, target: np.dtype) -> Array:
        return scalars.cast(x, target)

    def bitcast(self, x: Array, source: np.dtype, target: np.dtype) -> Array:
        return np.ascontiguousarray(x).view(target).reshape(np.shape(x))

    def _at(self, slot: int, offset: Array) -> Any:
        return (offset, self.points) if self.memory[slot].ndim == 2 else offset

    def load(
        self, slot: int, offset: Array, dtype: np.dtype, mask: Array | None = None, other: Array | None = None
    ) -> Array:
        if mask is None:
            return np.asarray(self.memory[slot][self._at(slot, offset)])
        assert other is not None
        if not self.memory[slot].size:
            assert not mask.any(), "a load from an empty operand"
            return np.broadcast_to(other, np.broadcast_shapes(other.shape, mask.shape))
        return np.where(mask, self.memory[slot][self._at(slot, np.where(mask, offset, 0))], other)

    def store(self, slot: int, offset: Array, value: Array, dtype: np.dtype, mask: Array | None = None) -> None:
        inside = np.asarray(True) if mask is None else mask
        inside, offset, value, points = np.broadcast_arrays(inside, offset, value, self.points)
        at = (offset[inside], points[inside]) if self.memory[slot].ndim == 2 else offset[inside]
        self.memory[slot][at] = value[inside]

    def loop(self, start: Array, stop: Array, body: Callable[[Array], None], *, hint: str = "") -> None:
        first, last = int(start), int(stop)
        if "parallel" not in hint:
            for i in range(first, last):
                body(np.asarray(i, np.int64))
        elif first < last:
            self._at_once(np.arange(first, last), body)

    def _at_once(self, indices: Array, body: Callable[[Array], None]) -> None:
        self.points = indices - indices[0]
        for slot, dtype, size in self.scratch:
            self.memory[slot] = np.zeros((size, len(indices)), dtype)
        body(indices)

    def fold(
        self,
        stop: Array,
        inits: Sequence[Array],
        dtypes: Sequence[np.dtype],
        body: Callable[[Array, Sequence[Array]], Sequence[Array]],
        *,
        combines: Sequence[str] = (),
        hint: str = "",
    ) -> Sequence[Array]:
        carries = inits
        for i in range(int(stop)):
            carries = body(np.asarray(i, np.int64), carries)
        return carries

    def local(self, slot: int, dtype: np.dtype, size: int) -> None:
        self.scratch.append((slot, dtype, size))
        self.memory[slot] = np.zeros(size, dtype)

    def barrier(self) -> None:
        pass


def run(kernel: Kernel, buffers: Sequence[Array], params: Sequence[Any] = (), schedule: Schedule | None = None) -> None:
    """Runs ``kernel`` on arrays, one for each operand that isn't local; those with role out and inout are changed.

    Raises:
      IndexError: a load or store leaves its operand.
    """
    flat = [b.reshape(-1) for b in buffers]
    emitter = NumpyEmitter(kernel, flat, params)
    extent = kernel.grid[0].extent if kernel.grid else 1
    stop = extent if isinstance(extent, int) else params[extent.attr]
    emit_kernel(kernel, schedule or Schedule(), emitter, np.asarray(0), np.asarray(stop))
