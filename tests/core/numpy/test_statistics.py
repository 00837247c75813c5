"""Order statistics, histograms, covariance, differences, interpolation and NaN functions against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp

R = np.random.default_rng(5)
X = R.standard_normal((3, 4, 5)).astype(np.float32)
N = np.where(X > 1, np.nan, X).astype(np.float32)
POINTS = np.sort(X[0, 0])

SAME_CALL = {
    "median": lambda np: np.median(X, axis=(0, 2)),
    "median of NaN": lambda np: np.median(N, axis=1),
    "nanmedian": lambda np: np.nanmedian(N, axis=0),
    "percentile": lambda np: np.percentile(X, 30, axis=(0, 1), keepdims=True),
    "nanpercentile": lambda np: np.nanpercentile(N, np.array([10.0, 50.0]), axis=1),
    "histogram": lambda np: np.histogram(X)[0],
    "edges": lambda np: np.histogram(X, bins=5, range=(-1, 1))[1],
    "density": lambda np: np.histogram(X, bins=5, range=(-1, 1), density=True)[0],
    "weighted histogram": lambda np: np.histogram(X, bins=np.array([-1.0, 0.0, 2.0]), weights=X)[0],
    "bincount": lambda np: np.bincount(np.array([1, 2, 2, 5]), minlength=8),
    "cov": lambda np: np.cov(X[0]),
    "cov of two": lambda np: np.cov(X[0, 0], X[0, 1], rowvar=False),
    "weighted cov": lambda np: np.cov(X[0], fweights=[0, 1, 2, 1, 1], aweights=[0.5, 1.0, 1.0, 2.0, 1.0])
    if np.__name__ == "numpy"
    else np.cov(X[0], fweights=np.array([0, 1, 2, 1, 1]), aweights=np.array([0.5, 1.0, 1.0, 2.0, 1.0])),
    "corrcoef": lambda np: np.corrcoef(X[0]),
    "diff": lambda np: np.diff(X, 2, axis=1),
    "diff with ends": lambda np: np.diff(X, prepend=np.float32(0), append=np.float32(1)),
    "ediff1d": lambda np: np.ediff1d(X, to_begin=np.float32(1)),
    "trapezoid": lambda np: np.trapezoid(X, axis=1, dx=0.5),
    "trapezoid over points": lambda np: np.trapezoid(X, POINTS),
    "interp": lambda np: np.interp(np.linspace(-3, 3, 20), POINTS, X[0, 1]),
    "interp with ends": lambda np: np.interp(np.array([-9.0, 9.0]), POINTS, X[0, 1], left=-1.0, right=1.0),
    "gradient": lambda np: np.gradient(X, 2.0, axis=1),
    "array_equal": lambda np: np.array_equal(N, N, equal_nan=True),
    "array_equiv": lambda np: np.array_equiv(X[:1], X),
    "allclose": lambda np: np.allclose(X, X * np.float32(1.0000001)),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME_CALL)
def test_agrees_with_numpy(name):
    np.testing.assert_allclose(SAME_CALL[name](jnp), SAME_CALL[name](np), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint"])
def test_quantile(method):
    q = np.array([0.1, 0.5, 0.77], np.float32)
    got = jnp.quantile(X, q, axis=1, method=method)
    np.testing.assert_allclose(got, np.quantile(X, q, axis=1, method=method), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "nansum",
        "nanprod",
        "nanmax",
        "nanmin",
        "nanmean",
        "nanvar",
        "nanstd",
        "nanargmax",
        "nanargmin",
        "nancumsum",
        "nancumprod",
    ],
)
@pytest.mark.parametrize("axis", [None, 1])
def test_nan_functions(name, axis):
    np.testing.assert_allclose(getattr(jnp, name)(N, axis=axis), getattr(np, name)(N, axis=axis), rtol=1e-5, atol=1e-6)


def test_nothing_but_nan():
    assert np.isnan(jnp.nanmax(jnp.array([np.nan])))
    assert jnp.nanargmax(jnp.array([np.nan])).item() == -1


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jnp.quantile(X, 0.5, method="x"), ValueError, "method can only be 'linear', 'lower'"),
        (lambda: jnp.median([1, 2]), TypeError, "quantile requires ndarray or scalar arguments, got <class 'list'>"),
        (lambda: jnp.bincount(X[0, 0]), TypeError, "x argument to bincount must have an integer type; got float32"),
        (lambda: polyax.jit(jnp.bincount)(jnp.arange(3)), polyax.errors.ConcretizationTypeError, "pass a static `leng"),
        (lambda: jnp.diff(X, -1), ValueError, "order must be non-negative but got -1"),
        (lambda: jnp.interp(0.5, X[0, 0], X[0]), ValueError, "xp and fp must be one-dimensional arrays of equal size"),
    ],
)  # fmt: skip
def test_bad_input(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


DTYPES_OF_RESULTS: dict[str, Any] = {
    "quantiles of bfloat16": (lambda: jnp.quantile(jnp.asarray([1, 2, 3], "bfloat16"), np.float32(0.5)), "bfloat16", 2),
    "percentiles of float16": (lambda: jnp.percentile(jnp.ones(3, "float16"), jnp.asarray([50.0])), "float16", [1]),
    "quantiles of integers": (lambda: jnp.median(jnp.arange(3, dtype="int8")), "float32", 1),
    "convolution of integers": (
        lambda: jnp.convolve(jnp.ones(3, "int8"), jnp.ones(2, "int8")),
        "float32",
        [1, 2, 2, 1],
    ),
    "convolution of booleans": (lambda: jnp.convolve(np.ones(2, bool), np.ones(2, bool)), "float32", [1, 2, 1]),
    "correlation of integers": (lambda: jnp.correlate(jnp.arange(3), jnp.ones(2, "int8")), "float32", [1, 3]),
    "outer product of booleans": (lambda: jnp.outer(np.ones(1, bool), np.array([True, False])), "bool", [[1, 0]]),
    "polynomial of booleans": (lambda: jnp.polyval(np.array([True, False]), np.array([True, False])), "bool", [1, 0]),
    "difference of sets": (lambda: jnp.setdiff1d(jnp.asarray([2, 1], "int8"), jnp.asarray([1], "int16")), "int8", [2]),
}


@pytest.mark.parametrize("case", DTYPES_OF_RESULTS)
def test_dtypes_of_results(case: str) -> None:
    with polyax.enable_x64(False):
        run, dtype, expected = DTYPES_OF_RESULTS[case]
        found = run()
        assert found.dtype == dtype
        np.testing.assert_array_equal(np.asarray(found, np.float32), np.asarray(expected, np.float32))


def test_correlation_of_complex_numbers() -> None:
    x = np.array([[1 + 1j, 2 - 1j, 3j], [3j, 2 - 1j, 1 + 1j]])
    with polyax.default_device(polyax.devices("reference")[0]):
        np.testing.assert_allclose(jnp.corrcoef(x), np.corrcoef(x), atol=1e-6)


def test_weights_of_several_axes_come_in_their_order() -> None:
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    for axis in ((1, 2), (2, 0), (2, 1, 0)):
        weights = np.arange(1.0, 1 + np.prod([x.shape[k] for k in axis])).reshape([x.shape[k] for k in axis])
        np.testing.assert_allclose(jnp.average(x, axis, weights), np.average(x, axis, weights), rtol=1e-5)
    with pytest.raises(ValueError, match="Shape of weights must be consistent with shape of a along specified axis"):
        jnp.average(x, (0, 1), np.ones((3, 2)))


def test_derivative_of_the_variance_without_nan() -> None:
    x = jnp.arange(5.0).at[0].set(np.nan)
    np.testing.assert_allclose(polyax.grad(jnp.nanvar)(x), [0.0, -0.75, -0.25, 0.25, 0.75], rtol=1e-6)
    assert np.isfinite(polyax.grad(jnp.nanstd)(x)).all()


def test_fractions_have_one_dimension_at_most() -> None:
    with pytest.raises(ValueError, match="rank <= 1, got shape"):
        jnp.quantile(np.arange(3.0), np.full((2, 2), 0.5))


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn"])
def test_quantiles_of_numbers_that_are_not_promoted(name):
    x = jnp.array([3.0, 1.0, 2.0]).astype(name)
    assert jnp.median(x).dtype == jnp.quantile(x, jnp.array([0.5])).dtype == x.dtype
    assert jnp.median(x) == 2.0 and jnp.quantile(x, 0.5, method="inverted_cdf") == 2.0


@pytest.mark.parametrize(
    ("y", "given", "dtype"),
    [
        (np.float32([1, 2, 4]), {"x": np.array([1, 1j, 2], np.complex64)}, "complex64"),
        (np.float32([1, 2, 4]), {"dx": 2j}, "complex64"),
        (np.float16([1, 2, 4]), {"x": np.float32([1, 2, 4])}, "float32"),
        (np.float16([1, 2, 4]), {"dx": np.float32(2)}, "float32"),
        (jnp.broadcast_to(jnp.asarray(2), (3,)), {"x": np.float16([1, 2, 4])}, "float16"),
    ],
)
def test_integrals_have_the_dtype_of_values_and_points(y: object, given: dict[str, object], dtype: str) -> None:
    got = jnp.trapezoid(y, **given)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, np.trapezoid(np.asarray(y), **given))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy, about slices of NaN
def test_masks_repeat_what_they_are_wider_than():
    a = np.float32([[1, 2, np.nan, 5]])
    mask = np.array([[True, False, True, True], [True, True, True, False]])
    wide = np.broadcast_to(a, mask.shape)
    for name in ("nanmean", "nanvar", "nanstd"):
        for axis in (None, 0, 1):
            wanted = getattr(np, name)(wide, axis=axis, where=mask, keepdims=True)
            found = getattr(jnp, name)(a, axis=axis, where=mask, keepdims=True)
            np.testing.assert_allclose(found, wanted, rtol=1e-6, err_msg=f"{name} {axis}")
    np.testing.assert_allclose(jnp.nanmean(a[:, None], axis=(0, 2), where=mask[:, :1]), [8 / 3, 8 / 3], rtol=1e-6)
    with pytest.raises(ValueError, match="fewer dimensions"):
        jnp.nanmean(a[0], where=mask)
    with pytest.raises(ValueError, match="jnp.nanvar: where must be None or a boolean array"):
        jnp.nanvar(a, where=np.array([1, 0, 1, 1]))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jnp.nansum(X, where=X), ValueError, "jnp.nansum: where must be None or a boolean array; got where.d"),
        (lambda: jnp.nanmax(X, where=X), ValueError, "got where.dtype=dtype('float32')."),
        (lambda: jnp.average(X, weights=[1, 2]), TypeError, "average requires ndarray or scalar arguments, got <class "
         "'list'> at position 1."),
        (lambda: jnp.nanmedian(X * 1j), ValueError, "does not support complex input, as the operation is poorly def"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
