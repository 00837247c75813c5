"""What NumPy takes and JAX refuses, and the other way round."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp

X = jnp.arange(4)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: jnp.arange(True), TypeError, "booleans"),
        (lambda: jnp.arange(2, dtype=bool), TypeError, "booleans"),
        (lambda: jnp.arange(jnp.array([3])), ValueError, "must be scalars; got stop"),
        (lambda: jnp.fft.fftfreq(4, d=None), TypeError, "fftfreq requires ndarray or scalar"),
        (lambda: jnp.fft.rfftfreq(4, d=[1.0]), ValueError, "only takes a single value"),
        (lambda: jnp.fft.fftfreq([4]), ValueError, "only takes an int"),
        (lambda: jnp.ix_(np.array([True, True])), NotImplementedError, "nonzero"),
        (lambda: jnp.quantile(X, 1), TypeError, "floating point numbers, got int32"),
        (lambda: 3 in X.reshape(2, 2), ValueError, "must be one-dimensional"),
        (lambda: X.astype(X), ValueError, "use dtype=arr.dtype"),
        (lambda: jnp.zeros(3, dtype=np.arange(3)), ValueError, "use dtype=arr.dtype"),
        (lambda: jnp.bitwise_or.reduce(jnp.ones(3)), ValueError, "integer argument required; got dtype=float32"),
        (lambda: jnp.vectorize(lambda x, y: x, signature="(n),(n)->(n)")(X, None), ValueError, "Cannot pass None"),
    ],
)
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_elements_are_sought_in_vectors():
    assert 3 in X and 7 not in X


def test_counts_of_repeats_have_any_shape():
    assert jnp.repeat(jnp.arange(3), np.array([[1], [2], [0]])).tolist() == [0, 1, 1]
    repeated = polyax.jit(lambda r: jnp.repeat(jnp.arange(3), r, total_repeat_length=4))
    assert repeated(np.array([[1, 2, 1]])).tolist() == [0, 1, 1, 2]


def test_nothing_repeated_is_nothing():
    assert jnp.repeat(jnp.zeros((0, 2)), 3, axis=0, total_repeat_length=4).shape == (0, 2)


@pytest.mark.parametrize("name", ["any", "all", "isin", "isclose", "isposinf"])
def test_truths_of_python_scalars_are_not_weak(name):
    arguments = (1.0, 1.0) if name in ("isin", "isclose") else (1.0,)
    assert not getattr(jnp, name)(*arguments).weak_type


def test_none_stands_for_a_scalar_of_a_signature():
    function = jnp.vectorize(lambda x, y: x if y is None else y, signature="(n),()->(n)")
    assert function(jnp.ones((2, 3)), None).shape == (2, 3)


def test_floats_are_unravelled_as_floats():
    row, column = jnp.unravel_index(jnp.array([3.0, 2.0]), (2, 3))
    assert (row.tolist(), column.tolist(), row.dtype) == ([1, 0], [0, 2], np.float32)
    assert jnp.unravel_index(True, (2, 3))[1].dtype == np.int32


def test_missing_common_elements_may_be_of_a_wider_type():
    assert jnp.intersect1d(jnp.array([1, 2]), jnp.array([2, 3]), size=2, fill_value=1.5).tolist() == [2, 1.5]
    assert jnp.setxor1d(jnp.array([1, 2]), jnp.array([2, 3]), size=3, fill_value=np.nan).dtype == np.float32


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_reductions_of_bits(name):
    x, mask = np.array([[6, 3, 9], [12, 5, 10]]), np.array([[True, False, True], [True, True, False]])
    ours, numpys = getattr(jnp, name), getattr(np, name)
    options = {"axis": 1, "where": mask, "initial": 7, "keepdims": True}
    np.testing.assert_array_equal(ours.reduce(x, **options), numpys.reduce(x, **options))
    assert ours.reduce(x > 5, axis=None) == numpys.reduce(x > 5, axis=None)
