"""Convolutions as native functions: what the window sees is gathered in tiles that stay in the cache, and BLAS
multiplies each tile with the weights.

A tile has a row for each place of the result and a column for each weight of a feature (``depth``), or the other way
round: neighbours of the operand's memory are neighbours in it. Gradients are convolutions of other layouts, of which
the depth is long: the products of its tiles are added up.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from polyax.ir.aval import ShapedArray
from polyax_cpu import compiler, machine_code
from polyax_cpu.libraries import openblas, products, routines
from polyax_cpu.libraries.routines import BITS, LETTERS
from polyax_cpu.llvm import IrValue, Module
from polyax_cpu.records import FUNCTION_PARAMS

DEPTH = 512
"""Of a tile: products of fewer terms read and write results too often."""
ELEMENTS = 1 << 16
"""Of a tile: a quarter of a megabyte of single numbers."""
ROWS = 64
"""At least so many of a tile, if there are so many."""
ITEMS = 8
"""Tiles that threads may share, if there is work for so many."""
GAP = 16
"""Between the rows of a tile, so that they don't lie a power of two apart, and meet in few lines of the cache."""


class TileDigit(NamedTuple):
    """Part of an index: it moves ``step`` places along ``dim`` of the operand, and ``other`` elements in the memory of
    the weights or of the result."""

    size: int
    dim: int
    step: int
    other: int


def strides(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[n + 1 :]) for n in range(len(shape))]


class Geometry:
    """The digits of rows and depth, in the order of the operand's memory."""

    def __init__(self, avals: Sequence[ShapedArray], out: ShapedArray, params: Mapping[str, Any]) -> None:
        self.lhs, self.rhs, self.out = avals[0].shape, avals[1].shape, out.shape
        self.numbers = params["dimension_numbers"]
        self.groups = max(params["feature_group_count"], params["batch_group_count"])
        batches = params["batch_group_count"]
        by_row, by_depth = (1, 1, *params["window_strides"]), (1, 1, *params["rhs_dilation"])
        lhs, rhs, result = self.numbers
        n = len(lhs)
        self.lows = [0] * n
        for dim, (low, _) in zip(lhs[2:], params["padding"], strict=True):
            self.lows[dim] = low
        at_out, at_rhs = strides(self.out), strides(self.rhs)
        rows = [TileDigit(self.out[result[k]], lhs[k], by_row[k], at_out[result[k]]) for k in range(n) if k != 1]
        depth = [TileDigit(self.rhs[rhs[k]], lhs[k], by_depth[k], at_rhs[rhs[k]]) for k in range(n) if k != 0]
        self.rows, self.depth = map(_in_memory, (rows, depth))
        self.features, self.channels = self.rhs[rhs[0]] // self.groups, self.rhs[rhs[1]]
        self.by_feature = at_rhs[rhs[0]], at_out[result[1]]
        """How far apart features are in the memory of weights and results."""
        grouped = lhs[0] if batches > 1 else lhs[1]
        self.by_group = strides(self.lhs)[grouped] * (self.lhs[grouped] // self.groups)

    @property
    def run(self) -> bool:
        """Whether neighbours in the operand's memory are rows of the same column; else they are terms of a row."""
        row, term = self.rows[-1], self.depth[-1]
        return row.dim > term.dim or (row.dim == term.dim and row.size >= term.size)

    @property
    def rows_lie(self) -> bool:
        """Whether rows of the same column lie side by side."""
        return self.run and strides(self.lhs)[self.rows[-1].dim] == 1

    @property
    def spatial(self) -> tuple[bool, ...]:
        """For each dimension of the operand."""
        return tuple(dim in self.numbers.lhs_spec[2:] for dim in range(len(self.lhs)))

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Rows, depth and columns of the product, for each group."""
        return _count(self.rows), _count(self.depth), self.features


def _in_memory(digits: Sequence[TileDigit]) -> tuple[TileDigit, ...]:
    """In the order of the operand's memory; those that don't count are left out."""
    counting = [d for d in digits if d.size != 1] or digits[:1]
    return tuple(sorted(counting, key=lambda d: d.dim))


def _count(digits: Sequence[TileDigit]) -> int:
    return math.prod(d.size for d in digits)


def joined(digits: Sequence[TileDigit]) -> int:
    """From which digit on they step through the other memory as one."""
    first = len(digits) - 1
    while first > 0 and digits[first - 1].other == digits[first].other * digits[first].size:
        first -= 1
    return first


def apart(digits: Sequence[TileDigit], by_feature: int) -> int:
    """How many values the index has that steps through the other memory as one; 0: BLAS can't step through it."""
    return _count(digits[joined(digits) :]) if 1 in (by_feature, digits[-1].other) else 0


class Cut(NamedTuple):
    """Digits before ``digit`` count tiles; of that one, ``size`` at a time are within a tile; later ones are whole."""

    digit: int
    size: int

    def tiles(self, digits: Sequence[TileDigit]) -> int:
        return _count(digits[: self.digit]) * -(-digits[self.digit].size // self.size)

    def within(self, digits: Sequence[TileDigit]) -> int:
        return self.size * _count(digits[self.digit + 1 :])


def _cut(digits: Sequence[TileDigit], most: int) -> Cut:
    """Tiles of about ``most`` values, of about the same size."""
    digit = joined(digits)
    while digit < len(digits) - 1 and _count(digits[digit + 1 :]) > most:
        digit += 1
    size = digits[digit].size
    parts = -(-size // max(1, most // max(1, _count(digits[digit + 1 :]))))
    return Cut(digit, -(-size // max(parts, 1)))


class Form(NamedTuple):
    """What code depends on; sizes are its scalars. ``rows`` and ``depth``: the dimensions of digits."""

    letter: str
    rows: tuple[int, ...]
    depth: tuple[int, ...]
    row_cut: int
    depth_cut: int
    run: bool
    """Whether neighbours in a tile are rows."""
    wide: bool
    """Whether the last two digits of the run are neighbours in the operand, too."""
    unit: bool
    """Whether what the run copies lies side by side."""
    direct: bool
    """Whether the operand is a tile already."""
    weights_turned: bool
    results_turned: bool
    spatial: tuple[bool, ...]
    """For each dimension of the operand."""


@dataclass(frozen=True)
class Tiles:
    """A convolution as the scalars of its native function, which counts the tiles of the result."""

    scalars: tuple[int, ...]
    extent: int
    flops: int


def describe(avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: Mapping[str, Any]) -> tuple[int, Tiles]:
    """The address of the native function, and what it is to compute."""
    g = Geometry(avals, outs[0], params)
    apart = _matrix(g)
    row_cut, depth_cut = _cuts(g, apart is not None)
    form, place = _form(g, avals[0], row_cut, depth_cut, apart is not None), strides(g.lhs)
    rows, depth, features = g.sizes
    by_weight, by_result = g.by_feature
    most_rows, most_depth = row_cut.within(g.rows), depth_cut.within(g.depth)
    scalars = [  # BLAS wants distances that are at least as long as lines, also of a single one
        g.groups, features, g.by_group, by_weight * features, by_result * features,
        max(by_weight, most_depth) if by_weight != 1 else max(features, g.depth[-1].other),
        max(by_result, most_rows) if by_result != 1 else max(features, g.rows[-1].other),
        max(apart or 0, most_rows if g.run else most_depth), row_cut.size, depth_cut.size, most_rows, most_depth,
    ]  # fmt: skip
    scalars += [n for dim in range(len(g.lhs)) for n in (place[dim], g.lhs[dim], g.lows[dim])]
    scalars += [n for d in (*g.rows, *g.depth) for n in (d.size, d.step, d.other)]
    work = Tiles(tuple(scalars), g.groups * row_cut.tiles(g.rows), 2 * g.groups * rows * depth * features)
    return _function(form).address("tiles"), work


def _cuts(g: Geometry, direct: bool) -> tuple[Cut, Cut]:
    rows, depth, _ = g.sizes
    depth_cut = _cut(g.depth, depth if direct else DEPTH)
    most = rows if direct else max(ROWS, ELEMENTS // depth_cut.within(g.depth))
    return _cut(g.rows, min(most, max(ROWS, -(-rows * g.groups // ITEMS)))), depth_cut


def _form(g: Geometry, lhs: ShapedArray, row_cut: Cut, depth_cut: Cut, direct: bool) -> Form:
    digits, cut = (g.rows, row_cut) if g.run else (g.depth, depth_cut)
    side_by_side = strides(g.lhs)[digits[-1].dim] == 1
    wide = side_by_side and cut.digit < len(digits) - 1 and _follow(g, *digits[-2:])
    return Form(
        LETTERS[lhs.dtype.name],
        tuple(d.dim for d in g.rows),
        tuple(d.dim for d in g.depth),
        row_cut.digit,
        depth_cut.digit,
        g.run,
        wide,
        wide or (side_by_side and digits[-1].step == 1),
        direct,
        g.by_feature[0] != 1,
        g.by_feature[1] != 1,
        g.spatial,
    )


def _follow(g: Geometry, before: TileDigit, last: TileDigit) -> bool:
    """Whether the window moves along one and sees all of the other, which is next in memory."""
    moves = g.spatial[before.dim] and before.step == 1
    return moves and before.dim + 1 == last.dim and not g.spatial[last.dim] and last.size == g.lhs[last.dim]


def _matrix(g: Geometry) -> int | None:
    """How far apart the lines of a tile are in the operand's memory, if tiles lie there; else they are gathered."""
    spatial = [d for d in g.depth if g.spatial[d.dim]]
    whole = all(d.step == 1 and d.size == g.lhs[d.dim] for d in g.rows if g.spatial[d.dim])
    if any(g.lows) or any(d.size > 1 for d in spatial) or not whole:
        return None
    place = strides(g.lhs)
    inner = [[d for d in digits[joined(digits) :] if d.size > 1] for digits in (g.rows, g.depth)]
    rows, depth = ([d._replace(other=place[d.dim]) for d in digits] for digits in inner)
    if any(digits and joined(digits) for digits in (rows, depth)):
        return None
    lines, neighbours = (depth, rows) if g.run else (rows, depth)
    if not neighbours or neighbours[-1].other != 1:
        return None
    return lines[-1].other if lines else _count(neighbours)


# --- code ------------------------------------------------------------------------------------------------------------


@functools.cache
def _function(form: Form) -> compiler.LoadedCode:
    """``tiles(operand, weights, result; scalars, begin, end)``."""
    name = f"cblas_{form.letter}gemm"
    module = Module(["tiles"])
    _Writer(module, form).write()
    return machine_code.library(module.text(), ["tiles"], {name: openblas.address(name)})


class _Index(NamedTuple):
    """A digit in code."""

    dim: int
    size: IrValue
    step: IrValue
    other: IrValue


Places = tuple[IrValue, ...]
"""Along each dimension of the operand."""


class _Writer:
    def __init__(self, module: Module, form: Form) -> None:
        self.form = form
        self.b = b = module.function("void", "tiles", FUNCTION_PARAMS)
        buffers, scalars, self.begin, self.end = b.args
        self.operand, self.weights, self.result = (b.load(b.at(buffers, n, "ptr"), "ptr") for n in range(3))
        numbers = itertools.count()
        scalar = lambda: b.load(b.at(scalars, next(numbers), "i64"), "i64")
        self.groups, self.features, *self.by_group = (scalar() for _ in range(5))
        self.weights_apart, self.results_apart, self.operand_apart = (scalar() for _ in range(3))
        self.row_size, self.depth_size, self.most_rows, self.most_depth = (scalar() for _ in range(4))
        self.place, self.extent, self.low = zip(*[[scalar() for _ in range(3)] for _ in form.spatial], strict=True)
        digits = lambda dims: [_Index(dim, scalar(), scalar(), scalar()) for dim in dims]
        self.rows, self.depth = digits(form.rows), digits(form.depth)

    def write(self) -> None:
        b, f = self.b, self.form
        elements = (self.most_rows + GAP) * (self.most_depth + GAP)
        nbytes = elements * (_bits(f.letter) // 8)
        tile = self.operand if f.direct else b.call("ptr", "malloc", nbytes)
        zero = b.const(0, "i64")
        start = tuple(zero - low for low in self.low)
        with b.loop(self.begin, self.end) as item:
            group, places, to, count = self._tile(item, start, self.rows, f.row_cut, self.row_size)
            operand = self._at(self.operand, group * self.by_group[0])
            result = self._at(self.result, to + group * self.by_group[2])
            depths = self._tiles(self.depth, f.depth_cut, self.depth_size)
            with b.loop(0, depths) as part:
                _, seen, at, terms = self._tile(part, places, self.depth, f.depth_cut, self.depth_size)
                weights = self._at(self.weights, at + group * self.by_group[1])
                rows, depth = self._whole(count, self.rows, f.row_cut), self._whole(terms, self.depth, f.depth_cut)
                if f.direct:
                    matrix = self._at(operand, self._offset(seen)), self.operand_apart
                else:
                    matrix = tile, (rows if f.run else depth) + GAP
                    self._gather(operand, tile, seen, count, terms, matrix[1])
                self._multiply(rows, depth, matrix, weights, result, part)
        if not f.direct:
            b.call("void", "free", tile)
        b.ret()

    # --- indices ---

    def _tiles(self, digits: Sequence[_Index], cut: int, size: IrValue) -> IrValue:
        total = (digits[cut].size + size - 1) / size
        for digit in digits[:cut]:
            total = total * digit.size
        return total

    def _tile(
        self, number: IrValue, places: Places, digits: Sequence[_Index], cut: int, size: IrValue
    ) -> tuple[IrValue, Places, IrValue, IrValue]:
        """What remains of the number, where the tile begins in the operand and in the other memory, and how many
        values the digit that is cut has in it."""
        cut_digit = digits[cut]
        number, i = self._last(number, (cut_digit.size + size - 1) / size)
        first = i * size
        places, offset = self._moved(places, cut_digit, first), first * cut_digit.other
        for digit in reversed(digits[:cut]):
            number, i = self._last(number, digit.size)
            places, offset = self._moved(places, digit, i), offset + i * digit.other
        return number, places, offset, self.b.intrinsic("smin", size, cut_digit.size - first)

    def _last(self, number: IrValue, size: IrValue) -> tuple[IrValue, IrValue]:
        """The number without its last digit, and that."""
        rest = number / size
        return rest, number - rest * size

    def _moved(self, places: Places, digit: _Index, i: IrValue) -> Places:
        return tuple(p + i * digit.step if dim == digit.dim else p for dim, p in enumerate(places))

    def _whole(self, count: IrValue, digits: Sequence[_Index], cut: int) -> IrValue:
        for digit in digits[cut + 1 :]:
            count = count * digit.size
        return count

    def _offset(self, places: Places) -> IrValue:
        total = self.b.const(0, "i64")
        for place, stride in zip(places, self.place, strict=True):
            total = total + place * stride
        return total

    def _at(self, pointer: IrValue, offset: IrValue) -> IrValue:
        return self.b.at(pointer, offset, BITS[self.form.letter])

    # --- gathering ---

    def _gather(
        self, operand: IrValue, tile: IrValue, places: Places, count: IrValue, terms: IrValue, apart: IrValue
    ) -> None:
        f = self.form
        rows = [(self.rows[f.row_cut], count), *((d, d.size) for d in self.rows[f.row_cut + 1 :])]
        depth = [(self.depth[f.depth_cut], terms), *((d, d.size) for d in self.depth[f.depth_cut + 1 :])]
        slow, fast = (depth, rows) if f.run else (rows, depth)
        ends = len(fast) - 1 - f.wide

        def along(n: int, places: Places, to: IrValue) -> None:
            """``to``: the number of the tile's line, or, further in, of the place in it."""
            if n == len(slow):
                to = to * apart
            if n == len(slow) + ends:
                return self._run(operand, self._at(tile, to), places, fast[ends:])
            digit, size = slow[n] if n < len(slow) else fast[n - len(slow)]
            behind = self.b.const(1, "i64")
            for _, s in fast[n - len(slow) + 1 :] if n >= len(slow) else ():
                behind = behind * s
            with self.b.loop(0, size) as i:
                step = to * size + i if n < len(slow) else to + i * behind
                along(n + 1, self._moved(places, digit, i), step)

        along(0, places, self.b.const(0, "i64"))

    def _run(self, operand: IrValue, to: IrValue, places: Places, digits: Sequence[tuple[_Index, IrValue]]) -> None:
        """The last digit, or the last two; what is outside of the operand is zero."""
        b, f = self.b, self.form
        (digit, count), width = digits[0], digits[1][1] if f.wide else b.const(1, "i64")
        begin, end = b.const(0, "i64"), count
        if f.spatial[digit.dim]:
            step = b.const(1, "i64") if f.unit else digit.step
            before = lambda place: (b.intrinsic("smax", place, b.const(0, "i64")) + step - 1) / step
            place = places[digit.dim]
            begin = b.intrinsic("smin", before(0 - place), count)
            end = b.intrinsic("smax", b.intrinsic("smin", before(self.extent[digit.dim] - place), count), begin)
        end = b.select(self._inside(places, digit.dim), end, begin)
        source = self._at(operand, self._offset(places))
        kind, zero = BITS[f.letter], self._zero()
        for first, stop in ((b.const(0, "i64"), begin * width), (end * width, count * width)):
            with b.loop(first, stop) as i:
                b.store(zero, self._at(to, i), self._aligned)
        stride = b.const(1, "i64") if f.unit else digit.step * self.place[digit.dim]
        with b.loop(begin * width, end * width) as i:
            b.store(b.load(self._at(source, i * stride), kind, self._aligned), self._at(to, i), self._aligned)

    def _inside(self, places: Places, but: int) -> IrValue:
        inside = self.b.const(True, "i1")
        for dim, spatial in enumerate(self.form.spatial):
            if spatial and dim != but:
                inside = inside & (places[dim] >= 0) & (places[dim] < self.extent[dim])
        return inside

    # --- memory and products ---

    @property
    def _aligned(self) -> str:
        return ", align 8" if self.form.letter == "z" else ""

    def _zero(self) -> IrValue:
        return IrValue(self.b, BITS[self.form.letter], "zeroinitializer")

    def _multiply(
        self, rows: IrValue, depth: IrValue, tile: tuple[IrValue, IrValue], weights: IrValue, to: IrValue, part: IrValue
    ) -> None:
        """Results whose features lie apart are written as the transpose of what the product is."""
        f, b = self.form, self.b
        flag = lambda x: b.const(x, "i64")
        (t, apart), w = tile, self.weights_apart
        by = products.factors(b, f.letter, part)
        if f.results_turned:
            sizes = self.features, rows, depth, self.results_apart
            first, second = (weights, flag(not f.weights_turned), w), (t, flag(not f.run), apart)
        else:
            sizes = rows, self.features, depth, self.results_apart
            first, second = (t, flag(f.run), apart), (weights, flag(f.weights_turned), w)
        products.gemm(b, f.letter, sizes, first, second, to, by)


def _bits(letter: str) -> int:
    return 8 * routines.PART_BYTES[letter] * (2 if letter in "cz" else 1)
