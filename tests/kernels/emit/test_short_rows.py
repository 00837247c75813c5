"""Short rows: many are computed side by side, with the bits that they have in any other kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernels.building import F32, assert_gives, axes, indices

import polyax
import polyax.numpy as jnp
from polyax_kernels.emit.schedule import choose
from polyax_kernels.emit.short_rows import MOST, ROWS, suits, written_out
from polyax_kernels.ir.expr import Axis, consing, const, fold, folds_of, index, load, op
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store, kernel_roots
from polyax_kernels.passes.for_emission import flatten

RNG = np.random.default_rng(0)
COUNT = ROWS + 5


def scaled(count: int, size: int, work: str = "exp", combine: str = "add") -> Kernel:
    """``out[i, j] = x[i, j] * work(total of x[i])``."""
    (rows,) = axes(count)
    i, r, j = index(rows), Axis(size, "r"), Axis(size, "j")
    total = fold(combine, (r,), (const(0.5, F32),), (load(0, F32, (i, index(r))),))
    store = Store(1, (i, index(j)), load(0, F32, (i, index(j))) * op(work, total))
    operands = Operand((count, size), F32, "in"), Operand((count, size), F32, "out")
    return Kernel((rows,), (Stage((j,), (store,)),), operands)


def softmax(count: int, size: int) -> Kernel:
    """Each row keeps its exponentials for itself."""
    (rows,) = axes(count)
    i, r, j, k = index(rows), Axis(size, "r"), Axis(size, "j"), Axis(size, "k")
    kept = Store(2, (index(j),), op("exp", load(0, F32, (i, index(j)))))
    total = fold("add", (r,), (const(0, F32),), (load(2, F32, (index(r),)),))
    store = Store(1, (i, index(k)), load(2, F32, (index(k),)) / total)
    operands = Operand((count, size), F32, "in"), Operand((count, size), F32, "out"), Operand((size,), F32, "local")
    return Kernel((rows,), (Stage((j,), (kept,)), Stage((k,), (store,))), operands)


def check(kernel: Kernel, x: np.ndarray, want: np.ndarray) -> None:
    flat = flatten(kernel)
    assert suits(flat) and choose(kernel).short_rows
    straight = written_out(flat)
    assert not folds_of(*kernel_roots(straight)) and [stage.axes for stage in straight.stages] == [()]
    assert_gives(kernel, x, want, rtol=1e-5)


@pytest.mark.parametrize("size", [2, 3, 4, 7, 8])
def test_what_a_row_has_in_all_scales_its_elements(size: int) -> None:
    x = RNG.uniform(-1, 1, (COUNT, size)).astype(F32)
    with consing():
        check(scaled(COUNT, size), x, x * np.exp(0.5 + x.sum(1, keepdims=True)))
        check(scaled(COUNT, size, combine="max"), x, x * np.exp(np.maximum(x.max(1, keepdims=True), 0.5)))


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_what_a_row_keeps_is_read_where_it_was_written(size: int) -> None:
    x = RNG.uniform(-1, 1, (COUNT, size)).astype(F32)
    with consing():
        check(softmax(COUNT, size), x, np.exp(x) / np.exp(x).sum(1, keepdims=True))


def test_the_last_axes_of_a_grid_are_a_row() -> None:
    x = RNG.uniform(-1, 1, (COUNT, 2, 3)).astype(F32)
    with consing():
        i, j, k = indices(grid := axes(COUNT, 2, 3))
        value = op("exp", load(0, F32, (i, const(0), const(1)))) * load(0, F32, (i, j, k))
        operands = Operand(x.shape, F32, "in"), Operand(x.shape, F32, "out")
        check(Kernel(grid, (Stage((), (Store(1, (i, j, k), value),)),), operands), x, np.exp(x[:, :1, 1:2]) * x)


@pytest.mark.parametrize("size", [2, 3, 8])
def test_rows_of_one_element_repeated(size: int) -> None:
    x = RNG.uniform(-1, 1, COUNT).astype(F32)
    with consing():
        check(repeated(size), x, np.repeat(x[:, None], size, 1))
        assert not suits(flatten(repeated(13)))


def repeated(size: int) -> Kernel:
    i, j = indices(grid := axes(COUNT, size))
    operands = Operand((COUNT,), F32, "in"), Operand((COUNT, size), F32, "out")
    return Kernel(grid, (Stage((), (Store(1, (i, j), load(0, F32, (i,))),)),), operands)


def test_only_where_it_pays() -> None:
    with consing():
        assert suits(flatten(scaled(COUNT, 6, "sqrt"))) and not suits(flatten(scaled(COUNT, 7, "sqrt")))
        assert not suits(flatten(scaled(COUNT, 2, "abs")))  # little work
        assert not suits(flatten(scaled(ROWS - 1, 2)))  # few rows
        assert not suits(flatten(scaled(COUNT, 9))) and suits(flatten(scaled(COUNT, 9, "erf")))
        assert suits(flatten(scaled(COUNT, MOST, "erf"))) and not suits(flatten(scaled(COUNT, MOST + 1, "erf")))


@pytest.mark.parametrize(("dtype", "most"), [("int8", 6), ("uint16", 3), ("float16", 3), ("float32", 0)])
def test_rows_of_narrow_elements(dtype: str, most: int) -> None:
    """They are worth it whatever is done, while they are short: ``x * row``, with the bits of any other kernel."""
    kind = np.dtype(dtype)
    with consing():
        for size in (2, 3, 4, 6, 7):
            i, j = indices(grid := axes(COUNT, size))
            store = Store(2, (i, j), load(0, kind, (i, j)) * load(1, kind, (j,)))
            shapes = ((COUNT, size), "in"), ((size,), "in"), ((COUNT, size), "out")
            operands = tuple([Operand(shape, kind, role) for shape, role in shapes])
            assert suits(flatten(Kernel(grid, (Stage((), (store,)),), operands))) == (size <= most)
    x, row = RNG.integers(1, 9, (COUNT, 3)).astype(kind), RNG.integers(1, 9, 3).astype(kind)
    found = polyax.jit(lambda x, row: x * row)(x, row)
    np.testing.assert_array_equal(np.asarray(found), x * row)


def test_rows_that_read_what_is_written_or_add_to_it_have_loops() -> None:
    with consing():
        kernel = flatten(scaled(COUNT, 2))
        (stage,) = kernel.stages
        (store,) = stage.stores

        def changed(**parts: Any) -> Kernel:
            new = Store(**{**store.__dict__, **parts})
            return Kernel(kernel.grid, (Stage(stage.axes, (new,)),), kernel.operands)

        reread = load(1, F32, store.indices)
        assert not suits(changed(value=store.value + reread)) and not suits(changed(combine="add"))


def _power(total: Any) -> Any:
    return jnp.power(jnp.abs(total) + 1, 1.3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sum", "prod", "max"])
def test_reductions_have_the_same_bits_in_rows_side_by_side(name: str, dtype: str) -> None:
    total: Callable[[Any], Any] = lambda x: getattr(x, name)(-1)
    programs: list[Callable[[Any], Any]] = [
        lambda x: (total(x), _power(total(x)))[0],
        lambda x: (total(x), x * _power(total(x))[:, None])[0],
    ]
    with polyax.enable_x64(True):
        for size in range(2, MOST + 1):
            x = RNG.normal(size=(200, size)).astype(dtype)
            want = polyax.jit(total)(x)
            for program in programs:
                np.testing.assert_array_equal(polyax.jit(program)(x), want, err_msg=f"{size} elements")
