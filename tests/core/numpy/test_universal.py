"""Methods of universal functions against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp

X = np.random.default_rng(2).standard_normal((4, 3)).astype(np.float32)
NAMES = ("add", "multiply", "maximum", "minimum", "subtract", "logaddexp")
OWN = jnp.frompyfunc(lambda a, b: a * b + 1, 2, 1)


@pytest.mark.parametrize("axis", (0, 1, -1))
@pytest.mark.parametrize("name", NAMES)
def test_along_an_axis(name: str, axis: int) -> None:
    mine, theirs = getattr(jnp, name), getattr(np, name)
    np.testing.assert_allclose(mine.reduce(X, axis), theirs.reduce(X, axis), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mine.accumulate(X, axis), theirs.accumulate(X, axis), rtol=1e-5, atol=1e-6)
    kept = mine.reduce(X, axis, keepdims=True)
    np.testing.assert_allclose(kept, theirs.reduce(X, axis, keepdims=True), rtol=1e-5, atol=1e-6)
    places = np.array([1, 0, 2])
    want = theirs.reduceat(X, places, axis)
    np.testing.assert_allclose(mine.reduceat(X, places, axis), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_outer_at_and_masks(name: str) -> None:
    mine, theirs = getattr(jnp, name), getattr(np, name)
    np.testing.assert_allclose(mine.outer(X, X[0]), theirs.outer(X, X[0]), rtol=1e-5)
    want = X[0].copy()
    theirs.at(want, [0, 0, 2], np.float32(2))
    np.testing.assert_allclose(mine.at(X[0], np.array([0, 0, 2]), 2.0, inplace=False), want, rtol=1e-5)
    masked = {"where": X > 0, "initial": 1.0}
    if name != "subtract":
        np.testing.assert_allclose(mine.reduce(X, 0, **masked), theirs.reduce(X, 0, **masked), rtol=1e-5)


def test_several_axes_and_all() -> None:
    np.testing.assert_allclose(jnp.logaddexp.reduce(X, (0, 1)), np.logaddexp.reduce(X.ravel()), rtol=1e-5)
    np.testing.assert_allclose(jnp.add.reduce(X, None, initial=10), X.sum() + 10, rtol=1e-5)


def test_functions_of_scalars_need_not_be_associative() -> None:
    v = np.arange(5.0, dtype=np.float32)
    theirs = np.frompyfunc(lambda a, b: a * b + 1, 2, 1)
    assert OWN.reduce(v).item() == theirs.reduce(v)
    np.testing.assert_array_equal(OWN.accumulate(v), theirs.accumulate(v, dtype=object).astype(float))
    assert OWN(v[:, None], v).shape == (5, 5)
    assert repr(OWN) == "<jnp.ufunc '<lambda>'>"


def test_under_transformations() -> None:
    assert polyax.grad(lambda x: OWN.reduce(x))(np.array([2.0, 3.0, 5.0], np.float32)).tolist() == [15.0, 10.0, 7.0]
    got = polyax.jit(polyax.vmap(OWN.accumulate))(X)
    np.testing.assert_allclose(got, np.stack([OWN.accumulate(x) for x in X]), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    (
        (lambda: jnp.maximum.reduce(X[:0]), ValueError, "which has no identity"),
        (lambda: jnp.negative.reduce(X), ValueError, "reduce only supported for binary ufuncs"),
        (lambda: jnp.maximum.reduce(X, where=X > 0), ValueError, "'maximum' does not have an identity"),
        (lambda: jnp.add.at(X, 0, 1.0), NotImplementedError, "inplace=False"),
        (lambda: jnp.add(X, 1, out=X), NotImplementedError, "out argument of <jnp.ufunc 'add'>"),
        (lambda: jnp.add(X), TypeError, "takes 2 positional arguments but 1 were given"),
        (lambda: jnp.add.reduceat(X, np.array([0.5])), ValueError, "integer type"),
        (lambda: jnp.add.reduceat(1.0, np.array([0])), ValueError, "a must have 1 or more dimension"),
        (lambda: jnp.add.reduceat(X, np.array([[0]])), ValueError, "indices must be one-dimensional"),
        (lambda: OWN.accumulate(X, 2), ValueError, "axis 2 is out of bounds"),
        (lambda: OWN.accumulate(X, (0, 1)), ValueError, "does not allow multiple axes"),
        (lambda: jnp.add.reduceat(X, np.array([0]), None), ValueError, "requires a single integer axis"),
        (lambda: jnp.add.reduceat(X[:0], np.array([0])), IndexError, "empty axis"),
        (lambda: jnp.add.reduce(X, where=X), ValueError, "where argument must have dtype=bool; got dtype=float32"),
    ),
)
def test_what_does_not_fit_is_named(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_logical_functions_reduce_to_booleans():
    x = np.float32([[0, 1, 2], [3, 0, 5]])
    for name in ("logical_and", "logical_or", "logical_xor"):
        want = getattr(np, name).reduce(x)
        got = getattr(jnp, name).reduce(x)
        assert got.dtype == bool
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(jnp.logical_or.accumulate(x), np.logical_or.accumulate(x))
    assert jnp.logical_or.at(x, 0, 1, inplace=False).tolist() == [[True] * 3, [True, False, True]]


def test_reduction_where_keeps_the_type():
    with polyax.enable_x64(True):
        for dtype, want in ((np.int32, np.float32), (np.float32, np.float32), (np.complex64, np.complex64)):
            x, mask = np.array([1, 2, 3], dtype), np.array([True, False, True])
            got = jnp.logaddexp.reduce(x, where=mask)
            assert got.dtype == want
            np.testing.assert_allclose(got, np.log(np.exp(x[mask]).sum()), rtol=1e-6)


def test_sums_accumulate_over_all_axes():
    x = np.float32([[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(jnp.add.accumulate(x, axis=None), np.cumsum(x))
    np.testing.assert_array_equal(jnp.maximum.accumulate(x[1], axis=None), x[1])
    with pytest.raises(ValueError, match="multiple axes"):
        jnp.maximum.accumulate(x, axis=None)


def test_lists_are_values_for_at():
    assert jnp.add.at(jnp.zeros((2, 1)), 0, [1], inplace=False).tolist() == [[1], [0]]


def test_masked_elements_are_left_out() -> None:
    mask = X > 0
    want = np.subtract.reduce(X, 1, where=mask, initial=1.0)
    np.testing.assert_allclose(jnp.subtract.reduce(X, 1, where=mask, initial=1.0), want, rtol=1e-5)
    got = jnp.subtract.reduce(X, None, where=mask, initial=1.0)
    np.testing.assert_allclose(got, 1.0 - X[mask].sum(), rtol=1e-5)


def test_equal_if_made_of_the_same() -> None:
    def f(a: Any, b: Any) -> Any:
        return a + b

    assert jnp.frompyfunc(f, 2, 1) == jnp.frompyfunc(f, 2, 1)
    assert hash(jnp.frompyfunc(f, 2, 1)) == hash(jnp.frompyfunc(f, 2, 1))
    assert jnp.frompyfunc(f, 2, 1) != jnp.frompyfunc(f, 2, 1, identity=0)
    assert jnp.add != jnp.subtract


@pytest.mark.parametrize("name", ("nin", "nout", "nargs", "identity", "_func"))
def test_what_they_are_made_of_stays(name: str) -> None:
    getattr(jnp.add, name)
    with pytest.raises(AttributeError, match=f"property '{name}' of 'ufunc' object has no setter"):
        setattr(jnp.add, name, None)


def test_integers_become_what_the_function_gives() -> None:
    i = np.array([1, 2, 3])
    assert jnp.logaddexp.at(i, np.array([0]), 1, inplace=False).dtype == np.float32
    assert jnp.logaddexp.accumulate(i[:0]).dtype == np.float32
    assert jnp.add.at(i, np.array([], int), 1, inplace=False).tolist() == [1, 2, 3]


DIVIDE = jnp.frompyfunc(lambda a, b: a / b, 2, 1)


def test_dtypes_are_those_of_the_function_or_as_asked() -> None:
    """Recorded from JAX."""
    i, places = jnp.array([1, 2, 3], jnp.int8), jnp.array([0, 0, 1])
    assert jnp.add.reduce(i).dtype == np.int32 and jnp.add.reduce(i, dtype=np.int8).dtype == np.int8
    assert jnp.add.accumulate(i, dtype=np.int8).dtype == np.int8
    assert DIVIDE.reduce(i).dtype == DIVIDE.at(i, places, 2, inplace=False).dtype == np.float32
    assert DIVIDE.at(i, places, 2, inplace=False).tolist() == [0.25, 1.0, 3.0]
    assert jnp.add.at(i, places, 2, inplace=False).dtype == np.int8
    assert jnp.maximum.at(i, places, 2, inplace=False).dtype == np.int8
    assert jnp.logical_and.at(i, places, 0, inplace=False).dtype == bool
    assert jnp.logical_and.reduceat(i, places).dtype == np.int8  # one element alone is as it was
    assert jnp.add.at(i > 1, places, True, inplace=False).tolist() == [True, True, True]


def test_numbers_stay_weak_where_elements_do() -> None:
    weak = jnp.broadcast_to(jnp.asarray(2.0), (3,))
    places = jnp.array([0, 1])
    assert jnp.subtract.reduceat(weak, places).weak_type and jnp.add.at(weak, places, 1.0, inplace=False).weak_type
    assert not jnp.maximum.at(weak, places, 1.0, inplace=False).weak_type
    assert not DIVIDE.reduce(weak).weak_type


def test_places_outside_of_the_array() -> None:
    x = jnp.arange(3.0)
    assert jnp.maximum.at(x, jnp.array([0, 9, -1]), 5.0, inplace=False).tolist() == [5, 1, 5]
    np.testing.assert_array_equal(jnp.add.reduceat(x, jnp.array([0, 5, -1])), [3.0, np.nan, 5.0])
