"""Convolutions of each channel alone, where channels are together in memory: these are the lanes of vectors.

Results of neighbouring places are summed side by side, from what lies in the operand's memory. Neighbouring elements of
the window mostly see the same places for neighbouring results: what is loaded for one is there for the others. Around
images there are zeros: elements of the window before and behind them are left out, and at the ends of rows zeros are
read from elsewhere.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from polyax.ir.aval import ShapedArray
from polyax_cpu import compiler, machine_code
from polyax_cpu.convolutions import planes
from polyax_cpu.convolutions.blocks import where
from polyax_cpu.convolutions.planes import Shapes
from polyax_cpu.convolutions.windows import WindowDimension, Windowed, along, flat, inside, told
from polyax_cpu.libraries.registers import Vectors, between, digit, many
from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.records import FUNCTION_PARAMS


class InRegisters(NamedTuple):
    """Places that are summed side by side, and vectors of the operand that registers hold beside the sums."""

    places: int
    loaded: int


def in_registers() -> InRegisters:
    """Of this processor."""
    return InRegisters(8, 22) if many() else InRegisters(4, 10)


class WindowLine(NamedTuple):
    """So many elements along the last dimension of the window are summed with the same registers; they are ``dilation``
    apart, and ``stride`` further for the next place."""

    length: int
    stride: int
    dilation: int

    @property
    def seen(self) -> int:
        """Places of the operand that are loaded."""
        return len(
            {p * self.stride + k * self.dilation for p in range(in_registers().places) for k in range(self.length)}
        )


class DepthwiseNumbers(NamedTuple):
    """What native code is told beside the dimensions."""

    channels: int
    source_item: int
    result_item: int


def described(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> Windowed:
    """The native function counts rows of the result."""
    shapes = Shapes(avals, params)
    dimensions = along(avals, shapes.result, params)
    numbers = DepthwiseNumbers(shapes.groups, shapes.by_source.item, shapes.by_result.item)
    rows = shapes.batch * math.prod(d.places for d in dimensions[:-1])
    return Windowed(shapes.result.shape, flat(numbers, dimensions), rows, shapes.flops, _line(dimensions[-1]))


def _line(last: WindowDimension) -> WindowLine:
    """A whole one, if what it sees fits in registers."""
    line = WindowLine(last.window, last.stride, last.dilation)
    return line if line.seen <= in_registers().loaded else line._replace(length=1)


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any], lanes: int) -> str | None:
    """Why a convolution isn't one of these, if so."""
    if (reason := planes.why_no_windows(avals, params)) is not None:
        return reason
    shapes = Shapes(avals, params)
    if shapes.together != (True, True) or shapes.channels * shapes.features > 1:
        return "channels aren't alone, or not together"
    if len(shapes.phases) > 1:
        return "phases are convolutions of their own"
    return None if 2 * shapes.groups >= lanes else f"{shapes.groups} channels are few for vectors of {lanes}"


def why_many(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    """Why more registers would be needed for it, if so: with few, loops take less time."""
    last = along(avals, Shapes(avals, params).result, params)[-1]
    shared = last.stride == 1 and last.window > 2 and _line(last).length == last.window
    return None if shared else f"neighbours share little of what {last.window} elements see in steps of {last.stride}"


# --- code ------------------------------------------------------------------------------------------------------------


class _Row(NamedTuple):
    """A row of the result: where it is, where the first row that the window sees is or would be in the operand, and
    which elements of the window lie in the image along all dimensions but the last."""

    source: IrValue
    result: IrValue
    elements: Sequence[tuple[IrValue, IrValue]]


@functools.cache
def function(type: str, line: WindowLine) -> compiler.LoadedCode:
    """``convolve(operand, weights, result; scalars, begin, end)``; the channels of weights are together, too."""
    return machine_code.written(f"depthwise {type} {line}", lambda: code(type, line), ["convolve"], {})


def code(type: str, line: WindowLine) -> str:
    """The text of its module."""
    module = Module(["convolve"])
    b = module.function("void", "convolve", FUNCTION_PARAMS)
    buffers, scalars, begin, end = b.args
    _Writer(b, Vectors(type), line, buffers, scalars).write(begin, end)
    return module.text()


class _Writer:
    def __init__(self, b: Builder, kind: Vectors, line: WindowLine, buffers: IrValue, scalars: IrValue) -> None:
        self.b, self.kind, self.line, self.places = b, kind, line, in_registers().places
        self.told, self.along = told(scalars, DepthwiseNumbers)
        self.source, self.weights, self.result = (b.load(b.at(buffers, n, "ptr"), "ptr") for n in range(3))
        self.zeros = b.alloca(kind.type, kind.lanes)
        b.store_lanes(kind.zero(b), self.zeros, None)

    def write(self, begin: IrValue, end: IrValue) -> None:
        b, last, channels, lanes = self.b, self.along[-1], self.told.channels, self.kind.lanes
        whole = channels & -lanes
        with b.loop(begin, end) as item:
            row = self._row(item)
            with b.loop(0, last.places, step=self.places) as place:
                first = place * last.stride - last.low
                reach = first + (last.window - 1) * last.dilation + (self.places - 1) * last.stride
                inside = (first >= 0) & (reach < last.source) & (place + self.places <= last.places)
                with b.when(inside), b.loop(0, whole, step=lanes) as c:
                    self._store(row, place, c, self._sums(row, first, c), None)
                with b.loop(b.select(inside, whole, 0), channels, step=lanes) as c:
                    some = between(b, c, lanes, c, channels)
                    self._store(row, place, c, self._sums(row, first, c, some), some)
        b.ret()

    def _row(self, item: IrValue) -> _Row:
        b = self.b
        source, result, elements = b.const(0, "i64"), b.const(0, "i64"), list[tuple[IrValue, IrValue]]()
        for d in reversed(self.along[:-1]):
            item, place = digit(item, d.places)
            first = place * d.stride - d.low
            source, result = source + first * d.source_by, result + place * d.result_by
            elements.insert(0, inside(first, d))
        return _Row(source + item * self.told.source_item, result + item * self.told.result_item, elements)

    def _sums(self, row: _Row, first: IrValue, c: IrValue, some: IrValue | None = None) -> Sequence[IrValue]:
        """Of neighbouring places, for a vector of channels. ``some``: the channels that are there, and maybe not all
        places are; None: all are."""
        b, kind, (d0, d1, d2) = self.b, self.kind, self.along

        def line(k0: IrValue, k1: IrValue, k2: IrValue, carries: Sequence[IrValue]) -> Sequence[IrValue]:
            start, loaded = first + k2 * d2.dilation, dict[int, IrValue]()
            source = row.source + k0 * d0.dilation * d0.source_by + k1 * d1.dilation * d1.source_by + c

            def place(n: int) -> IrValue:
                if n not in loaded:
                    at = kind.at(self.source, source + (start + n) * d2.source_by)
                    if some is not None:
                        at = b.select(b.test("icmp ult", start + n, d2.source), at, self.zeros)
                    loaded[n] = kind.load(at, some)
                return loaded[n]

            for k in range(self.line.length):
                weight = k0 * d0.window_by + k1 * d1.window_by + (k2 + k) * d2.window_by + c
                w = kind.load(kind.at(self.weights, weight), some)
                places = [place(n * self.line.stride + k * self.line.dilation) for n in range(self.places)]
                carries = [b.intrinsic("fma", x, w, old) for x, old in zip(places, carries, strict=True)]
            return carries

        zero = b.const(0, "i64")
        (begin0, end0), (begin1, end1) = row.elements
        across = lambda k0, k1, carries: b.carry(
            zero, d2.window, carries, lambda k2, found: line(k0, k1, k2, found), step=self.line.length
        )
        down = lambda k0, carries: b.carry(begin1, end1, carries, lambda k1, found: across(k0, k1, found))
        none = b.splat(b.const(0.0, kind.type), kind.lanes)
        return b.carry(begin0, end0, [none] * self.places, down)

    def _store(self, row: _Row, place: IrValue, c: IrValue, sums: Sequence[IrValue], some: IrValue | None) -> None:
        """``some``: lanes of channels that are there, and maybe not all places are; None: all are."""
        b, last = self.b, self.along[-1]
        for n, x in enumerate(sums):
            to = self.kind.at(self.result, row.result + (place + n) * last.result_by + c)
            b.store_lanes(x, to, some if some is None else where(b, place + n < last.places, some))
