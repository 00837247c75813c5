"""Operands of products as matrices that are not stored as such: where each element lies, and in which there is none.

A view covers transposes, several dimensions seen as one, and the windows of convolutions, so that none is ever copied.
Gives the text that finds elements; knows nothing of how products are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from polyax_kernels.gpu.emitter import GpuEmitter
from polyax_kernels.ir import products

N = TypeVar("N", int, str)


@dataclass(frozen=True)
class Digit(Generic[N]):
    """One dimension that an index runs over: a step moves by ``step`` elements, or the position in a window by it."""

    size: N
    step: N
    window: int | None = None


@dataclass(frozen=True)
class Gathered:
    """A dimension of ``extent`` elements ``stride`` apart in memory, at positions 0, ``dilation``, 2 ``dilation``, ...

    Positions begin at ``start``; where there is no element, the matrices have zeros.
    """

    extent: int
    stride: int
    start: int = 0
    dilation: int = 1

    def contains(self, digits: Iterable[Digit[int]]) -> bool:
        """Whether there is an element at each position, and elements are positions."""
        return not self.start and self.dilation == 1 and sum((d.size - 1) * d.step for d in digits) < self.extent


@dataclass(frozen=True)
class Matrices:
    """A batch of matrices: ``lanes`` are the rows of a left operand or the columns of a right one, ``depth`` is what is
    summed over. The last digit of an index changes fastest."""

    batch: tuple[Digit[int], ...]
    lanes: tuple[Digit[int], ...]
    depth: tuple[Digit[int], ...]
    windows: tuple[Gathered, ...] = ()

    @classmethod
    def of(cls, side: products.Side) -> Matrices:
        """An operand of a ``dot_general``."""
        batch, lanes, depth = (tuple(Digit(*d) for d in ds) for ds in (side.batch, side.free, side.contracted))
        return cls(batch, lanes, depth)

    def simplified(self) -> Matrices:
        """The same with as few digits and windows as it can be: windows that are never left are plain dimensions."""
        every = (*self.batch, *self.lanes, *self.depth)
        kept = [n for n, w in enumerate(self.windows) if not w.contains(d for d in every if d.window == n)]

        def plain(digit: Digit[int]) -> Digit[int]:
            if digit.window is None:
                return digit
            if digit.window in kept:
                return Digit(digit.size, digit.step, kept.index(digit.window))
            return Digit(digit.size, digit.step * self.windows[digit.window].stride)

        batch, lanes, depth = (joined([plain(d) for d in digits]) for digits in (self.batch, self.lanes, self.depth))
        return Matrices(batch, lanes, depth, tuple(self.windows[n] for n in kept))

    @property
    def along_depth(self) -> bool:
        """Whether memory runs along the depth rather than along the lanes, or there is one lane."""
        return self._stride(self.depth) <= self._stride(self.lanes)

    def _stride(self, digits: Sequence[Digit[int]]) -> float:
        """Between neighbours."""
        if not digits:
            return float("inf")
        last = digits[-1]
        if last.window is None:
            return last.step
        window = self.windows[last.window]
        return last.step * window.stride / window.dilation

    def straight(self, width: int) -> bool:
        """Whether in each group of ``width`` lanes the same step leads from one to the next. There are lanes."""
        last = self.lanes[-1]
        return last.window is None and (len(self.lanes) == 1 or last.size % width == 0)


def joined(digits: Sequence[Digit[int]]) -> tuple[Digit[int], ...]:
    """The same index with neighbouring digits joined that step through memory as one."""
    result: list[Digit[int]] = []
    for window, group in groupby((d for d in digits if d.size != 1), key=lambda d: d.window):
        if window is None:
            result += [Digit(*d) for d in products.merged([(d.size, d.step) for d in group])]
        else:
            result += group
    return tuple(result)


def size(digits: Sequence[Digit[int]]) -> int:
    return prod(d.size for d in digits)


@dataclass(frozen=True)
class Spot:
    """Where an element is: its offset, and its position in each window; all of them texts of sums."""

    offset: str
    positions: tuple[str, ...]

    def plus(self, other: Spot) -> Spot:
        pairs = zip(self.positions, other.positions, strict=True)
        return Spot(added(self.offset, other.offset), tuple(added(a, b) for a, b in pairs))


def added(*terms: str) -> str:
    return " + ".join(t for t in terms if t != "0") or "0"


class WindowWords(NamedTuple):
    """A window's numbers as texts."""

    start: str
    last: str
    dilation: str
    stride: str


def _window(window: Gathered, numbers: Numbers) -> WindowWords:
    last = (window.extent - 1) * window.dilation
    start, last, dilation = (numbers.index(n) for n in (window.start, last, window.dilation))
    return WindowWords(start, last, dilation, numbers.wide(window.stride))


def times(a: str, b: str) -> str:
    return "0" if "0" in (a, b) else b if a == "1" else a if b == "1" else f"{a} * {b}"


class Numbers:
    """The numbers of a program that its launches pass: equal texts with other numbers are compiled once."""

    def __init__(self, emitter: GpuEmitter) -> None:
        self.emitter = emitter
        self.values: list[int] = []

    def index(self, value: int) -> str:
        """A number that fits in 32 bits. Zeros and ones are written into the text, where they simplify it."""
        return str(value) if value in (0, 1) else self.passed(value, "int32")

    def wide(self, value: int) -> str:
        return str(value) if value in (0, 1) else self.passed(value, "int64")

    def passed(self, value: int, type: str) -> str:
        """A number that is not written into the text."""
        self.values.append(value)
        return self.emitter.param(len(self.values) - 1, np.dtype(type))


class Finder:
    """Writes the lines that find elements of ``matrices``, operand number ``slot``, with numbers that launches pass."""

    def __init__(self, emitter: GpuEmitter, numbers: Numbers, matrices: Matrices, slot: int) -> None:
        self.emitter = emitter
        self.slot = slot
        self.batch, self.lanes, self.depth = (
            [
                Digit(numbers.index(d.size), (numbers.wide if d.window is None else numbers.index)(d.step), d.window)
                for d in digits
            ]
            for digits in (matrices.batch, matrices.lanes, matrices.depth)
        )
        self.windows = [_window(w, numbers) for w in matrices.windows]

    @property
    def nowhere(self) -> Spot:
        return Spot("0", ("0",) * len(self.windows))

    @property
    def start(self) -> Spot:
        """Where windows begin."""
        return Spot("0", tuple(w.start for w in self.windows))

    def spot(self, digits: Sequence[Digit[str]], index: str) -> Spot:
        """What ``index``, a variable, adds."""
        found, rest = self.nowhere, index
        for digit in reversed(digits[1:]):
            found = found.plus(self.moved(digit, self.variable(f"{rest} % {digit.size}")))
            rest = self.variable(f"{rest} / {digit.size}")
        return found.plus(self.moved(digits[0], rest)) if digits else found

    def moved(self, digit: Digit[str], value: str) -> Spot:
        """What the digit's ``value`` adds."""
        step = times(value, digit.step)
        if digit.window is None:
            return Spot(step, self.nowhere.positions)
        return Spot("0", tuple(step if n == digit.window else "0" for n in range(len(self.windows))))

    def variable(self, text: str, type: str = "int32") -> str:
        name = self.emitter.fresh("q")
        self.emitter.lines.append(f"const {self.emitter.types[type]} {name} = {text};")
        return name

    def kept(self, spot: Spot) -> Spot:
        """The same, in variables."""
        return Spot(self.variable(spot.offset, "int64"), tuple(self.variable(p) for p in spot.positions))

    def nest(self, digits: Sequence[Digit[str]], body: Callable[[Spot], None]) -> None:
        """Loops over all values of an index, in order."""
        lines, type = self.emitter.lines, self.emitter.types["int32"]
        found = self.nowhere
        for digit in digits:
            i = self.emitter.fresh("i")
            lines.append(f"for ({type} {i} = 0; {i} < {digit.size}; {i}++) {{")
            found = found.plus(self.moved(digit, i))
        body(found)
        lines.extend("}" for _ in digits)

    def load(self, spot: Spot, dtype: np.dtype, target: np.dtype, mask: str | None = None) -> str:
        """The element there as a ``target``; zero where there is none, or where ``mask`` doesn't hold."""
        offset, conditions = spot.offset, [] if mask is None else [mask]
        for window, position in zip(self.windows, spot.positions, strict=True):
            p = self.variable(position)
            conditions += [f"{p} >= 0", f"{p} <= {window.last}"]
            if window.dilation != "1":
                conditions.append(f"{p} % {window.dilation} == 0")
                p = f"({p} / {window.dilation})"
            offset = added(offset, times(p, window.stride))
        found = self.emitter.load(self.slot, offset, dtype, " && ".join(conditions) or None, "0")
        return self.emitter.cast(found, dtype, target)
