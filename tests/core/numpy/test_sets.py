"""Arrays as sets: static sizes, ways to find members, and edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp

A, B = np.array([1, 3, 5, 3]), np.array([2, 3, 4, 2])


@pytest.mark.parametrize(
    ("size", "fill_value", "want"),
    (
        (None, None, [1, 2, 4, 5]),
        (2, None, [1, 2]),
        (6, None, [1, 2, 4, 5, 1, 1]),
        (6, -1, [1, 2, 4, 5, -1, -1]),
        (0, None, []),
    ),
)
def test_elements_of_either(size: Any, fill_value: Any, want: list[int]) -> None:
    assert jnp.setxor1d(A, B, size=size, fill_value=fill_value).tolist() == want
    if size is not None:
        got = polyax.jit(lambda a, b: jnp.setxor1d(a, b, size=size, fill_value=fill_value))(A, B)
        assert got.tolist() == want


def test_elements_of_either_of_equal_and_empty_arrays() -> None:
    assert jnp.setxor1d(A, A, size=2).tolist() == [0, 0]
    assert jnp.setxor1d(A[:0], A[:0], size=2, fill_value=7).tolist() == [7, 7]
    unique = np.array([1, 3, 5]), np.array([4, 3, 2])
    assert jnp.setxor1d(*unique, assume_unique=True).tolist() == np.setxor1d(*unique, assume_unique=True).tolist()


@pytest.mark.parametrize("method", ("auto", "compare_all", "binary_search", "sort"))
@pytest.mark.parametrize("count", (0, 3, 200))
@pytest.mark.parametrize("invert", (False, True))
def test_members(method: str, count: int, invert: bool) -> None:
    rng = np.random.default_rng(count)
    few, many = rng.integers(0, 300, (3, 40)), rng.integers(0, 300, count)
    got = jnp.isin(few, many, invert=invert, method=method)
    np.testing.assert_array_equal(got, np.isin(few, many, invert=invert))


def test_nan_is_no_member() -> None:
    x = np.array([np.nan, 1.0], np.float32)
    for method in ("compare_all", "sort"):
        assert jnp.isin(x, x, method=method).tolist() == [False, True]


def test_unique_lines_along_the_last_axis_and_of_no_width() -> None:
    assert jnp.unique(np.array([[1, 2, 1]]), axis=-1, size=3, fill_value=9).tolist() == [[1, 2, 9]]
    values, index, inverse, counts = jnp.unique(np.zeros((3, 0)), True, True, True, axis=0)
    assert (values.shape, index.tolist(), inverse.tolist(), counts.tolist()) == ((1, 0), [0], [0, 0, 0], [3])
    assert not jnp.unique(3j).weak_type


def test_nothing_is_left_of_nothing() -> None:
    assert jnp.setdiff1d(A[:0], B, size=2, fill_value=4, assume_unique=True).tolist() == [4, 4]


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="method='hash' is not implemented"):
        jnp.isin(A, B, method="hash")
    with pytest.raises(polyax.errors.ConcretizationTypeError, match="static `size`"):
        polyax.jit(jnp.setxor1d)(A, B)


def test_differences_of_sets_are_as_weak_as_the_first() -> None:
    weak = jnp.broadcast_to(jnp.asarray(2), (3,))
    assert jnp.setdiff1d(weak, np.float32(5)).weak_type and jnp.setdiff1d(weak, np.float32(5), size=2).weak_type
    assert jnp.setdiff1d(weak[:0], np.float32(5)).weak_type and not jnp.setdiff1d(A, jnp.asarray(2)).weak_type
