"""Rows of updates that may meet: in their order, each by vectors, and none under a mask that a later one waits for."""

from __future__ import annotations

import re

import numpy as np
import pytest

import polyax
from polyax.runtime.contract.backend import CompileOptions

R = np.random.default_rng(3)
CPU = polyax.devices("cpu")[0]
ROWS = 500
METHODS = {"add": np.add.at, "multiply": np.multiply.at, "max": np.maximum.at, "min": np.minimum.at}
DTYPES = ("float32", "float64", "int8", "int32", "float16")

pytestmark = pytest.mark.usefixtures("in_64_bits")


def drawn(dtype: str, *shape: int) -> np.ndarray:
    """Products of them are whole numbers, or powers of two, and never rounded."""
    return R.choice([-1, 1], shape).astype(dtype)


def scattered(method: str, x: np.ndarray, n: np.ndarray, y: np.ndarray) -> np.ndarray:
    with polyax.default_device(CPU):
        return np.asarray(polyax.jit(lambda x, n, y: getattr(x.at[n], method)(y, mode="drop"))(x, n, y))


@pytest.mark.parametrize("columns", [1, 2, 3, 7, 16, 20, 33])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", [*METHODS, "set"])
def test_rows_that_meet(method: str, dtype: str, columns: int) -> None:
    """Most do, and some go nowhere; of those that are set the last one stays."""
    x, y = drawn(dtype, 40, columns), drawn(dtype, ROWS, columns) * np.array(2, dtype)
    y = y // np.array(2, dtype) if method == "multiply" else y
    n = R.integers(0, 50, ROWS)
    want, inside = x.copy(), n < len(x)
    if method == "set":
        for row, values in zip(n[inside], y[inside], strict=True):
            want[row] = values
    else:
        METHODS[method](want, n[inside], y[inside])
    np.testing.assert_array_equal(scattered(method, x, n, y), want)


def test_extrema_keep_nan_and_the_signs_of_zeros() -> None:
    x = np.array([[0.0, -0.0, np.nan, 1.0, 2.0]] * 3, "float32")
    y, n = np.array([[-0.0, 0.0, 1.0, np.nan, 1.0]] * 4, "float32"), np.array([0, 0, 2, 0])
    found = scattered("max", x, n, y)
    want = np.array([0.0, 0.0, np.nan, np.nan, 2.0], "float32")
    for row in (0, 2):
        np.testing.assert_array_equal(found[row], want)
        assert not np.signbit(found[row][:2]).any()
    np.testing.assert_array_equal(found[1], x[1])


def test_windows_that_overlap() -> None:
    """They begin anywhere along the axis whose elements are written side by side."""
    x, starts, y = np.zeros(100, "float32"), R.integers(0, 80, 50), drawn("float32", 50, 20)
    numbers = polyax.lax.ScatterDimensionNumbers((1,), (), (0,))
    program = lambda x, n, y: polyax.lax.scatter_add(x, n, y, numbers)
    want = x.copy()
    for start, values in zip(starts, y, strict=True):
        want[start : start + 20] += values
    with polyax.default_device(CPU):
        np.testing.assert_array_equal(polyax.jit(program)(x, starts[:, None], y), want)


@pytest.mark.parametrize(("columns", "vector"), [(8, "<8 x float>"), (3, "<2 x float>")])
def test_each_is_written_by_vectors_under_no_mask(columns: int, vector: str) -> None:
    args = np.zeros((40, columns), "float32"), np.zeros((ROWS, 1), "int32"), np.zeros((ROWS, columns), "float32")
    numbers = polyax.lax.ScatterDimensionNumbers((1,), (0,), (0,))
    closed = polyax.make_jaxpr(lambda x, n, y: polyax.lax.scatter_add(x, n, y, numbers))(*args)
    kernel = CPU.backend.compile(closed, CompileOptions(CPU)).report().kernels[-1]
    assert f"store {vector}" in kernel.source
    assert "masked" not in kernel.source


@pytest.mark.parametrize("dtype", ["int8", "float16", "float64"])
def test_extrema_are_stored_whole(dtype: str) -> None:
    """Where one of a vector changes, all of it is stored: few processors have masks of narrow elements."""
    args = np.zeros((40, 32), dtype), np.zeros((ROWS, 1), "int32"), np.zeros((ROWS, 32), dtype)
    numbers = polyax.lax.ScatterDimensionNumbers((1,), (0,), (0,))
    closed = polyax.make_jaxpr(lambda x, n, y: polyax.lax.scatter_max(x, n, y, numbers))(*args)
    kernel = CPU.backend.compile(closed, CompileOptions(CPU)).report().kernels[-1]
    assert re.search(r"store <\d+ x", kernel.source)
    assert "masked" not in kernel.source


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-42]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("method", ["max", "min"])
@pytest.mark.parametrize("count", [3, 300])
def test_extrema_tell_zeros_apart_and_keep_nan(count: int, method: str, dtype: str) -> None:
    """Where few updates meet, and where many do."""
    y, n = R.choice(np.array(SPECIAL, dtype), 20 * count), np.repeat(np.arange(20), count)
    reduce = {"max": polyax.lax.reduce_max, "min": polyax.lax.reduce_min}[method]
    start = np.full(20, {"max": -np.inf, "min": np.inf}[method], dtype)
    got, want = scattered(method, start, n, y), np.asarray(reduce(y.reshape(20, count), (1,)))
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


@pytest.mark.parametrize(("places", "stores"), [(10, "if it changes"), (1000, "always")])
def test_extrema_are_stored_whether_they_change_where_nobody_could_guess_it(places: int, stores: str) -> None:
    args = np.zeros(places, "int32"), np.zeros((10_000, 1), "int32"), np.zeros(10_000, "int32")
    numbers = polyax.lax.ScatterDimensionNumbers((), (0,), (0,))
    closed = polyax.make_jaxpr(lambda x, n, y: polyax.lax.scatter_max(x, n, y, numbers))(*args)
    kernel = CPU.backend.compile(closed, CompileOptions(CPU)).report().kernels[-1]
    assert ("icmp sgt i32" in kernel.source) == (stores == "if it changes")


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_both_parts_of_complex_updates_are_added_at_once(dtype: str) -> None:
    y, n = (R.standard_normal(200) + 1j * R.standard_normal(200)).astype(dtype), R.integers(0, 7, 200)
    fun = polyax.jit(lambda y, n: polyax.ops.segment_sum(y, n, 6))
    want = np.zeros(7, dtype)
    np.add.at(want, n, y)
    with polyax.default_device(CPU):
        np.testing.assert_allclose(fun(y, n), want[:6], 1e-5, 1e-5)
        closed = polyax.make_jaxpr(lambda y, n: polyax.ops.segment_sum(y, n, 6))(y, n)
    kernels = CPU.backend.compile(closed, CompileOptions(CPU)).report().kernels
    assert len(kernels) == 2, "zeros, and the sums"
