"""Extrema of complex numbers, which are ordered by their parts, and what none are taken of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax

RNG = np.random.default_rng(0)
Z = (RNG.integers(-2, 3, (4, 6)) + 1j * RNG.integers(-2, 3, (4, 6))).astype(np.complex64)
HIGHEST = {"max": True, "min": False}


@pytest.mark.parametrize("name", HIGHEST)
def test_of_two(name: str) -> None:
    got = getattr(lax, name)(Z[:1], Z[1:])
    np.testing.assert_array_equal(got, getattr(np, f"{name}imum")(Z[:1], Z[1:]))


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("name", HIGHEST)
def test_over_axes(name: str, axes: tuple[int, ...]) -> None:
    np.testing.assert_array_equal(getattr(lax, f"reduce_{name}")(Z, axes), getattr(np, name)(Z, axes))
    assert np.isnan(getattr(lax, f"reduce_{name}")(np.where(Z[1, 1] == Z, np.nan, Z), (0, 1)))


@pytest.mark.parametrize("name", HIGHEST)
def test_over_axes_of_one_element_and_of_none(name: str) -> None:
    reduce = getattr(lax, f"reduce_{name}")
    np.testing.assert_array_equal(reduce(Z[:, :1], (1,)), Z[:, 0])
    np.testing.assert_array_equal(reduce(Z[:, :0], (1,)), np.full(4, complex(-np.inf if HIGHEST[name] else np.inf, 0)))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", HIGHEST)
def test_up_to_each(name: str, reverse: bool) -> None:
    got = getattr(lax, f"cum{name}")(Z, 1, reverse)
    rows = Z[:, ::-1] if reverse else Z
    want = getattr(np, f"{name}imum").accumulate(rows, 1)
    np.testing.assert_array_equal(got, want[:, ::-1] if reverse else want)


def test_the_extremum_has_the_derivative() -> None:
    z = np.array([1 + 2j, 3 + 1j, 3 - 1j], np.complex64)
    for fun in (lambda z: lax.reduce_max(z, (0,)), lambda z: lax.max(z[0], z[1]), lambda z: lax.cummax(z)[-1]):
        assert polyax.grad(lambda z, fun=fun: fun(z).real)(z).tolist() == [0, 1, 0]
    assert polyax.vmap(lambda z: lax.reduce_max(z, (0,)))(Z).tolist() == Z.max(1).tolist()


NUMBERS = lax.ScatterDimensionNumbers((), (0,), (0,))
TRUTHS = np.array([True, False, True])
REFUSED: dict[str, Any] = {
    "cummax": lambda: lax.cummax(TRUTHS),
    "cummin": lambda: lax.cummin(TRUTHS),
    "scatter_add": lambda: lax.scatter_add(TRUTHS, np.array([[1]]), TRUTHS[:1], NUMBERS),
    "scatter_sub": lambda: lax.scatter_sub(TRUTHS, np.array([[1]]), TRUTHS[:1], NUMBERS),
    "scatter_mul": lambda: lax.scatter_mul(TRUTHS, np.array([[1]]), TRUTHS[:1], NUMBERS),
    "segment_sum": lambda: polyax.ops.segment_sum(TRUTHS, np.array([0, 0, 1])),
    "at.add": lambda: jnp.array(TRUTHS).at[0].add(True),
    "at.multiply": lambda: jnp.array(TRUTHS).at[np.array([0, 1])].multiply(True),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=list(REFUSED))
def test_booleans_are_no_numbers(call: Any) -> None:
    with pytest.raises(TypeError, match="does not accept dtype bool"):
        call()


def test_powers_of_integers_are_refused() -> None:
    with pytest.raises(TypeError, match="pow does not accept dtype int32 at position 0"):
        lax.pow(2, 3)
    assert lax.integer_pow(2, 3) == 8


@pytest.mark.parametrize("name", HIGHEST)
def test_equal_numbers_have_half_of_the_derivative_each(name: str) -> None:
    z = np.array([1 + 2j, 2 - 1j, complex(np.inf, 1)], np.complex64)
    value, pull = polyax.vjp(getattr(lax, name), z, z)
    np.testing.assert_array_equal(value, z)
    for ct in pull(jnp.ones(3, jnp.complex64)):
        np.testing.assert_array_equal(ct, np.full(3, 0.5, np.complex64))
