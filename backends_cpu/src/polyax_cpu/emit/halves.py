"""Vectors of words of 64 bits that are put together of halves, or taken apart: one shuffle each, where conversions and
shifts would be several instructions a register."""

from __future__ import annotations

from polyax_cpu.llvm import Builder, IrValue

WORD, HALF, BITS = "i64", "i32", 32


class OfHalves(IrValue):
    """Words of a ``low`` and a ``high`` half, None: zeros. They are put together where they are needed as such."""

    __slots__ = ("high", "low")

    def __init__(self, low: IrValue | None, high: IrValue | None = None) -> None:
        some = low if low is not None else high
        assert some is not None
        super().__init__(some.b, WORD, "", some.lanes)
        self.low, self.high = low, high

    @property
    def name(self) -> str:
        low, high = (self._zeros() if x is None else x for x in (self.low, self.high))
        order = [n + half for n in range(self.lanes) for half in (0, self.lanes)]
        return _as(self.b, self.b.mixed(low, high, order), WORD, self.lanes).name

    def _zeros(self) -> IrValue:
        return self.b.splat(self.b.const(0, HALF), self.lanes)


def word_of(name: str, x: IrValue, y: IrValue) -> IrValue | None:
    """The operation ``name`` on vectors of words, if it does nothing but move halves."""
    if name == "or" and isinstance(x, OfHalves) and isinstance(y, OfHalves):
        return OfHalves(x.low, y.high) if x.high is None and y.low is None else None
    if x.lanes == 1 or y.name != str(BITS):
        return None
    if name == "shift_left" and isinstance(x, OfHalves):
        return OfHalves(None, x.low)
    return OfHalves(_half(x, 1)) if name == "shift_right_logical" else None


def low_half(word: IrValue) -> IrValue:
    """The lower halves of a vector of words."""
    return word.low if isinstance(word, OfHalves) and word.low is not None else _half(word, 0)


def _half(word: IrValue, which: int) -> IrValue:
    halves = _as(word.b, word, HALF, 2 * word.lanes)
    return word.b.mixed(halves, halves, range(which, 2 * word.lanes, 2))


def _as(b: Builder, x: IrValue, type: str, lanes: int) -> IrValue:
    return b.emit(type, f"bitcast {x} to <{lanes} x {type}>", lanes)
