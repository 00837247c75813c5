"""Words of 64 bits and their halves: what kernels do with them by shuffles is what shifts and conversions mean."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from cpu.test_emitter import F32, outcomes
from cpu.test_lanes import LENGTHS, rows

from polyax_cpu import kernels
from polyax_kernels.ir.expr import Axis, Expr, bitcast, cast, consing, const, index, load, op
from polyax_kernels.passes.words import HALF, WORD

Words = Callable[[Expr, Expr], Expr]


def shifted(x: Expr, n: int) -> Expr:
    return op("shift_left" if n > 0 else "shift_right_logical", x, const(abs(n), WORD))


def low(x: Expr) -> Expr:
    return cast(x, HALF)


def high(x: Expr) -> Expr:
    return cast(shifted(x, -32), HALF)


def wide(x: Expr) -> Expr:
    return cast(x, WORD)


PROGRAMS: dict[str, Words] = {
    "sums of halves": lambda x, y: op("or", wide(low(x) + low(y)), shifted(wide(high(x) * high(y)), 32)),
    "exchanged": lambda x, y: op("or", wide(high(x)), shifted(wide(low(y)), 32)),
    "high ones first": lambda x, y: op("or", shifted(wide(low(y)), 32), wide(high(x))),
    "both low": lambda x, y: op("or", wide(low(x)), wide(low(y))),
    "both high": lambda x, y: op("or", shifted(wide(low(x)), 32), shifted(wide(high(y)), 32)),
    "three": lambda x, y: op("or", op("or", wide(low(x)), shifted(wide(low(y)), 32)), wide(high(y))),
    "only low": lambda x, y: wide(low(x) + low(y)),
    "only high": lambda x, y: shifted(wide(low(x) + low(y)), 32),
    "computed with": lambda x, y: wide(low(x)) * wide(high(y)) + shifted(wide(low(y)), 32),
    "low of low": lambda x, y: wide(low(wide(low(x)))) + wide(low(shifted(wide(low(y)), 32))),
    "high of high": lambda x, y: wide(high(shifted(wide(high(x)), 32))) + wide(high(wide(low(y)))),
    "other shifts": lambda x, y: op("or", shifted(wide(low(x)), 16), shifted(y, -31)),
    "numbers": lambda x, y: op("or", wide(const(7, HALF)), shifted(wide(low(y) + low(x)), 32)),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_halves_mean_what_shifts_and_conversions_do(program: Words) -> None:
    rng = np.random.default_rng(0)
    for length in LENGTHS:
        with consing():
            axis = Axis(length)
            x, y = (load(n, WORD, (index(axis),)) for n in range(2))
            data = [rng.integers(0, 1 << 64, length, WORD) for _ in range(2)]
            got, expected = outcomes(rows(length, program(x, y), [WORD, WORD], (axis,)), data)
        np.testing.assert_array_equal(got, expected, err_msg=str(length))


def test_vectors_of_words_are_taken_apart_by_shuffles() -> None:
    with consing():
        axis = Axis(256)
        x = load(0, WORD, (index(axis),))
        parts = [bitcast(half(x), F32) * 2.0 for half in (low, high)]
        bits = [wide(bitcast(part, HALF)) for part in parts]
        kernel = rows(256, op("or", bits[0], shifted(bits[1], 32)), [WORD], (axis,))
        text = kernels.source(kernel)
    for places in ("i32 0, i32 2, i32 4", "i32 1, i32 3, i32 5"):
        assert re.search(rf"shufflevector <\d+ x i32> %\w+, <\d+ x i32> %\w+, <\d+ x i32> <{places}", text)
    assert not re.search("(lshr|shl|zext|trunc) <", text)
