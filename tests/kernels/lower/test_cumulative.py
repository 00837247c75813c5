"""Running values of few long rows, in chunks, and of narrow numbers, in float32: against loops in float64."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax.ops.recurrence import linear_recurrence
from polyax_kernels.lower import cumulative

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
    "cumlogsumexp": np.logaddexp.accumulate,
}
PROGRAMS = {p.name: program for p, program in cumulative.PROGRAMS.items()}
LENGTHS = (2, 17, 64, 100)
RNG = np.random.default_rng(12)


def lines(x: Any, axis: int, reverse: bool) -> Any:
    """``x`` from where the cumulation begins; its own inverse."""
    return np.flip(x, axis) if reverse else x


@pytest.mark.parametrize("name, axis, reverse", list(product(FUNCTIONS, (0, 1), (False, True))))
def test_chunks_give_what_a_loop_gives(name: str, axis: int, reverse: bool) -> None:
    for length in LENGTHS:
        x = RNG.uniform(0.5, 1.5, (length, 3) if axis == 0 else (3, length)).astype(np.float32)
        program = PROGRAMS[name]([polyax.typeof(x)], axis=axis, reverse=reverse)
        assert name in str(program)
        (found,) = polyax.jit(polyax.extend.core.jaxpr_as_fun(program))(x)
        want = lines(FUNCTIONS[name](lines(x.astype(np.float64), axis, reverse), axis), axis, reverse)
        np.testing.assert_allclose(found, want, rtol=1e-5)


@pytest.mark.parametrize("reverse", (False, True))
def test_chunks_of_recurrences_give_what_a_loop_gives(reverse: bool) -> None:
    for length in LENGTHS:
        a, b = RNG.uniform(-1, 1, (2, length, 3)).astype(np.float32)
        program = PROGRAMS["linear_recurrence"]([polyax.typeof(a)] * 2, axis=0, reverse=reverse)
        (found,) = polyax.jit(polyax.extend.core.jaxpr_as_fun(program))(a, b)
        want = lines(b.astype(np.float64), 0, reverse)
        for i in range(1, length):
            want[i] += lines(a, 0, reverse)[i] * want[i - 1]
        np.testing.assert_allclose(found, lines(want, 0, reverse), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_infinities_pass_through_chunks(name: str) -> None:
    x = np.zeros(100, np.float32)
    x[[3, 60]] = -np.inf
    (found,) = polyax.jit(polyax.extend.core.jaxpr_as_fun(PROGRAMS[name]([polyax.typeof(x)], axis=0, reverse=False)))(x)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found, FUNCTIONS[name](x), rtol=1e-5)


@pytest.mark.parametrize("dtype", ("bfloat16", "float16"))
def test_running_values_of_narrow_numbers_are_rounded_once(dtype: str) -> None:
    x = polyax.numpy.ones((2, 1000), dtype)
    for reverse in (False, True):
        found = polyax.jit(lambda x, r=reverse: lax.cumsum(x, 1, r))(x)
        assert found.dtype == dtype and float(found[1, 0 if reverse else -1]) == 1000
    factors = polyax.numpy.full(100, 1.0078125, dtype)
    want = polyax.numpy.asarray(1.0078125 ** np.arange(1, 101), dtype)
    np.testing.assert_array_equal(polyax.jit(lax.cumprod)(factors), want)
    sums = polyax.jit(lambda x: linear_recurrence(x, x, 1))(x)
    assert float(sums[0, -1]) == 1000


def kernels_of(fun: Callable[..., Any], shape: tuple[int, ...]) -> int:
    return len(polyax.explain(fun)(polyax.ShapeDtypeStruct(shape, np.float32)).report.kernels)


def test_rows_are_cut_into_chunks_where_they_are_few_and_long() -> None:
    run = lambda x: lax.cumsum(x, x.ndim - 1)
    assert kernels_of(run, (1 << 12,)) == kernels_of(run, (64, 1 << 17)) == 1 < kernels_of(run, (2, 1 << 17))


def test_what_is_expensive_is_not_computed_along_with_running_sums_of_rows() -> None:
    for axis in (0, 1):
        assert kernels_of(lambda x, a=axis: lax.cumsum(lax.exp(x), a), (512, 512)) == 1 + axis
