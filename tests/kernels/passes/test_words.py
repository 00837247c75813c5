"""Pairs as words of 64 bits: the same elements by half as many loads and stores, and nothing else is changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from kernels.building import F32, axes, indices

from polyax_kernels.emit.numpy import run
from polyax_kernels.ir.expr import Expr, consing, const, index, load, op, postorder
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store, kernel_roots
from polyax_kernels.passes.words import WORD, in_words

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


def in_both_ways(kernel: Kernel) -> Kernel:
    """The kernel on words, which gives the same bits."""
    whole = in_words(kernel)
    want = np.zeros(kernel.operands[1].shape, F32)
    run(kernel, [PAIRS, want])
    found = np.zeros_like(want)
    places = zip((PAIRS, found), whole.operands, strict=True)
    run(whole, [x.view(WORD)[..., 0] if o.dtype == WORD else x for x, o in places])
    np.testing.assert_array_equal(found.view(np.uint32), want.view(np.uint32))
    return whole


def put_together(kernel: Kernel) -> int:
    return sum(x.kind == "cast" for x in postorder(*kernel_roots(kernel)))


@pytest.mark.parametrize("value", MOVES.values(), ids=MOVES)
def test_moves_are_of_whole_pairs(value: Value) -> None:
    with consing():
        whole = in_both_ways(moving(value, 5 if value is padded else 4))
        assert {o.dtype for o in whole.operands} == {WORD} and len(whole.stages[0].stores) == 1
        assert put_together(whole) == 0


OTHERS: dict[str, Value] = {
    "computed": lambda i, j, n: read(j, i, n) + 1.0,
    "exchanged": lambda i, j, n: read(j, i, const(1 - n.attr)),
    "one half for both": lambda i, j, n: read(j, i, const(0)),
    "of two places": lambda i, j, n: read(j, i, n) if n.attr else read(j, const(0), n),
    "by what a half is": lambda i, j, n: op(
        "select", op("lt", read(j, i, const(0)), const(1.0, F32)), read(j, i, n), const(0.0, F32)
    ),
    "by other conditions": lambda i, j, n: op("select", op("lt", i, n), read(j, i, n), const(0.0, F32)),
    "only one half in memory": lambda i, j, n: read(j, i, n, op("lt", i, const(2)), read(j, j, const(0)) + 1.0),
    "negated": lambda i, j, n: read(j, i, n) if n.attr == 0 else -read(j, i, n),
}


@pytest.mark.parametrize("value", OTHERS.values(), ids=OTHERS)
def test_words_are_taken_apart_where_halves_are_needed(value: Value) -> None:
    with consing():
        whole = in_both_ways(moving(value))
        assert {o.dtype for o in whole.operands} == {WORD} and len(whole.stages[0].stores) == 1
        assert put_together(whole) > 0


def test_halves_that_nobody_knows_are_left_as_they_are() -> None:
    """Which of two is read, or written, is then the index of an axis."""
    with consing():
        i, j, n = axes(3, 4, 2)
        stores = (Store(1, indices((i, j, n)), read(index(i), index(j), index(n)) * 2.0),)
        operands = Operand(PAIRS.shape, F32, "in"), Operand(PAIRS.shape, F32, "out")
        kernel = Kernel((i, j, n), (Stage((), stores),), operands)
        assert in_both_ways(kernel) is kernel


def test_pairs_that_are_read_whole_are_words_where_others_are_not() -> None:
    with consing():
        nest = axes(3, 4)
        row, column = indices(nest)
        halves = [read(row, column, const(n)) for n in range(2)]
        stores = (Store(1, (row, column, const(0)), halves[0] * halves[1]),)
        operands = Operand(PAIRS.shape, F32, "in"), Operand(PAIRS.shape, F32, "out")
        kernel = Kernel(nest, (Stage((), stores),), operands)
        assert [o.dtype for o in in_both_ways(kernel).operands] == [WORD, F32]
        sums = replace(
            kernel, stages=(Stage((), (*stores, Store(1, (row, column, const(1)), halves[0], combine="add"))),)
        )
        assert [o.dtype for o in in_both_ways(sums).operands] == [WORD, F32]


def test_a_number_is_no_pair() -> None:
    with consing():
        operands = Operand((), F32, "in"), Operand((1, 2), F32, "out")
        stores = tuple([Store(1, (const(0), const(n)), load(0, F32, ())) for n in range(2)])
        whole = in_words(Kernel((), (Stage((), stores),), operands))
        assert [o.dtype for o in whole.operands] == [F32, WORD]
        found = np.zeros(1, WORD)
        run(whole, [np.array(3.0, F32), found])
        assert found.view(F32).tolist() == [3.0, 3.0]


def test_pairs_of_wide_numbers_are_left_as_they_are() -> None:
    with consing():
        kernel = moving(lambda i, j, n: load(0, "float64", (j, i, n)), dtype=np.dtype("float64"))
        assert in_words(kernel) is kernel
