"""What is done with blocks besides passes: transforms of real numbers are made of complex ones of half their length, or
of halves that mirror each other; long lines are transformed as matrices.
"""

from __future__ import annotations

import functools

from polyax_cpu import compiler, machine_code
from polyax_cpu.fourier.passes import Lanes, Pair, minus, plus, times, turned_back
from polyax_cpu.libraries.registers import Vectors
from polyax_cpu.llvm import IrValue, Module

SPLIT, JOIN, MIRROR, BETWEEN = "split", "join", "mirror", "between"
BEFORE = JOIN, MIRROR
"""What comes before the passes."""
PARAMS = [
    *[("ptr", name) for name in ("source", "target", "table")],
    *[("i64", name) for name in ("size", "first", "pitch")],
]
"""The last two: the first column of the block, and how far apart rows are in the table."""


def address(type: str, name: str) -> int:
    return _function(type, name).address(name)


@functools.cache
def _function(type: str, name: str) -> compiler.LoadedCode:
    return machine_code.written(f"transforms {type} {name}", lambda: _text(type, name), [name], {})


def _text(type: str, name: str) -> str:
    module = Module([name])
    b = module.function("void", name, PARAMS)
    {SPLIT: _split, JOIN: _join, MIRROR: _mirror, BETWEEN: _between}[name](Lanes(b, Vectors(type)), *b.args)
    b.ret()
    return module.text()


def _conjugate(x: Pair) -> Pair:
    return x[0], -x[1]


def _split(lanes: Lanes, source: IrValue, target: IrValue, table: IrValue, size: IrValue, *_: IrValue) -> None:
    """The transform of real numbers, where every second one was taken for the imaginary part of that before it."""
    lanes.store(lanes(source, 0), source, size)
    half = lanes.b.splat(lanes.b.const(0.5, lanes.kind.type), lanes.kind.lanes)
    with lanes.b.loop(0, size + 1) as k:
        x, y = lanes(source, k), _conjugate(lanes(source, size - k))
        even, odd = ((z[0] * half, z[1] * half) for z in (plus(x, y), minus(x, y)))
        lanes.store(plus(even, times(turned_back(odd), lanes.root(table, k))), target, k)


def _join(lanes: Lanes, source: IrValue, target: IrValue, table: IrValue, size: IrValue, *_: IrValue) -> None:
    """Twice what ``_split`` takes, with real and imaginary parts exchanged."""
    b = lanes.b
    for end in (b.const(0, "i64"), size):
        _make_real(lanes, source, end)
    with b.loop(0, size) as k:
        x, y = lanes(source, k), _conjugate(lanes(source, size - k))
        odd = times(minus(x, y), _conjugate(lanes.root(table, k)))
        real, imaginary = minus(plus(x, y), turned_back(odd))
        lanes.store((imaginary, real), target, k)


def _mirror(lanes: Lanes, source: IrValue, target: IrValue, _: IrValue, size: IrValue, *__: IrValue) -> None:
    """All elements of which the first half is known, with real and imaginary parts exchanged."""
    b = lanes.b
    _make_real(lanes, source, b.const(0, "i64"))
    real, imaginary = lanes(source, 0)
    lanes.store((imaginary, real), target, 0)
    with b.loop(1, size / 2 + 1) as k:
        real, imaginary = lanes(source, k)
        lanes.store((imaginary, real), target, k)
        lanes.store((-imaginary, real), target, size - k)


def _make_real(lanes: Lanes, pointer: IrValue, n: IrValue) -> None:
    """What is imaginary of numbers that can only be real is not looked at."""
    lanes.store((lanes(pointer, n)[0], lanes.zero()[1]), pointer, n)


def _between(
    lanes: Lanes, source: IrValue, target: IrValue, table: IrValue, size: IrValue, first: IrValue, pitch: IrValue
) -> None:
    """By the roots between columns and rows of a matrix."""
    with lanes.b.loop(0, size) as k:
        row = lanes.kind.at(table, k * 2 * pitch + first)
        root = lanes.kind.load(row), lanes.kind.load(lanes.kind.at(row, pitch))
        lanes.store(times(lanes(source, k), root), target, k)
