"""Reductions against NumPy: axes, masks, initial values, dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp

X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
MASK = X > 0
NAMES = ["sum", "prod", "max", "min", "mean", "var", "std", "all", "any"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reduction_over_axes(name, axis, keepdims):
    got = getattr(jnp, name)(X, axis=axis, keepdims=keepdims)
    want = getattr(np, name)(X, axis=axis, keepdims=keepdims)
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "all", "any"])
def test_reduction_with_mask(name):
    got = getattr(jnp, name)(X, axis=1, where=MASK)
    with np.errstate(invalid="ignore", divide="ignore"):
        want = getattr(np, name)(X, axis=1, where=MASK)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_reduction_with_initial_value_and_mask(name):
    got = getattr(jnp, name)(X, axis=0, initial=0.5, where=MASK)
    np.testing.assert_allclose(got, getattr(np, name)(X, axis=0, initial=np.float32(0.5), where=MASK), rtol=1e-6)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "argmax", "argmin", "ptp", "count_nonzero", "average", "median"])
@pytest.mark.parametrize("axis", [None, 1])
def test_others(name, axis):
    np.testing.assert_allclose(getattr(jnp, name)(X, axis=axis), getattr(np, name)(X, axis=axis), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "dtype", "want"),
    [
        ("sum", "int8", "int32"), ("sum", "uint8", "uint32"), ("sum", "bool", "int32"), ("sum", "float16", "float16"),
        ("mean", "int32", "float32"), ("mean", "bool", "float32"), ("max", "bool", "bool"), ("prod", "int16", "int32"),
        ("var", "complex64", "float32"), ("argmax", "float32", "int32"), ("cumsum", "bool", "int32"),
        ("count_nonzero", "bool", "int32"),
    ],
)  # fmt: skip
def test_dtypes(name, dtype, want):
    assert str(getattr(jnp, name)(jnp.ones(3, dtype)).dtype) == want


def test_half_precision_is_accumulated_in_single():
    ones = jnp.ones(4096, "float16")
    assert jnp.sum(ones).item() == 4096.0


def test_weighted_average():
    weights = np.array([1.0, 2.0, 3.0], np.float32)
    got, total = jnp.average(X, axis=1, weights=weights, returned=True)
    np.testing.assert_allclose(got, np.average(X, axis=1, weights=weights), rtol=1e-5)
    np.testing.assert_allclose(total, 6.0)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jnp.sum([1.0, 2.0]), TypeError, "sum requires ndarray or scalar arguments, got <class 'list'> at pos"),
        (lambda: jnp.mean((1.0, 2.0)), TypeError, "mean requires ndarray or scalar arguments, got <class 'tuple'>"),
        (lambda: jnp.max(jnp.zeros((0, 3)), axis=0), ValueError, "zero-size array to reduction operation max which ha"),
        (lambda: jnp.max(X, where=MASK), ValueError, "to use a where mask one has to specify 'initial'"),
        (lambda: jnp.sum(X, axis=3), ValueError, "axis 3 is out of bounds for array of dimension 3"),
        (lambda: jnp.sum(X, axis=(0, 0)), ValueError, "duplicate value in 'axis'"),
        (lambda: jnp.sum(X, out=X), NotImplementedError, "The 'out' argument to jnp.sum is not supported."),
        (lambda: jnp.sum(X, where=X), ValueError, "where must be None or a boolean array"),
        (lambda: polyax.jit(lambda a: jnp.sum(X, axis=a))(0), polyax.errors.ConcretizationTypeError, "axis argument t"),
        (lambda: jnp.argmax(jnp.zeros(0)), ValueError, "attempt to get argmax of an empty sequence"),
    ],
)  # fmt: skip
def test_bad_input(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_gradients_of_extrema_and_products():
    np.testing.assert_allclose(polyax.grad(jnp.max)(jnp.array([1.0, 2.0, 2.0])), [0.0, 0.5, 0.5])
    np.testing.assert_allclose(polyax.grad(jnp.prod)(jnp.array([2.0, 0.0, 3.0])), [0.0, 6.0, 0.0])
    x = jnp.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(polyax.grad(jnp.var)(x), 2 * (np.asarray(x) - 7 / 3) / 3, rtol=1e-6)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
def test_extrema_of_complex_numbers_go_by_real_parts_first(name, axis):
    z = np.array([[1 + 2j, 1 - 3j, 0.5 + 9j], [0.5 - 1j, 1 + 2j, 1 + 1j]], np.complex64)
    reduce = getattr(jnp, name)
    np.testing.assert_array_equal(reduce(z, axis), getattr(np, name)(z, axis))
    np.testing.assert_array_equal(reduce(z, axis, initial=5), getattr(np, name)(z, axis, initial=5))
    masked = reduce(z, axis, where=z.imag > 0, initial=0.7)
    np.testing.assert_array_equal(masked, getattr(np, name)(z, axis, where=z.imag > 0, initial=np.complex64(0.7)))
    assert np.isnan(reduce(np.array([1j, complex(np.nan, 1)])))


def test_equal_complex_numbers_share_the_derivative_of_their_extremum():
    z = np.array([1 + 2j, 1 - 3j, 1 + 2j], np.complex64)
    np.testing.assert_array_equal(polyax.grad(lambda z: jnp.max(z).real)(z), [0.5, 0, 0.5])


def test_sums_of_truth_values():
    x = np.array([[True, False], [False, False]])
    for name in ("sum", "prod", "cumsum", "cumprod"):
        got = getattr(jnp, name)(x, axis=1, dtype=bool)
        np.testing.assert_array_equal(got, getattr(np, name)(x, axis=1, dtype=bool))
        assert got.dtype == bool
    assert jnp.sum(x, dtype=bool, initial=False, where=~x).item() is False
    assert jnp.cumulative_sum(x[0], dtype=bool, include_initial=True).tolist() == [False, True, True]


def test_std_in_an_integer_type():
    with pytest.raises(ValueError, match="must be inexact; got int32"):
        jnp.std(np.float32([1.0]), dtype=np.int32)


def test_differences_of_order_zero_take_scalars():
    assert jnp.diff(np.float32(2.0), n=0).item() == 2.0


def test_quantiles_of_complex_numbers():
    with pytest.raises(ValueError, match="nanquantile does not support complex"):
        jnp.nanquantile(np.complex64([1j]), 0.5)


def test_empty_extrema_of_complex_numbers_are_the_initial_value():
    nothing = np.zeros((0, 2), np.complex64)
    assert jnp.max(nothing, initial=2 + 1j) == 2 + 1j
    assert jnp.min(nothing, axis=0, initial=3).tolist() == [3, 3]
    assert polyax.lax.reduce_max(nothing, (0,)).tolist() == [complex(-np.inf, 0)] * 2


@pytest.mark.parametrize("name", ["sum", "max"])
def test_real_reductions_take_the_real_part_of_an_initial_value(name):
    with pytest.warns(np.exceptions.ComplexWarning):
        assert getattr(jnp, name)(jnp.zeros(3), initial=2 + 1j) == 2


@pytest.mark.parametrize("initial", ["a", [1.0]])
def test_initial_values_are_numbers(initial):
    with pytest.raises(TypeError, match="sum requires ndarray or scalar arguments"):
        jnp.sum(jnp.zeros(3), initial=initial)


def test_running_sums_of_scalars_have_one_element():
    assert jnp.cumsum(3, axis=0).tolist() == [3] and jnp.cumprod(jnp.array(2.0), axis=-1).tolist() == [2.0]


def test_booleans_are_asked_for_zeros_as_numbers_are() -> None:
    x = np.array([True, False, True])
    assert jnp.count_nonzero(x) == 2 and jnp.packbits(x).tolist() == np.packbits(x).tolist()
    assert jnp.isreal(x).all() and not jnp.iscomplex(x).any()


def test_booleans_of_weak_complex_numbers_are_not_weak() -> None:
    assert not jnp.asarray(1j).astype(bool).weak_type and not jnp.any(1j).weak_type


def test_variances_asked_for_as_integers_are_floats_that_may_be_nan() -> None:
    got = jnp.var(np.float32([1, 2, 7]), dtype="int32")
    assert got == 7 and got.dtype == np.float32 and got.weak_type
    assert jnp.nanvar(np.float32([1, 2, 7]), dtype="int32").dtype == np.int32
