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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

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
    def spatial(self) -> list[int]:
        """Dimensions of the operand."""
        return sorted(self.numbers.lhs_spec[2:])

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


@dataclass(frozen=True)
class Tiles:
    """A convolution as the scalars of its native function, which counts the tiles of the result."""

    scalars: tuple[int, ...]
    extent: int
    flops: int
    nbytes: int
    """Of the tile that is gathered; 0 if the operand's memory is one."""


def describe(avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: Mapping[str, Any]) -> tuple[int, Tiles]:
    """The address of the native function, and what it is to compute."""
    g = Geometry(avals, outs[0], params)
    apart = _matrix(g)
    row_cut, depth_cut = _cuts(g, apart is not None)
    rows, depth, features = g.sizes
    by_weight, by_result = g.by_feature
    most_rows, most_depth = row_cut.within(g.rows), depth_cut.within(g.depth)
    letter, place = LETTERS[avals[0].dtype.name], strides(g.lhs)
    tile = 0 if apart is not None else (most_rows + GAP) * (most_depth + GAP) * _bits(letter) // 8
    scalars = [  # BLAS wants distances that are at least as long as lines, also of a single one
        g.groups, features, g.by_group, by_weight * features, by_result * features,
        max(by_weight, most_depth) if by_weight != 1 else max(features, g.depth[-1].other),
        max(by_result, most_rows) if by_result != 1 else max(features, g.rows[-1].other),
        max(apart or 0, most_rows if g.run else most_depth), by_weight != 1, by_result != 1, g.run,
        *_copies(g, row_cut, depth_cut), tile, -sum(low * n for low, n in zip(g.lows, place, strict=True)),
    ]  # fmt: skip
    scalars += [n for dim in g.spatial for n in (g.lhs[dim], -g.lows[dim])]
    scalars += [n for digits, cut in ((g.rows, row_cut), (g.depth, depth_cut)) for n in _slots(g, digits, cut)]
    flops = 2 * g.groups * rows * depth * features
    work = Tiles(tuple(map(int, scalars)), g.groups * row_cut.tiles(g.rows), flops, tile)
    return _function(letter, len(g.spatial)).address("tiles"), work


def _cuts(g: Geometry, direct: bool) -> tuple[Cut, Cut]:
    rows, depth, _ = g.sizes
    depth_cut = _cut(g.depth, depth if direct else DEPTH)
    most = rows if direct else max(ROWS, ELEMENTS // depth_cut.within(g.depth))
    return _cut(g.rows, min(most, max(ROWS, -(-rows * g.groups // ITEMS)))), depth_cut


def _copies(g: Geometry, row_cut: Cut, depth_cut: Cut) -> tuple[bool, bool]:
    """Whether the last two digits of the run are neighbours in the operand, too, so that lines of both are copied; and
    whether what is copied lies side by side."""
    digits, cut = (g.rows, row_cut) if g.run else (g.depth, depth_cut)
    side_by_side = strides(g.lhs)[digits[-1].dim] == 1
    wide = side_by_side and cut.digit < len(digits) - 1 and _follow(g, *digits[-2:])
    return wide, wide or (side_by_side and digits[-1].step == 1)


def _slots(g: Geometry, digits: Sequence[TileDigit], cut: Cut) -> Iterator[int]:
    """The numbers of ``_Digit`` for each of as many digits as the operand has dimensions but one; the first ones may
    be without effect."""
    place = strides(g.lhs)
    for _ in range(len(g.lhs) - 1 - len(digits)):
        yield from (1, 1, 0, 0, *[0] * len(g.spatial))
    for n, d in enumerate(digits):
        within = 1 if n < cut.digit else cut.size if n == cut.digit else d.size
        yield from (d.size, within, d.other, d.step * place[d.dim], *[d.step * (d.dim == k) for k in g.spatial])


def _follow(g: Geometry, before: TileDigit, last: TileDigit) -> bool:
    """Whether the window moves along one and sees all of the other, which is next in memory."""
    moves = before.dim in g.spatial and before.step == 1
    return moves and before.dim + 1 == last.dim and last.dim not in g.spatial and last.size == g.lhs[last.dim]


def _matrix(g: Geometry) -> int | None:
    """How far apart the lines of a tile are in the operand's memory, if tiles lie there; else they are gathered."""
    spatial = [d for d in g.depth if d.dim in g.spatial]
    whole = all(d.step == 1 and d.size == g.lhs[d.dim] for d in g.rows if d.dim in g.spatial)
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
def _function(letter: str, spatial: int) -> compiler.LoadedCode:
    """``tiles(operand, weights, result; scalars, begin, end)`` of a type's convolutions along so many dimensions."""
    name = f"cblas_{letter}gemm"
    imports = {name: openblas.address(name)}
    return machine_code.written(f"tiles {letter} {spatial}", lambda: _text(letter, spatial), ["tiles"], imports)


def _text(letter: str, spatial: int) -> str:
    module = Module(["tiles"])
    _Writer(module, letter, spatial).write()
    return module.text()


class _Digit(NamedTuple):
    """A digit in code: ``within`` of its ``size`` values are within a tile. From one to the next it is ``by`` elements
    in the memory of the operand, ``other`` in the other memory, and so far along each spatial dimension."""

    size: IrValue
    within: IrValue
    other: IrValue
    by: IrValue
    moves: tuple[IrValue, ...]


class _Place(NamedTuple):
    """Where something is in the operand's memory, and along each spatial dimension."""

    offset: IrValue
    along: tuple[IrValue, ...]

    def moved(self, digit: _Digit, i: IrValue) -> _Place:
        along = (p + i * move for p, move in zip(self.along, digit.moves, strict=True))
        return _Place(self.offset + i * digit.by, tuple(along))


class _Part(NamedTuple):
    """Part of an index: where it begins in the operand and in the other memory, and how many values each digit has."""

    place: _Place
    offset: IrValue
    counts: list[IrValue]

    @property
    def total(self) -> IrValue:
        return math.prod(self.counts[1:], start=self.counts[0])


class _Writer:
    def __init__(self, module: Module, letter: str, spatial: int) -> None:
        self.letter, self.kind = letter, BITS[letter]
        self.b = b = module.function("void", "tiles", FUNCTION_PARAMS)
        buffers, scalars, self.begin, self.end = b.args
        self.operand, self.weights, self.result = (b.load(b.at(buffers, n, "ptr"), "ptr") for n in range(3))
        numbers = itertools.count()
        scalar = lambda: b.load(b.at(scalars, next(numbers), "i64"), "i64")
        flag = lambda: scalar().compare("!=", 0)
        self.groups, self.features, *self.by_group = (scalar() for _ in range(5))
        self.weights_apart, self.results_apart, self.operand_apart = (scalar() for _ in range(3))
        self.weights_turned, self.results_turned, self.run, self.wide, self.unit = (flag() for _ in range(5))
        self.nbytes, start = scalar(), scalar()
        self.extents, first = zip(*[(scalar(), scalar()) for _ in range(spatial)], strict=True)
        self.start = _Place(start, first)
        moves = lambda: tuple(scalar() for _ in range(spatial))
        digit = lambda: _Digit(scalar(), scalar(), scalar(), scalar(), moves())
        self.rows, self.depth = ([digit() for _ in range(spatial + 1)] for _ in range(2))

    def write(self) -> None:
        b = self.b
        tile = b.call("ptr", "malloc", self.nbytes)
        gathers = self.nbytes.compare("!=", 0)
        parts = math.prod(map(self._parts, self.depth), start=b.const(1, "i64"))
        with b.loop(self.begin, self.end) as item:
            group, rows = self._part(item, self.start, self.rows)
            operand = self._at(self.operand, group * self.by_group[0])
            result = self._at(self.result, rows.offset + group * self.by_group[2])
            with b.loop(0, parts) as part:
                _, depth = self._part(part, rows.place, self.depth)
                weights = self._at(self.weights, depth.offset + group * self.by_group[1])
                lines = b.select(self.run, rows.total, depth.total) + GAP
                with b.when(gathers):
                    self._gather(operand, tile, depth.place, rows.counts, depth.counts, lines)
                matrix = b.select(gathers, tile, self._at(operand, depth.place.offset))
                apart = b.select(gathers, lines, self.operand_apart)
                self._multiply(rows.total, depth.total, (matrix, apart), weights, result, part)
        b.call("void", "free", tile)
        b.ret()

    def _at(self, pointer: IrValue, offset: IrValue) -> IrValue:
        return self.b.at(pointer, offset, self.kind)

    # --- indices ---

    def _parts(self, digit: _Digit) -> IrValue:
        return (digit.size + digit.within - 1) / digit.within

    def _part(self, number: IrValue, place: _Place, digits: Sequence[_Digit]) -> tuple[IrValue, _Part]:
        """What remains of the number, and the part that it counts."""
        offset, counts = self.b.const(0, "i64"), list[IrValue]()
        for digit in reversed(digits):
            rest = number / self._parts(digit)
            first = (number - rest * self._parts(digit)) * digit.within
            place, offset = place.moved(digit, first), offset + first * digit.other
            counts.insert(0, self.b.intrinsic("smin", digit.within, digit.size - first))
            number = rest
        return number, _Part(place, offset, counts)

    # --- gathering ---

    def _gather(
        self,
        operand: IrValue,
        tile: IrValue,
        place: _Place,
        rows: Sequence[IrValue],
        depth: Sequence[IrValue],
        apart: IrValue,
    ) -> None:
        """Lines of the tile, and, within one, of the digits before the run: that is the last digit, or, if it is
        ``wide``, the one before it with whole lines of the last."""
        b, zero, one = self.b, self.b.const(0, "i64"), self.b.const(1, "i64")
        fast = self._either(self.run, zip(self.rows, rows, strict=True), zip(self.depth, depth, strict=True))
        slow = self._either(self.run, zip(self.depth, depth, strict=True), zip(self.rows, rows, strict=True))
        still = fast[0][0]._replace(by=zero, moves=(zero,) * len(self.extents))
        *outer, (run, count) = self._either(self.wide, [(still, one), *fast[:-1]], fast)
        width = b.select(self.wide, fast[-1][1], one)
        loops = [(self._seen_from(run, digit, digit.moves), n) for digit, n in (*slow, *outer)]

        def along(n: int, place: _Place, to: IrValue) -> None:
            """``to``: the number of the tile's line, or, further in, of the place in it."""
            if n == len(slow):
                to = to * apart
            if n == len(loops):
                return self._copy(self._at(operand, place.offset), self._at(tile, to), run, width, *ends(place))
            digit, size = loops[n]
            behind = math.prod((c for _, c in outer[n - len(slow) + 1 :]), start=count * width)
            with b.loop(0, size) as i:
                along(n + 1, place.moved(digit, i), to * size + i if n < len(slow) else to + i * behind)

        ends = self._ends(run, count)
        along(0, self._seen_from(run, place, place.along), zero)

    def _either(self, condition: IrValue, these: Iterable[_Counted], those: Iterable[_Counted]) -> list[_Counted]:
        either = functools.partial(self.b.select, condition)
        return [
            (x._replace(by=either(x.by, y.by), moves=tuple(map(either, x.moves, y.moves))), either(m, n))
            for (x, m), (y, n) in zip(these, those, strict=True)
        ]

    def _seen_from(self, run: _Digit, x: _Moving, along: Sequence[IrValue]) -> _Moving:
        """``x``, with what it is along the dimension of the run behind all others, which say nothing of that."""
        own = self.b.const(0, "i64")
        others: list[IrValue] = []
        for move, n in zip(run.moves, along, strict=True):
            moving = move.compare("!=", 0)
            own = self.b.select(moving, n, own)
            others.append(self.b.select(moving, n.like(0), n))
        return x._replace(**{x._fields[-1]: (*others, own)})

    def _ends(self, run: _Digit, count: IrValue) -> Callable[[_Place], tuple[IrValue, IrValue, IrValue]]:
        """Which values of the run lie in the operand where it begins at a place: none before the first number, none
        from the second on; the third is its length."""
        b, step, extent = self.b, count.like(1), count.like(1 << 62)
        for move, size in zip(run.moves, self.extents, strict=True):
            moving = move.compare("!=", 0)
            step, extent = b.select(moving, move, step), b.select(moving, size, extent)
        strided = step.compare("!=", 1)

        def before(place: IrValue) -> IrValue:
            ahead = b.intrinsic("smax", place, count.like(0))
            return b.intrinsic("smin", b.choose(strided, lambda: (ahead + step - 1) / step, ahead), count)

        def ends(place: _Place) -> tuple[IrValue, IrValue, IrValue]:
            *others, own = place.along
            inside = b.const(True, "i1")
            for p, size in zip(others, self.extents, strict=True):
                inside = inside & (p >= 0) & (p < size)
            begin = before(0 - own)
            end = b.intrinsic("smax", before(extent - own), begin)
            return begin, b.select(inside, end, begin), count

        return ends

    def _copy(
        self, source: IrValue, to: IrValue, run: _Digit, width: IrValue, begin: IrValue, end: IrValue, count: IrValue
    ) -> None:
        """A run; what is outside of the operand is zero."""
        b, no, each = self.b, self.b.const(False, "i1"), _bits(self.letter) // 8
        for n, m in ((begin.like(0), begin), (end, count)):
            with b.when(n < m):
                place = self._at(to, n * width)
                b.call("void", "llvm.memset.p0.i64", place, b.const(0, "i8"), (m - n) * width * each, no)
        first, stop = begin * width, end * width
        with b.when(self.unit):
            ends = self._at(to, first), self._at(source, first)
            b.call("void", "llvm.memcpy.p0.p0.i64", *ends, (stop - first) * each, no)
        with b.when(~self.unit), b.loop(first, stop) as i:
            value = b.load(self._at(source, i * run.by), self.kind, self._aligned)
            b.store(value, self._at(to, i), self._aligned)

    @property
    def _aligned(self) -> str:
        return ", align 8" if self.letter == "z" else ""

    # --- products ---

    def _multiply(
        self, rows: IrValue, depth: IrValue, tile: tuple[IrValue, IrValue], weights: IrValue, to: IrValue, part: IrValue
    ) -> None:
        """Results whose features lie apart are written as the transpose of what the product is."""
        b, f = self.b, functools.partial(self.b.select, self.results_turned)
        number = lambda flag: b.convert("zext", flag, "i64")
        (t, t_apart), run, turned = tile, number(self.run), number(self.weights_turned)
        w, w_apart = weights, self.weights_apart
        sizes = f(self.features, rows), f(rows, self.features), depth, self.results_apart
        first = f(w, t), f(1 - turned, run), f(w_apart, t_apart)
        second = f(t, w), f(1 - run, turned), f(t_apart, w_apart)
        products.gemm(b, self.letter, sizes, first, second, to, products.factors(b, self.letter, part))


_Counted = tuple[_Digit, IrValue]
"""A digit, and how many values it has in a tile."""
_Moving = TypeVar("_Moving", _Digit, _Place)


def _bits(letter: str) -> int:
    return 8 * routines.PART_BYTES[letter] * (2 if letter in "cz" else 1)
