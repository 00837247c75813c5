"""The code of convolutions in planes: copies to planes, sums of blocks of places and features, copies of results.

Knows how many features a block has, and what is together in memory; all else is numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from polyax_cpu import compiler, machine_code
from polyax_cpu.convolutions.plane_code import PartAt, PlaneRow, Told, convolve, plane_rows
from polyax_cpu.convolutions.planes import SPATIAL, SumBlock, WeightNumbers
from polyax_cpu.libraries.registers import Vectors, between, digit, lanes, many
from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.records import FUNCTION_PARAMS
from polyax_cpu.transposes import turned

IN_MANY = {8: (3, 2, 1), 4: (6, 3, 1), 2: (8, 4, 1), 1: (8, 4, 1)}
IN_FEW = {4: (3, 2, 1), 2: (6, 3, 1), 1: (8, 4, 1)}
"""Vectors of places that blocks have, by how many features these have: their sums fill the registers."""
COSTS = {8: 1.0, 4: 1.05, 2: 1.2, 1: 1.8}
"""What a sum takes in such blocks, which share what they read among their features."""


def _widths() -> dict[int, tuple[int, ...]]:
    return IN_MANY if many() else IN_FEW


def of(type: str, count: int) -> SumBlock:
    """What blocks are best for so many features of a group."""
    return SumBlock(min(_widths(), key=lambda n: -(-count // n) * n * COSTS[n]), lanes(type))


@dataclass(frozen=True)
class BlockKind(Vectors):
    """Of which convolutions a function is."""

    features: int
    channels_together: bool
    features_together: bool

    @property
    def widths(self) -> tuple[int, ...]:
        return _widths()[self.features]


@functools.cache
def function(kind: BlockKind) -> compiler.LoadedCode:
    """``convolve(operand, packed weights, result; scalars, begin, end)``, which counts parts of groups of images."""
    module = Module(["convolve"])
    convolve(module, kind.type, lambda part: _compute(kind, part))
    (_read_channels if kind.channels_together else _read_rows)(module, kind)
    (_write_features if kind.features_together and kind.features > 1 else _write_rows)(module, kind)
    for width in kind.widths:
        _block(module, kind, width)
    return machine_code.library(module.text(), ["convolve"], {}, level=1)


POINTERS = [("ptr", "source"), ("ptr", "target"), ("ptr", "scalars")]
READ = [*POINTERS, *(("i64", f"first{n}") for n in range(SPATIAL))]
WRITE = [*POINTERS, ("i64", "features"), ("i64", "rows"), ("i64", "row")]
BLOCK = [*POINTERS, ("ptr", "weights")]


def _compute(kind: BlockKind, part: PartAt) -> None:
    """All blocks of features."""
    told, counts, planes, b = part.told, part.counts, part.planes, part.planes.b
    b.call("void", "read", part.source, planes, part.scalars, *part.firsts)
    sums, (_, rows, row) = kind.at(planes, told.planes), told.each("length")
    blocks, features, by_feature, by_result = told.blocks, told.features, told.result_feature, told[0].result_by
    each, length = told.channels * told.every * kind.features, (counts[1] - 1) * row + counts[2]
    with b.loop(0, blocks) as block:
        first = block * kind.features
        left = b.intrinsic("smin", features - first, first.like(kind.features))
        weights = kind.at(part.weights, (part.group * blocks + block) * each)
        with b.loop(0, counts[0]) as i:
            _sums(b, kind, (kind.at(planes, i * rows * row), sums, part.scalars, weights), length)
            to = kind.at(part.result, first * by_feature + i * by_result)
            b.call("void", "write", sums, to, part.scalars, left, counts[1], counts[2])


# --- sums ------------------------------------------------------------------------------------------------------------


def _sums(b: Builder, kind: BlockKind, args: Sequence[IrValue], length: IrValue) -> None:
    """Widest blocks, and the narrowest one that has what is left."""
    planes, sums, *rest = args

    def block(width: int, place: IrValue) -> None:
        b.call("void", f"block{width}", kind.at(planes, place), kind.at(sums, place), *rest)

    step = kind.widths[0] * kind.lanes
    whole = length / step * step
    with b.loop(0, whole, step=step) as place:
        block(kind.widths[0], place)
    left = length - whole
    for width, less in zip(kind.widths, (*kind.widths[1:], 0), strict=True):
        with b.when((left > less * kind.lanes) & (left <= width * kind.lanes)):
            block(width, whole)


def _block(module: Module, kind: BlockKind, width: int) -> None:
    """``width`` vectors of places for each feature: sums over channels and the window."""
    b = module.function("void", f"block{width}", BLOCK)
    planes, sums, scalars, weights = b.args
    told, zero = Told(scalars), b.const(0, "i64")
    channels, taps, every, plane, by_feature = told.channels, told.taps, told.every, told.plane, told.sums
    window = told.rest(SPATIAL)

    def channel(c: IrValue, carries: list[IrValue]) -> Sequence[IrValue]:
        first, number = kind.at(planes, c * plane), c * every

        def element(t: IrValue, carries: list[IrValue]) -> Sequence[IrValue]:
            offset, tap = (b.load(b.at(window, t * 2 + n, "i64"), "i64") for n in range(2))
            place = kind.at(first, offset)
            seen = [kind.load(kind.at(place, v * kind.lanes)) for v in range(width)]
            w = kind.at(weights, (number + tap) * kind.features)
            each = [b.splat(kind.single(kind.at(w, f)), kind.lanes) for f in range(kind.features)]
            terms = [(x, weight) for weight in each for x in seen]
            return [b.intrinsic("fma", *term, old) for term, old in zip(terms, carries, strict=True)]

        return b.carry(zero, taps, carries, element)

    none = b.splat(b.const(0.0, kind.type), kind.lanes)
    found = b.carry(zero, channels, [none] * (kind.features * width), channel)
    for n, x in enumerate(found):
        feature, v = divmod(n, width)
        b.store_lanes(x, kind.at(kind.at(sums, by_feature * feature), v * kind.lanes), None)
    b.ret()


# --- planes ----------------------------------------------------------------------------------------------------------


def _read_rows(module: Module, kind: BlockKind) -> None:
    """Rows of the operand, or every so manieth element of them."""
    b = module.function("void", "read", READ)
    source, planes, scalars, *firsts = b.args
    told, zero = Told(scalars), b.splat(b.const(0.0, kind.type), kind.lanes)
    by_channel, plane, length = told.source_channel, told.plane, told[2].length
    step = told[2].stride * told[2].source_by

    def copy(r: PlaneRow) -> None:
        with b.when(step.compare("==", 1)), b.loop(0, length, step=kind.lanes) as i:
            mask = between(b, i, kind.lanes, r.begin, r.end)
            b.store_lanes(kind.load(kind.at(r.source, i), mask), kind.at(r.target, i), None)
        with b.when(step.compare("==", 2)), b.loop(0, length, step=kind.lanes) as i:
            masks = [between(b, i * 2 + n, kind.lanes, r.begin * 2, r.end * 2 - 1) for n in (0, kind.lanes)]
            first, second = (kind.load(kind.at(r.source, i * 2 + n * kind.lanes), m) for n, m in enumerate(masks))
            b.store_lanes(b.mixed(first, second, range(0, 2 * kind.lanes, 2)), kind.at(r.target, i), None)
        with b.when(step > 2):
            with b.loop(0, length, step=kind.lanes) as i:
                b.store_lanes(zero, kind.at(r.target, i), None)
            with b.loop(r.begin, r.end) as i:
                b.store(kind.single(kind.at(r.source, i * step)), kind.at(r.target, i))

    with b.loop(0, told.channels) as c:
        plane_rows(kind.type, kind.at(source, c * by_channel), kind.at(planes, c * plane), told, firsts, copy)
    b.ret()


def _read_channels(module: Module, kind: BlockKind) -> None:
    """Squares of places and channels: these are together in the operand's memory."""
    b = module.function("void", "read", READ)
    source, planes, scalars, *firsts = b.args
    told, lanes = Told(scalars), kind.lanes
    channels, plane, length, step = told.channels, told.plane, told[2].length, told[2].stride * told[2].source_by

    with b.loop(0, channels, step=lanes) as c:
        some = between(b, c, lanes, c, channels)

        def copy(r: PlaneRow) -> None:
            with b.loop(0, length, step=lanes) as i:
                places = [i + n for n in range(lanes)]
                masks = [where(b, (place >= r.begin) & (place < r.end), some) for place in places]
                found = [kind.load(kind.at(r.source, p * step), m) for p, m in zip(places, masks, strict=True)]
                for n, vector in enumerate(turned(b, found)):
                    b.store_lanes(vector, kind.at(r.target, i + plane * n), None)

        plane_rows(kind.type, kind.at(source, c), kind.at(planes, c * plane), told, firsts, copy)
    b.ret()


def where(b: Builder, condition: IrValue, mask: IrValue) -> IrValue:
    """The mask if the condition holds, else no lane."""
    return b.select(condition, mask, b.splat(b.const(False, "i1"), mask.lanes))


# --- results ---------------------------------------------------------------------------------------------------------


def _write_rows(module: Module, kind: BlockKind) -> None:
    """Rows of the result; if its places are apart, one element after the other."""
    b = module.function("void", "write", WRITE)
    sums, result, scalars, features, rows, row = b.args
    told = Told(scalars)
    by_feature, by_sums, length, by_row, step = (
        told.result_feature, told.sums, told[2].length, told[1].result_by, told[2].result_by
    )  # fmt: skip
    whole = row & -kind.lanes
    with b.loop(0, features) as f, b.loop(0, rows) as r:
        at, to = kind.at(sums, f * by_sums + r * length), kind.at(result, f * by_feature + r * by_row)
        with b.when(step.compare("==", 1)):
            with b.loop(0, whole, step=kind.lanes) as i:
                b.store_lanes(kind.load(kind.at(at, i)), kind.at(to, i), None)
            with b.when(whole < row):
                mask = between(b, whole, kind.lanes, whole, row)
                b.store_lanes(kind.load(kind.at(at, whole)), kind.at(to, whole), mask)
        with b.when(step.compare("!=", 1)), b.loop(0, row) as i:
            b.store(kind.single(kind.at(at, i)), kind.at(to, i * step))
    b.ret()


def _write_features(module: Module, kind: BlockKind) -> None:
    """Squares of places and features: these are together in the result's memory."""
    b = module.function("void", "write", WRITE)
    sums, result, scalars, features, rows, row = b.args
    told, side, zero = Told(scalars), kind.features, b.const(0, "i64")
    by_row, by_place, by_sums, length = told[1].result_by, told[2].result_by, told.sums, told[2].length
    some = between(b, zero, side, zero, features)
    with b.loop(0, rows) as r, b.loop(0, row, step=side) as i:
        at, to = kind.at(sums, r * length + i), kind.at(result, r * by_row)
        found = [kind.load(kind.at(at, by_sums * f), count=side) for f in range(side)]
        for n, vector in enumerate(turned(b, found)):
            b.store_lanes(vector, kind.at(to, (i + n) * by_place), where(b, i + n < row, some))
    b.ret()


# --- weights ---------------------------------------------------------------------------------------------------------


@functools.cache
def packing(type: str, features: int) -> compiler.LoadedCode:
    """``pack(weights, packed; scalars, begin, end)``, which counts blocks of features; what they lack is zero."""
    module = Module(["pack"])
    b = module.function("void", "pack", FUNCTION_PARAMS)
    buffers, scalars, begin, end = b.args
    weights, result = (b.load(b.at(buffers, n, "ptr"), "ptr") for n in range(2))
    told = Told(scalars, WeightNumbers._fields)
    channels, taps, by_feature, by_channel, offsets = (
        told.channels, told.taps, told.by_feature, told.by_channel, told.rest()
    )  # fmt: skip
    with b.loop(begin, end) as item:
        group, block = digit(item, told.blocks)
        first = block * features
        left, source = told.features - first, b.at(weights, group * told.by_group + first * by_feature, type)
        with b.loop(0, channels) as c, b.loop(0, taps) as t:
            at = b.at(source, c * by_channel + b.load(b.at(offsets, t, "i64"), "i64"), type)
            to = b.at(result, ((item * channels + c) * taps + t) * features, type)
            for f in range(features):
                value = b.load(b.at(at, b.select(left > f, by_feature * f, 0), type), type)
                b.store(b.select(left > f, value, 0.0), b.at(to, f, type))
    b.ret()
    return machine_code.library(module.text(), ["pack"], {}, level=1)
