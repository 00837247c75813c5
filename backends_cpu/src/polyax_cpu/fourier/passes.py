"""The passes of a transform, each by one factor of its length, as native functions (Stockham's: no bits are reversed).

Lanes of vectors are lines, whose elements lie interleaved: the real parts of one element of all lines, then the
imaginary ones. A pass by a factor ``p`` makes of ``p`` elements ``rest`` apart as many that are ``done * rest`` apart:
``done`` is the product of the factors before it, ``rest`` that of those behind it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence

from polyax_cpu import compiler, machine_code
from polyax_cpu.fourier.factors import LARGEST, OWN
from polyax_cpu.libraries.registers import Vectors
from polyax_cpu.llvm import Builder, IrValue, Module

PARAMS = [
    *[("ptr noalias", name) for name in ("source", "target")],
    *[("i64", "done"), ("i64", "rest"), ("ptr", "table"), ("i64", "p")],
]
"""The factor is the last one, for passes that have to be told."""
Pair = tuple[IrValue, IrValue]
"""The real and the imaginary part."""


class Lanes:
    """Elements of as many lines as there are lanes."""

    def __init__(self, b: Builder, kind: Vectors) -> None:
        self.b, self.kind = b, kind

    def at(self, pointer: IrValue, n: IrValue | int) -> IrValue:
        """Where element ``n`` of all lines is."""
        return self.b.at(pointer, n, f"[{2 * self.kind.lanes} x {self.kind.type}]")

    def __call__(self, pointer: IrValue, n: IrValue | int) -> Pair:
        at = self.at(pointer, n)
        return self.kind.load(at), self.kind.load(self.kind.at(at, self.kind.lanes))

    def store(self, pair: Pair, pointer: IrValue, n: IrValue | int) -> None:
        at = self.at(pointer, n)
        for k, x in enumerate(pair):
            self.b.store_lanes(x, self.kind.at(at, k * self.kind.lanes), None)

    def root(self, pointer: IrValue, n: IrValue | int) -> Pair:
        """The complex number at place ``n`` of a table, in all lanes."""
        at = self.b.at(pointer, n, f"[2 x {self.kind.type}]")
        return self._all(at), self._all(self.kind.at(at, 1))

    def _all(self, pointer: IrValue) -> IrValue:
        return self.b.splat(self.kind.single(pointer), self.kind.lanes)

    def zero(self) -> Pair:
        return self.kind.zero(self.b), self.kind.zero(self.b)


# --- arithmetic ------------------------------------------------------------------------------------------------------


def plus(x: Pair, y: Pair) -> Pair:
    return x[0] + y[0], x[1] + y[1]


def minus(x: Pair, y: Pair) -> Pair:
    return x[0] - y[0], x[1] - y[1]


def times(x: Pair, y: Pair) -> Pair:
    b = x[0].b
    return b.intrinsic("fma", x[0], y[0], -(x[1] * y[1])), b.intrinsic("fma", x[0], y[1], x[1] * y[0])


def turned_back(x: Pair) -> Pair:
    """``-i x``."""
    return x[1], -x[0]


def add_multiple(total: Pair, x: Pair, factor: IrValue | float) -> Pair:
    b = x[0].b
    a, c = (b.intrinsic("fma", y, b.splat(y.like(factor), y.lanes), t) for y, t in zip(x, total, strict=True))
    return a, c


# --- few elements ----------------------------------------------------------------------------------------------------


def of_two(x: Sequence[Pair]) -> list[Pair]:
    return [plus(*x), minus(*x)]


def of_four(x: Sequence[Pair]) -> list[Pair]:
    a, b = of_two([x[0], x[2]])
    c, (real, imaginary) = of_two([x[1], x[3]])
    return [plus(a, c), (b[0] + imaginary, b[1] - real), minus(a, c), (b[0] - imaginary, b[1] + real)]


def of_eight(x: Sequence[Pair]) -> list[Pair]:
    even, odd = of_four(x[::2]), of_four(x[1::2])
    half = math.sqrt(0.5)
    odd = [
        odd[0],
        ((odd[1][0] + odd[1][1]) * half, (odd[1][1] - odd[1][0]) * half),
        turned_back(odd[2]),
        ((odd[3][1] - odd[3][0]) * half, -((odd[3][0] + odd[3][1]) * half)),
    ]
    return [f(*pair) for f in (plus, minus) for pair in zip(even, odd, strict=True)]


def of_odd(x: Sequence[Pair]) -> list[Pair]:
    """By sums and differences of places that mirror each other: half of the products."""
    p, first = len(x), x[0]
    sums = [plus(x[j], x[p - j]) for j in range(1, p // 2 + 1)]
    differences = [minus(x[j], x[p - j]) for j in range(1, p // 2 + 1)]
    found = [first] * p
    for s in sums:
        found[0] = plus(found[0], s)
    for m in range(1, p // 2 + 1):
        even, odd = first, None
        for j, (s, d) in enumerate(zip(sums, differences, strict=True), 1):
            angle = 2 * math.pi * (j * m % p) / p
            even = add_multiple(even, s, math.cos(angle))
            odd = add_multiple(odd, d, math.sin(angle)) if odd else (d[0] * math.sin(angle), d[1] * math.sin(angle))
        assert odd is not None
        found[m], found[p - m] = mirrored(even, odd)
    return found


def mirrored(even: Pair, odd: Pair) -> tuple[Pair, Pair]:
    """``even - i odd`` and ``even + i odd``."""
    return (even[0] + odd[1], even[1] - odd[0]), (even[0] - odd[1], even[1] + odd[0])


# --- passes ----------------------------------------------------------------------------------------------------------


def address(type: str, p: int, *, last: bool) -> int:
    """Of the function for a factor; the ``last`` one multiplies by no roots."""
    return _function(type, p if p in OWN else 0, last and p in OWN).address("pass")


@functools.cache
def _function(type: str, p: int, last: bool) -> compiler.LoadedCode:
    return machine_code.written(f"transforms {type} {p} {last}", lambda: _text(type, p, last), ["pass"], {})


def _text(type: str, p: int, last: bool) -> str:
    module = Module(["pass"])
    b = module.function("void", "pass", PARAMS)
    if p:
        _write_own(b, Lanes(b, Vectors(type)), p, last)
    else:
        _write_any(b, Lanes(b, Vectors(type)))
    b.ret()
    return module.text()


def _write_own(b: Builder, lanes: Lanes, p: int, last: bool) -> None:
    source, target, done, rest, table, _ = b.args
    compute = {2: of_two, 4: of_four, 8: of_eight}.get(p, of_odd)
    one = b.const(1, "i64")
    with b.loop(0, done) as k, b.loop(0, one if last else rest) as i:
        found = compute([lanes(source, n) for n in _places(k * p * rest + i, rest, p)])
        roots = b.at(table, i * (p - 1), f"[2 x {lanes.kind.type}]")
        for j, n in enumerate(_places(k * rest + i, done * rest, p)):
            x = found[j] if last or not j else times(found[j], lanes.root(roots, j - 1))
            lanes.store(x, target, n)


def _places(first: IrValue, apart: IrValue, count: int) -> Iterator[IrValue]:
    for _ in range(count):
        yield first
        first = first + apart


def _write_any(b: Builder, lanes: Lanes) -> None:
    """By any odd factor."""
    source, target, done, rest, table, p = b.args
    kind, half, one = lanes.kind, (p - 1) / 2, b.const(1, "i64")
    sums, differences = (b.alloca(kind.type, LARGEST // 2 * 2 * kind.lanes) for _ in range(2))
    angles = kind.at(table, rest * (p - 1) * 2)
    with b.loop(0, done) as k, b.loop(0, rest) as i:
        at, to = lanes.at(source, k * p * rest + i), lanes.at(target, k * rest + i)
        first = lanes(at, 0)

        def add(j: IrValue, total: Sequence[IrValue]) -> Sequence[IrValue]:
            x, y = lanes(at, j * rest), lanes(at, (p - j) * rest)
            s = plus(x, y)
            lanes.store(s, sums, j - 1)
            lanes.store(minus(x, y), differences, j - 1)
            return plus((total[0], total[1]), s)

        total = b.carry(one, half + 1, first, add)
        lanes.store((total[0], total[1]), to, 0)
        with b.loop(1, half + 1, step=2) as m:
            places = m, b.intrinsic("smin", m + 1, half)
            found = _two_places(lanes, first, (sums, differences), angles, places, half)
            for place, pairs in zip(places, found, strict=True):
                for j, x in zip((place, p - place), mirrored(*pairs), strict=True):
                    lanes.store(times(x, lanes.root(table, i * (p - 1) + (j - 1))), to, j * (done * rest))


def _two_places(
    lanes: Lanes,
    first: Pair,
    stored: tuple[IrValue, IrValue],
    angles: IrValue,
    places: tuple[IrValue, IrValue],
    half: IrValue,
) -> list[tuple[Pair, Pair]]:
    """Of two places, what is even and what is odd: what they add up is read once for both."""
    rows = [(place - 1) * half for place in places]

    def term(j: IrValue, totals: Sequence[IrValue]) -> Sequence[IrValue]:
        s, d = (lanes(pointer, j) for pointer in stored)
        new = list[IrValue]()
        for n, row in enumerate(rows):
            cosine, sine = lanes.root(angles, row + j)
            even, odd = (totals[4 * n], totals[4 * n + 1]), (totals[4 * n + 2], totals[4 * n + 3])
            new += [*add_multiple(even, s, cosine), *add_multiple(odd, d, sine)]
        return new

    b = lanes.b
    a = b.carry(b.const(0, "i64"), half, [*first, *lanes.zero()] * 2, term)
    return [((a[n], a[n + 1]), (a[n + 2], a[n + 3])) for n in (0, 4)]
