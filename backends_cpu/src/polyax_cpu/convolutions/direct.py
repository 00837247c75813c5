"""Convolutions whose channels are together in memory, and so are their features: sums of products by weights that are
read where they lie, as the operand is.

Features are the lanes of vectors. Neighbouring places of a row are summed side by side: each brings one number of the
operand for a vector of weights. Outside the operand there are zeros, of which a row is kept.
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

DEEP, MOST = 16, 1 << 12
"""Channels, at least: finding places takes longer than adding up fewer; and at most, as many as zeros are kept."""
LONG = 4
"""Places of a row, at least, that are summed side by side."""
ONCE = 64
"""Places of the result, at least, for each of which all weights are read."""


class DirectNumbers(NamedTuple):
    """What native code is told beside the dimensions."""

    channels: int
    features: int
    window_channel: int
    source_image: int
    result_image: int


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any], lanes: int) -> str | None:
    """Why a convolution isn't one of these, if so."""
    (out,) = conv_general_dilated_p.rule("abstract_eval")(*avals, **params)
    lhs, rhs, to = params["dimension_numbers"]
    last, channels, features = len(lhs) - 1, avals[1].shape[rhs[1]], avals[1].shape[rhs[0]]
    if not 0 < len(rhs) - 2 <= SPATIAL:
        return f"there are one to {SPATIAL} spatial dimensions"
    if lhs[1] != last or to[1] != last:
        return "channels or features aren't together"
    if max(params["lhs_dilation"]) > 1 or max(params["feature_group_count"], params["batch_group_count"]) > 1:
        return "the operand is dilated, or there are groups"
    if not DEEP <= channels <= MOST or features < 2 * lanes:
        return f"{channels} channels and {features} features aren't enough, or too many"
    places = [out.shape[d] for d in (to[0], *to[2:])]
    return None if places[-1] >= LONG and math.prod(places) >= ONCE else "the result has few places"


def described(avals: Sequence[ShapedArray], params: Mapping[str, Any], lanes: int) -> Windowed:
    """Features are the last dimension of the weights; the native function counts rows of the result."""
    (out,) = conv_general_dilated_p.rule("abstract_eval")(*avals, **params)
    (lhs, rhs), (at, of, to) = (a.shape for a in avals), params["dimension_numbers"]
    dimensions = along(avals, out, params)
    channels, features, places = rhs[of[1]], rhs[of[0]], dimensions[-1].places
    by_image, by_channel = (strides(shape)[n] for shape, n in ((lhs, at[0]), (rhs, of[1])))
    numbers = DirectNumbers(channels, features, by_channel, by_image, strides(out.shape)[to[0]])
    rows = out.shape[to[0]] * math.prod(d.places for d in dimensions[:-1])
    flops = 2 * rows * places * channels * features * math.prod(d.window for d in dimensions)
    kind = sums_kind(places, features, lanes)
    return Windowed(out.shape, flat(numbers, dimensions), rows, flops, kind)


# --- code ------------------------------------------------------------------------------------------------------------


@functools.cache
def function(type: str, kind: SumsKind) -> compiler.LoadedCode:
    """``convolve(operand, weights, result; scalars, begin, end)``."""
    return machine_code.written(f"direct {type} {kind}", lambda: _text(type, kind), ["convolve"], {})


def _text(type: str, kind: SumsKind) -> str:
    module = Module(["convolve"])
    module.top(f"@zeros = private constant [{MOST} x {type}] zeroinitializer, align 64")
    _Writer(module.function("void", "convolve", FUNCTION_PARAMS), type, kind).write()
    return module.text()


class _Row(NamedTuple):
    """A row of the result: which elements of the window it meets along the first dimensions, and where it is."""

    first: tuple[IrValue, IrValue]
    met: tuple[tuple[IrValue, IrValue], tuple[IrValue, IrValue]]
    source: IrValue
    result: IrValue


class _Writer:
    def __init__(self, b: Builder, type: str, kind: SumsKind) -> None:
        buffers, scalars, self.begin, self.end = b.args
        self.told, self.along = told(scalars, DirectNumbers)
        self.source, self.weights, self.result = (b.load(b.at(buffers, n, "ptr"), "ptr") for n in range(3))
        self.b, self.kind, self.sums = b, Vectors(type), kind
        self.zeros = b.pointer("@zeros")

    def write(self) -> None:
        """A strip of the weights meets all rows while it is in the cache."""
        b, lanes = self.b, self.kind.lanes
        with b.loop(0, self.told.features, step=self.sums.width * lanes) as feature:
            some = self.sums.lanes(b, self.kind, feature, self.told.features)
            with b.loop(self.begin, self.end) as item:
                row = self._row(item)
                with b.loop(0, self.along[2].places, step=self.sums.rows) as place:
                    self._add(row, place, feature, some)
        b.ret()

    def _row(self, item: IrValue) -> _Row:
        d0, d1, _ = self.along
        rest, n1 = digit(item, d1.places)
        image, n0 = digit(rest, d0.places)
        first = n0 * d0.stride - d0.low, n1 * d1.stride - d1.low
        result = image * self.told.result_image + n0 * d0.result_by + n1 * d1.result_by
        return _Row(first, (inside(first[0], d0), inside(first[1], d1)), image * self.told.source_image, result)

    def _add(self, row: _Row, first: IrValue, feature: IrValue, some: Sequence[IrValue | None]) -> None:
        """The sums of some places; what is behind the last place is that again."""
        b, kind, (d0, d1, d2) = self.b, self.kind, self.along
        places = [b.intrinsic("smin", first + n, d2.places - 1) for n in range(self.sums.rows)]
        seen = [place * d2.stride - d2.low for place in places]
        none = [kind.zero(b)] * (len(places) * len(some))

        def along0(i0: IrValue, sums: Sequence[IrValue]) -> Sequence[IrValue]:
            source = row.source + (row.first[0] + i0 * d0.dilation) * d0.source_by
            return b.carry(*row.met[1], sums, functools.partial(along1, source, i0 * d0.window_by + feature))

        def along1(source: IrValue, window: IrValue, i1: IrValue, sums: Sequence[IrValue]) -> Sequence[IrValue]:
            source = source + (row.first[1] + i1 * d1.dilation) * d1.source_by
            element = functools.partial(along2, source, window + i1 * d1.window_by)
            return b.carry(b.const(0, "i64"), d2.window, sums, element)

        def along2(source: IrValue, window: IrValue, i2: IrValue, sums: Sequence[IrValue]) -> Sequence[IrValue]:
            at = [place + i2 * d2.dilation for place in seen]
            lefts = [
                b.select((x >= 0) & (x < d2.source), kind.at(self.source, source + x * d2.source_by), self.zeros)
                for x in at
            ]
            return self._channels(lefts, kind.at(self.weights, window + i2 * d2.window_by), some, sums)

        found = b.carry(*row.met[0], none, along0)
        to = [
            (kind.at(self.result, row.result + n * d2.result_by + feature), v) for n in places for v in range(len(some))
        ]
        for x, (place, v) in zip(found, to, strict=True):
            b.store_lanes(x, kind.at(place, v * kind.lanes), some[v])

    def _channels(
        self, lefts: Sequence[IrValue], weights: IrValue, some: Sequence[IrValue | None], sums: Sequence[IrValue]
    ) -> Sequence[IrValue]:
        b, kind = self.b, self.kind

        def channel(c: IrValue, sums: Sequence[IrValue]) -> Sequence[IrValue]:
            rights = kind.at(weights, c * self.told.window_channel)
            return add_products(kind, [kind.at(left, c) for left in lefts], rights, some, sums)

        return b.carry(b.const(0, "i64"), self.told.channels, sums, channel)
