"""Convolutions of each channel alone, where channels are together in memory: these are the lanes of vectors.

Planes are as for other convolutions, but their places have some channels instead of one element.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax_cpu import compiler, machine_code
from polyax_cpu.libraries import planes
from polyax_cpu.libraries.blocks import BlockKind
from polyax_cpu.libraries.plane_code import PartAt, PlaneRow, between, convolve, plane_rows
from polyax_cpu.libraries.planes import SPATIAL, By, Planes, Shapes, SumBlock
from polyax_cpu.llvm import IrValue, Module

CHANNELS = 64
"""Of a part, at most."""
PLACES = 8
"""That are summed side by side."""


def described(avals: Sequence[ShapedArray], params: Mapping[str, Any], lanes: int) -> Planes:
    shapes, flops = Shapes(avals, params), 0
    channels, flops = shapes.groups, shapes.flops
    width = min(CHANNELS, -(-channels // lanes) * lanes)
    shapes.groups, shapes.channels, shapes.features = -(-channels // width), width, channels
    shapes.by_source, shapes.by_result = (By(by.item, width, 1) for by in (shapes.by_source, shapes.by_result))
    work = planes.described(shapes, SumBlock(1, 1), avals[0].dtype.itemsize)
    return Planes(work.shape, 1, (True, True), work.scalars, work.extent, flops)


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any], lanes: int) -> str | None:
    """Why a convolution isn't one of these, if so."""
    if (reason := planes.why_no_windows(avals, params)) is not None:
        return reason
    shapes = Shapes(avals, params)
    if shapes.together != (True, True) or shapes.channels * shapes.features > 1:
        return "channels aren't alone, or not together"
    if max(*params["window_strides"], *params["lhs_dilation"]) > 1:
        return "most of planes would be seen by few elements of the window"
    return None if 2 * shapes.groups >= lanes else f"{shapes.groups} channels are few for vectors of {lanes}"


@functools.cache
def function(type: str) -> compiler.LoadedCode:
    """``convolve(operand, weights, result; scalars, begin, end)``; the channels of weights are together, too."""
    module = Module(["convolve"])
    kind = BlockKind(type, 1, True, True)
    convolve(module, type, lambda part: _compute(kind, part))
    return machine_code.library(module.text(), ["convolve"], {}, level=1)


def _compute(kind: BlockKind, part: PartAt) -> None:
    b, told = part.planes.b, part.told
    width, every = told.channels, told.features
    left = b.intrinsic("smin", width, every - part.group * width)
    _read(kind, part, left)
    (by0, by1, by2), (_, n1, n2) = told.each("result_by"), told.each("length")
    weights = kind.at(part.weights, part.group * width)
    count0, count1, count2 = part.counts
    with b.loop(0, count0) as i0, b.loop(0, count1) as i1, b.loop(0, count2, step=PLACES) as i2:
        at = kind.at(part.planes, ((i0 * n1 + i1) * n2 + i2) * width)
        to = kind.at(part.result, i0 * by0 + i1 * by1 + i2 * by2)
        with b.loop(0, left, step=kind.lanes) as c:
            some = between(b, c, kind.lanes, c, left)
            found = _sums(kind, part, kind.at(at, c), (kind.at(weights, c), some))
            for n, x in enumerate(found):
                with b.when(i2 + n < count2):
                    b.store_lanes(x, kind.at(to, by2 * n + c), some)


def _read(kind: BlockKind, part: PartAt, left: IrValue) -> None:
    """Place after place; what is behind the last channel isn't used."""
    b, told = part.planes.b, part.told
    width, length, step = told.channels, told[2].length, told[2].stride * told[2].source_by
    whole, zero = left & -kind.lanes, b.splat(b.const(0.0, kind.type), kind.lanes)
    some = between(b, whole, kind.lanes, whole, left)

    def copy(r: PlaneRow) -> None:
        for start, stop in ((length.like(0), r.begin), (r.end, length)):
            with b.loop(start * width, stop * width, step=kind.lanes) as i:
                b.store_lanes(zero, kind.at(r.target, i), None)
        with b.loop(r.begin, r.end) as i:
            source, target = kind.at(r.source, i * step), kind.at(r.target, i * width)
            with b.loop(0, whole, step=kind.lanes) as c:
                b.store_lanes(kind.load(kind.at(source, c)), kind.at(target, c), None)
            with b.when(whole < left):
                b.store_lanes(kind.load(kind.at(source, whole), some), kind.at(target, whole), None)

    plane_rows(kind.type, part.source, part.planes, told, part.firsts, copy, width)


def _sums(kind: BlockKind, part: PartAt, at: IrValue, weights: tuple[IrValue, IrValue]) -> Sequence[IrValue]:
    """Of neighbouring places, for a vector of channels."""
    b, told = at.b, part.told
    width, every, window, zero = told.channels, told.features, told.rest(SPATIAL), b.const(0, "i64")
    first, some = weights

    def element(t: IrValue, carries: list[IrValue]) -> Sequence[IrValue]:
        offset, tap = (b.load(b.at(window, t * 2 + n, "i64"), "i64") for n in range(2))
        weight, place = kind.load(kind.at(first, tap * every), some), kind.at(at, offset * width)
        seen = (kind.load(kind.at(place, width * n)) for n in range(PLACES))
        return [b.intrinsic("fma", x, weight, old) for x, old in zip(seen, carries, strict=True)]

    none = b.splat(b.const(0.0, kind.type), kind.lanes)
    return b.carry(zero, told.taps, [none] * PLACES, element)
