"""The lanes of several vectors put together at once: where one is halved alone, each step waits for the one before.

Two vectors of which each lane is to be combined with the one half a vector away become one: the first halves of both,
lane by lane in turn, are combined with the second halves. All vectors end up as one, with a lane for each, in order.
Knows no kernels.
"""

from __future__ import annotations

from collections.abc import Callable

from polyax_cpu.llvm import Builder, IrValue


def totals(
    b: Builder, memory: IrValue, side: int, type: str, combine: Callable[[IrValue, IrValue], IrValue]
) -> IrValue:
    """A lane for each ``row``, of what ``memory[row * side:][:side]`` combines to, by halves; ``side``, a power of two,
    is also the number of rows. What is in memory is lost."""
    half, zero, none = side // 2, b.const(0, "i64"), b.const(0, type)
    first = [n // 2 + side * (n % 2) for n in range(side)]
    with b.loop(zero, b.const(side.bit_length() - 1, "i64")) as step:
        pairs = b.plain("lshr", b.const(half, "i64"), step)
        with b.loop(zero, pairs) as n:
            at, other = (b.at(memory, place * side, type) for place in (n, n + pairs))
            x, y = (b.load_lanes(place, type, side, None, none) for place in (at, other))
            halves = (b.mixed(x, y, [k + start for k in first]) for start in (0, half))
            b.store_lanes(combine(*halves), at, None)
    return b.load_lanes(memory, type, side, None, none)
