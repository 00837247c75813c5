"""Cumulative operations and the largest elements, against loops in float64, on every platform."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
from polyax import lax

NAMES = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
X = np.random.default_rng(4).standard_normal((5, 7))


@pytest.mark.parametrize("reverse", (False, True))
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_of_both_orders(name: str, reverse: bool) -> None:
    with polyax.enable_x64(True):
        x, step = X[:2, :5], 1e-5
        weights = np.random.default_rng(6).standard_normal((2, 5))
        loss = lambda x: (getattr(lax, name)(lax.sin(x), 1, reverse) ** 2 * weights).sum()
        gradient = polyax.jit(polyax.grad(loss))
        for k in ((0, 0), (1, 3)):
            moved = np.zeros_like(x)
            moved[k] = step
            slope = (loss(x + moved) - loss(x - moved)) / (2 * step)
            np.testing.assert_allclose(gradient(x)[k], slope, rtol=1e-5, atol=1e-7)
            bend = (gradient(x + moved) - gradient(x - moved)) / (2 * step)
            np.testing.assert_allclose(polyax.jvp(gradient, (x,), (moved / step,))[1], bend, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(polyax.grad(lambda x, k=k: gradient(x)[k])(x), bend, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dim", (0, 1))
@pytest.mark.parametrize("name", NAMES)
def test_vmap_is_a_loop(name: str, dim: int) -> None:
    x = X.astype(np.float32)
    fun = lambda row: getattr(lax, name)(row, 0)
    want = np.stack([fun(row) for row in np.moveaxis(x, dim, 0)])
    np.testing.assert_allclose(polyax.vmap(fun, dim)(x), want, rtol=1e-6)


@pytest.mark.parametrize("reverse", (False, True))
@pytest.mark.parametrize("axis", (0, 1))
def test_derivatives_of_log_sums_are_weighted_means_before_and_far_from_zero(axis: int, reverse: bool) -> None:
    x = np.random.default_rng(2).normal(0.0, 3.0, (37, 21)) + np.linspace(-500.0, 500.0, 21)
    t = np.cos(np.arange(x.size)).reshape(x.shape)
    lines = lambda a: np.flip(np.moveaxis(a, axis, 0), 0) if reverse else np.moveaxis(a, axis, 0)
    sums = np.logaddexp.accumulate(lines(x), 0)
    want = [np.sum(np.exp(lines(x)[: k + 1] - y) * lines(t)[: k + 1], 0) for k, y in enumerate(sums)]
    with polyax.enable_x64(True):
        _, found = polyax.jvp(lambda x: lax.cumlogsumexp(x, axis, reverse), (x,), (t,))
    np.testing.assert_allclose(lines(found), want, rtol=1e-9, atol=1e-12)


def test_exponentials_of_log_sums_derivatives_do_not_multiply() -> None:
    text = str(polyax.make_jaxpr(polyax.grad(lambda x: lax.cumlogsumexp(x).sum()))(np.ones(4000, np.float32)))
    assert text.count("= exp ") == 2


def test_derivatives_of_extrema_go_to_the_first_element_and_are_halved_by_equals() -> None:
    x, t = np.array([-np.inf, 2.0, 2.0, 1.0, 3.0], np.float32), np.array([7.0, 1.0, 5.0, 9.0, 4.0], np.float32)
    assert polyax.jvp(lax.cummax, (x,), (t,))[1].tolist() == [7.0, 1.0, 3.0, 3.0, 4.0]
    assert polyax.jvp(lax.cummin, (-x,), (-t,))[1].tolist() == [-7.0, -1.0, -3.0, -3.0, -4.0]
    slopes = polyax.jvp(lambda x: lax.cummax(x, reverse=True), (x[::-1],), (t[::-1],))[1]
    assert slopes.tolist() == [4.0, 3.0, 3.0, 1.0, 7.0]


def test_extremes_of_log_sums() -> None:
    x = np.array([-np.inf, -np.inf, 1000.0, 1000.0, np.inf], np.float32)
    want = [-np.inf, -np.inf, 1000.0, 1000.0 + np.log(2.0), np.inf]
    np.testing.assert_allclose(lax.cumlogsumexp(x), want, rtol=1e-6)


@pytest.mark.parametrize("k", (0, 1, 3, 40))
def test_top_k_of_long_rows_with_ties_and_nans(k: int) -> None:
    rows = np.random.default_rng(8).integers(0, 9, (3, 2000)).astype(np.float32)
    rows[1, [5, 700]] = np.nan
    values, where = lax.top_k(rows, k)
    order = np.argsort(np.where(np.isnan(rows), -np.inf, -rows), -1, kind="stable")[:, :k]
    np.testing.assert_array_equal(where, order)
    np.testing.assert_array_equal(values, np.take_along_axis(rows, order, -1))
