"""What convolutions that read arrays where they lie are told of their dimensions, and which elements of a window see
the operand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from polyax.ir.aval import ShapedArray
from polyax_cpu.convolutions.planes import SPATIAL
from polyax_cpu.convolutions.tiles import strides
from polyax_cpu.llvm import IrValue


class WindowDimension(NamedTuple):
    """One spatial dimension: its places, and how far apart neighbours are in the memory of each array."""

    places: int = 1
    source: int = 1
    low: int = 0
    stride: int = 1
    dilation: int = 1
    window: int = 1
    source_by: int = 0
    window_by: int = 0
    result_by: int = 0


@dataclass(frozen=True)
class Windowed:
    """A convolution for its native function, which counts ``extent`` parts of it. ``kind``: which function that is."""

    shape: tuple[int, ...]
    scalars: tuple[int, ...]
    extent: int
    flops: int
    kind: Any


def along(avals: Sequence[ShapedArray], out: ShapedArray, params: Mapping[str, Any]) -> list[WindowDimension]:
    """The spatial dimensions of a convolution, as they lie in memory."""
    (lhs, rhs), (at, of, to) = (a.shape for a in avals), params["dimension_numbers"]
    source, window, result = map(strides, (lhs, rhs, out.shape))
    return [
        WindowDimension(out.shape[k], lhs[i], low, stride, dilation, rhs[j], source[i], window[j], result[k])
        for i, j, k, (low, _), stride, dilation in zip(
            at[2:], of[2:], to[2:], params["padding"], params["window_strides"], params["rhs_dilation"], strict=True
        )
    ]  # fmt: skip


def flat(numbers: Sequence[int], along: Sequence[WindowDimension]) -> tuple[int, ...]:
    """The scalars of a native function: its own numbers, then those of each dimension; missing ones have one place."""
    dimensions = [WindowDimension()] * (SPATIAL - len(along)) + [*along]
    return tuple(int(n) for record in (numbers, *dimensions) for n in record)


def told(scalars: IrValue, kind: Any) -> tuple[Any, list[Any]]:
    """In code: the numbers that ``flat`` wrote, as a ``kind`` and as dimensions."""
    b, numbers = scalars.b, iter(range(len(kind._fields) + SPATIAL * len(WindowDimension._fields)))
    load = lambda kind: kind._make(b.load(b.at(scalars, next(numbers), "i64"), "i64") for _ in kind._fields)
    return load(kind), [load(WindowDimension) for _ in range(SPATIAL)]


def inside(first: IrValue, d: Any) -> tuple[IrValue, IrValue]:
    """From which element of the window on, and before which, it sees the operand, if its first one is at ``first``."""
    b, zero = first.b, first.like(0)
    before = lambda end: b.intrinsic("smax", end - first + d.dilation - 1, zero) / d.dilation
    return before(zero), b.intrinsic("smin", before(d.source), d.window)
