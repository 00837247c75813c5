"""Gradients of convolutions by their weights: convolutions whose window is as large as an image, with few places. For
each of these, and each pair of a channel and a feature, products are added up over all images.

Features are the lanes of vectors, so those of the window are together in memory; channels may lie anywhere. A band of
rows is used for all sums of a thread while it is in the cache.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from polyax.ir.aval import ShapedArray
from polyax.ops.conv import conv_general_dilated_p
from polyax_cpu import compiler, machine_code
from polyax_cpu.convolutions.planes import SPATIAL
from polyax_cpu.convolutions.tiles import strides
from polyax_cpu.convolutions.windows import Windowed, along, flat, inside, told
from polyax_cpu.libraries.registers import Vectors, digit
from polyax_cpu.libraries.sums import SumsKind, add_products, sums_kind
from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.records import FUNCTION_PARAMS

ELEMENTS = 1 << 15
"""Of the rows of the window and the operand that a band has: they stay in a core's cache."""
LONG, DEEP = 4, 512
"""Elements of a row of the window, and of all that is added up, at least."""
MANY = 32
"""Features of a group for which small blocks don't pay."""
OFTEN = 16
"""How often each element of a window is used, at least, if it has to be turned first."""


class FilterNumbers(NamedTuple):
    """What native code is told beside the dimensions."""

    images: int
    band: int
    """Rows at a time."""
    channels: int
    features: int
    groups: int
    source_image: int
    source_channel: int
    window_image: int


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any], lanes: int) -> str | None:
    """Why a convolution isn't one of these, if so."""
    (out,) = conv_general_dilated_p.rule("abstract_eval")(*avals, **params)
    _, rhs, to = params["dimension_numbers"]
    window, places = [avals[1].shape[d] for d in rhs[2:]], math.prod(out.shape[d] for d in to[2:])
    if not 0 < len(window) <= SPATIAL:
        return f"there are one to {SPATIAL} spatial dimensions"
    if max(params["lhs_dilation"]) > 1 or params["feature_group_count"] > 1:
        return "the operand is dilated, or has groups of features"
    if not math.prod(out.shape) or math.prod(window) <= places:
        return "more places are wanted than the window has elements"
    if window[-1] < LONG or math.prod(window) * avals[1].shape[rhs[1]] < DEEP:
        return "little is added up"
    features, together = avals[1].shape[rhs[0]] // params["batch_group_count"], rhs[0] == len(rhs) - 1
    if not together and places * out.shape[to[0]] < OFTEN:
        return "turning the window takes longer than using it"
    return None if features * (1 + together) >= lanes else f"{features} features are few for vectors of {lanes}"


def why_many(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    """Why large blocks of registers would be needed for it, if so: with small ones BLAS takes less time."""
    features = avals[1].shape[params["dimension_numbers"].rhs_spec[0]] // params["batch_group_count"]
    return f"{features} features are many" if features > MANY else None


def described(avals: Sequence[ShapedArray], params: Mapping[str, Any], lanes: int) -> Windowed:
    """Features are the last dimension of the window; the native function counts blocks of sums. The result has its
    places first, then channels, then features."""
    (out,) = conv_general_dilated_p.rule("abstract_eval")(*avals, **params)
    (lhs, rhs), (at, of, _) = (a.shape for a in avals), params["dimension_numbers"]
    source, window, groups = strides(lhs), strides(rhs), params["batch_group_count"]
    dimensions = along(avals, out, params)
    channels, features, last = lhs[at[0]] // groups, rhs[of[0]] // groups, dimensions[-1]
    row = last.window * features * groups + last.source * lhs[at[0]]
    numbers = FilterNumbers(
        lhs[at[1]], max(1, ELEMENTS // row), channels, features, groups, source[at[1]], source[at[0]], window[of[1]]
    )
    kind = sums_kind(channels, features, lanes)
    places = [d.places for d in dimensions]
    blocks = math.prod(places) * groups * -(-channels // kind.rows) * -(-features // (kind.width * lanes))
    added = math.prod(d.window for d in dimensions) * numbers.images
    flops = 2 * math.prod(places) * channels * features * groups * added
    return Windowed((*places, channels, features * groups), flat(numbers, dimensions), blocks, flops, kind)


# --- code ------------------------------------------------------------------------------------------------------------


@functools.cache
def function(type: str, kind: SumsKind) -> compiler.LoadedCode:
    """``convolve(operand, window, result; scalars, begin, end)``."""
    return machine_code.written(f"filters {type} {kind}", lambda: _text(type, kind), ["convolve"], {})


def _text(type: str, kind: SumsKind) -> str:
    module = Module(["convolve"])
    _Writer(module.function("void", "convolve", FUNCTION_PARAMS), type, kind).write()
    return module.text()


class _Block(NamedTuple):
    """A block of sums: its place along each dimension; where its channels, and its first feature, are in the memory of
    the operand and of the window; where the sums of each channel are, and which lanes their vectors have."""

    places: Sequence[IrValue]
    channels: Sequence[IrValue]
    feature: IrValue
    to: Sequence[IrValue]
    some: Sequence[IrValue | None]


class _Writer:
    def __init__(self, b: Builder, type: str, kind: SumsKind) -> None:
        buffers, scalars, self.begin, self.end = b.args
        self.told, self.along = told(scalars, FilterNumbers)
        self.source, self.window, self.result = (b.load(b.at(buffers, n, "ptr"), "ptr") for n in range(3))
        self.b, self.kind, self.sums = b, Vectors(type), kind

    def write(self) -> None:
        b, band, rows = self.b, self.told.band, self.told.images * self.along[0].window * self.along[1].window
        with b.loop(0, (rows + band - 1) / band) as n, b.loop(self.begin, self.end) as item:
            self._add(self._block(item), n * band, b.intrinsic("smin", (n + 1) * band, rows))
        b.ret()

    def _block(self, item: IrValue) -> _Block:
        b, told, channels, step = self.b, self.told, self.sums.rows, self.sums.width * self.kind.lanes
        item, n = digit(item, (told.features + step - 1) / step)
        item, m = digit(item, (told.channels + channels - 1) / channels)
        item, group = digit(item, told.groups)
        number, places = item, list[IrValue]()
        for d in reversed(self.along):
            item, place = digit(item, d.places)
            places.insert(0, place)
        first = n * step
        some = self.sums.lanes(b, self.kind, first, told.features)
        feature = group * told.features + first
        seen = [b.intrinsic("smin", m * channels + c, told.channels - 1) for c in range(channels)]  # the last again
        to = [(number * told.channels + c) * told.groups * told.features + feature for c in seen]
        return _Block(places, [(group * told.channels + c) * told.source_channel for c in seen], feature, to, some)

    def _add(self, block: _Block, first: IrValue, stop: IrValue) -> None:
        """Adds up what a band of rows gives; the first one is written."""
        b, kind, (d0, d1, d2) = self.b, self.kind, self.along
        vectors = [(v * kind.lanes, some) for v, some in enumerate(block.some)]
        to = [(kind.at(self.result, place + n), some) for place in block.to for n, some in vectors]
        none, is_first = kind.zero(b), first.compare("==", 0)
        before = [b.select(is_first, none, kind.load(*place)) for place in to]
        seen = lambda n, i: block.places[n] * self.along[n].stride + i * self.along[n].dilation - self.along[n].low
        begin, end = inside(seen(2, first.like(0)), d2)

        def row(n: IrValue, carries: Sequence[IrValue]) -> Sequence[IrValue]:
            rest, i1 = digit(n, d1.window)
            image, i0 = digit(rest, d0.window)
            at0, at1 = seen(0, i0), seen(1, i1)
            there = (at0 >= 0) & (at0 < d0.source) & (at1 >= 0) & (at1 < d1.source)
            source = image * self.told.source_image + at0 * d0.source_by + at1 * d1.source_by
            window = image * self.told.window_image + i0 * d0.window_by + i1 * d1.window_by + block.feature

            def element(i2: IrValue, carries: Sequence[IrValue]) -> Sequence[IrValue]:
                at = source + seen(2, i2) * d2.source_by
                lefts = [kind.at(self.source, at + channel) for channel in block.channels]
                return add_products(kind, lefts, kind.at(self.window, window + i2 * d2.window_by), block.some, carries)

            return b.carry(begin, b.select(there, end, begin), carries, element)

        for x, place in zip(b.carry(first, stop, before, row), to, strict=True):
            b.store_lanes(x, *place)
