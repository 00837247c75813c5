"""Pairs that are only moved: the same elements by half as many loads and stores; all else is left as it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernels.building import F32, axes, indices

from polyax_kernels.emit.numpy import run
from polyax_kernels.ir.expr import Expr, consing, const, index, load, op
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store
from polyax_kernels.passes.wide_moves import WORD, moved_whole

PAIRS = np.arange(24, dtype=F32).reshape(3, 4, 2)
Value = Callable[[Expr, Expr, Expr], Expr]
"""Of the row, the column and which of two."""


def read(i: Expr, j: Expr, n: Expr, mask: Expr | None = None, other: Expr | None = None) -> Expr:
    return load(0, F32, (i, j, n), mask, other)


def moving(value: Value, rows: int = 4, columns: int = 3, dtype: np.dtype = F32) -> Kernel:
    """``out[i, j, n] = value(i, j, n)``, both words of a pair at each point."""
    i, j = nest = axes(rows, columns)
    stores = tuple([Store(1, (*indices(nest), n), value(index(i), index(j), n)) for n in (const(0), const(1))])
    operands = Operand(PAIRS.shape, dtype, "in"), Operand((rows, columns, 2), dtype, "out")
    return Kernel(nest, (Stage((), stores),), operands)


def padded(i: Expr, j: Expr, n: Expr) -> Expr:
    return read(j, i, n, op("lt", i, const(4)), const(float(n.attr) - 0.5, F32))


MOVES: dict[str, Value] = {
    "transposed": lambda i, j, n: read(j, i, n),
    "reversed": lambda i, j, n: read(const(2) - j, const(3) - i, n),
    "chosen": lambda i, j, n: op("select", op("lt", i, j), read(j, i, n), const(n.attr + 7.0, F32)),
    "padded": padded,
}


@pytest.mark.parametrize("value", MOVES.values(), ids=MOVES)
def test_moves_are_of_whole_pairs(value: Value) -> None:
    with consing():
        kernel = moving(value, 5 if value is padded else 4)
        whole = moved_whole(kernel)
        assert {o.dtype for o in whole.operands} == {WORD} and len(whole.stages[0].stores) == 1
        want = np.zeros(kernel.operands[1].shape, F32)
        run(kernel, [PAIRS, want])
        found = np.zeros(want.shape[:-1], WORD)
        run(whole, [PAIRS.view(WORD)[..., 0], found])
    np.testing.assert_array_equal(found.view(F32).reshape(want.shape), want)


OTHERS: dict[str, Value] = {
    "computed": lambda i, j, n: read(j, i, n) + 1.0,
    "exchanged": lambda i, j, n: read(j, i, const(1 - n.attr)),
    "one half for both": lambda i, j, n: read(j, i, const(0)),
    "of two places": lambda i, j, n: read(j, i, n) if n.attr else read(j, const(0), n),
    "by what a half is": lambda i, j, n: op(
        "select", op("lt", read(j, i, const(0)), const(1.0, F32)), read(j, i, n), const(0.0, F32)
    ),
    "by other conditions": lambda i, j, n: op("select", op("lt", i, n), read(j, i, n), const(0.0, F32)),
}


@pytest.mark.parametrize("value", OTHERS.values(), ids=OTHERS)
def test_what_does_more_is_left_as_it_is(value: Value) -> None:
    with consing():
        kernel = moving(value)
        assert moved_whole(kernel) is kernel


def test_pairs_of_wide_numbers_are_left_as_they_are() -> None:
    with consing():
        kernel = moving(lambda i, j, n: load(0, "float64", (j, i, n)), dtype=np.dtype("float64"))
        assert moved_whole(kernel) is kernel
