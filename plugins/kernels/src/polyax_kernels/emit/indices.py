"""Indices of 32 bits, for languages that have no wider ones or do better with these.

Kernels count in int64. An emitter of 32-bit indices hears int32 in its place: what a kernel means doesn't change, since
devices with such indices take no array that they can't count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from polyax_kernels.emit.emitter import Emitter
from polyax_kernels.ir.dependences import postorder_with_extents
from polyax_kernels.ir.expr import INT
from polyax_kernels.ir.intervals import Intervals, whole
from polyax_kernels.ir.kernel import Kernel, kernel_roots
from polyax_kernels.ir.limits import Limits

T = TypeVar("T")
MANY = np.dtype("uint32")
"""Indices of this type may lie beyond the end of int32, as of every array."""


def index_dtype(kernel: Kernel, limits: Limits) -> np.dtype:
    """What the kernel's indices are computed in: ``limits.index_dtype``, unless the device has int64 and the kernel may
    compute a number in it that isn't an index.

    >>> from polyax_kernels.ir.kernel import Operand, Stage, Store
    >>> from polyax_kernels.ir.expr import Axis, cast, consing, index
    >>> def stores(value):
    ...     store = Store(0, (index(i),), cast(value, np.float32))
    ...     return Kernel((i,), (Stage((), (store,)),), (Operand((9,), np.dtype(np.float32), "out"),))
    >>> with consing():
    ...     i, limits = Axis(9), Limits(index_dtype=np.dtype("int32"))
    ...     [index_dtype(stores(value), limits).name for value in (index(i), index(i) * 10**9)]
    ['int32', 'int64']
    """
    if limits.index_dtype == INT or INT not in limits.dtypes or _fits(kernel, limits.index_dtype):
        return limits.index_dtype
    return INT


def _fits(kernel: Kernel, dtype: np.dtype) -> bool:
    """Whether whatever the kernel computes in int64 surely fits into ``dtype``."""
    if any(operand.dtype == INT for operand in kernel.operands):
        return False
    (least, greatest), intervals = whole(dtype), Intervals()
    nodes = [x for x in postorder_with_extents(kernel_roots(kernel)) if x.dtype == INT]
    return all(least <= low and high <= greatest for low, high in map(intervals, nodes))


class Indices(Emitter[T]):
    """``emitter``, which is given ``dtype`` wherever kernels say int64."""

    def __init__(self, emitter: Emitter[T], dtype: np.dtype) -> None:
        self.emitter = emitter
        self.dtype = dtype
        self.atomic = emitter.atomic

    def of(self, dtype: np.dtype) -> np.dtype:
        return self.dtype if dtype == INT else dtype

    def supports(self, name: str, dtype: np.dtype) -> bool:
        return self.emitter.supports(name, self.of(dtype))

    def const(self, value: Any, dtype: np.dtype) -> T:
        if dtype == INT:
            value = min(max(value, np.iinfo(self.dtype).min), np.iinfo(self.dtype).max)  # bounds of clamps, say
        return self.emitter.const(value, self.of(dtype))

    def param(self, position: int, dtype: np.dtype) -> T:
        return self.emitter.param(position, self.of(dtype))

    def op(self, name: str, dtype: np.dtype, *args: T) -> T:
        return self.emitter.op(name, self.of(dtype), *args)

    def cast(self, x: T, source: np.dtype, target: np.dtype) -> T:
        if target == INT and source == MANY:
            x = self.emitter.op("min", MANY, x, self.emitter.const(np.iinfo(self.dtype).max, MANY))
        source, target = self.of(source), self.of(target)
        return x if source == target else self.emitter.cast(x, source, target)

    def bitcast(self, x: T, source: np.dtype, target: np.dtype) -> T:
        return self.emitter.bitcast(x, source, target)

    def load(self, slot: int, offset: T, dtype: np.dtype, mask: T | None = None, other: T | None = None) -> T:
        return self.emitter.load(slot, offset, dtype, mask, other)

    def store(self, slot: int, offset: T, value: T, dtype: np.dtype, mask: T | None = None) -> None:
        self.emitter.store(slot, offset, value, dtype, mask)

    def some(self, mask: T) -> T:
        return self.emitter.some(mask)

    def accumulate(
        self, slot: int, offset: T, value: T, dtype: np.dtype, mask: T | None, name: str, combined: Callable[[T, T], T]
    ) -> None:
        self.emitter.accumulate(slot, offset, value, dtype, mask, name, combined)

    def loop(self, start: T, stop: T, body: Callable[[T], None], *, hint: str = "") -> None:
        self.emitter.loop(start, stop, body, hint=hint)

    def fold(
        self,
        stop: T,
        inits: Sequence[T],
        dtypes: Sequence[np.dtype],
        body: Callable[[T, Sequence[T]], Sequence[T]],
        *,
        combines: Sequence[str] = (),
        hint: str = "",
    ) -> Sequence[T]:
        return self.emitter.fold(stop, inits, [*map(self.of, dtypes)], body, combines=combines, hint=hint)

    def local(self, slot: int, dtype: np.dtype, size: int) -> None:
        self.emitter.local(slot, dtype, size)

    def transpose(
        self,
        source: int,
        start: T,
        pitch: int,
        target: int,
        side: int,
        dtype: np.dtype,
        sizes: tuple[T, T] | None = None,
    ) -> bool:
        return self.emitter.transpose(source, start, pitch, target, side, dtype, sizes)

    def totals(self, source: int, target: int, side: int, lanes: int, combine: str, dtype: np.dtype) -> bool:
        return self.emitter.totals(source, target, side, lanes, combine, self.of(dtype))

    def warp_barrier(self) -> None:
        self.emitter.warp_barrier()

    def barrier(self) -> None:
        self.emitter.barrier()
