"""Sets, polynomials, editing, vectorize, grids and windows against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp

R = np.random.default_rng(6)
X = R.standard_normal((3, 4)).astype(np.float32)
V = R.standard_normal(7).astype(np.float32)
W = R.standard_normal(4).astype(np.float32)
I = R.integers(0, 4, (3, 4)).astype(np.int32)
A, B = np.array([3, 1, 2, 3, 5]), np.array([2, 9, 3])

SAME_CALL = {
    "unique": lambda np: np.unique(I),
    "unique rows": lambda np: np.unique(I[[0, 1, 0]], axis=0),
    "unique columns": lambda np: np.unique(I[:, [0, 1, 1]], axis=1),
    "unique with everything": lambda np: np.unique(I, True, True, True),
    "isin": lambda np: np.isin(A, B),
    "union1d": lambda np: np.union1d(A, B),
    "intersect1d": lambda np: np.intersect1d(A, B),
    "setdiff1d": lambda np: np.setdiff1d(A, B),
    "setxor1d": lambda np: np.setxor1d(A, B),
    "trim_zeros": lambda np: np.trim_zeros(np.array([0, 0, 1, 0, 2, 0])),
    "convolve": lambda np: np.convolve(V, W),
    "convolve same": lambda np: np.convolve(W, V, mode="same"),
    "convolve valid": lambda np: np.convolve(V, W, mode="valid"),
    "correlate": lambda np: np.correlate(V, W),
    "correlate full": lambda np: np.correlate(W, V, mode="full"),
    "correlate same": lambda np: np.correlate(V, W, mode="same"),
    "polyval": lambda np: np.polyval(W, X),
    "polyadd": lambda np: np.polyadd(V, W),
    "polysub": lambda np: np.polysub(W, V),
    "polymul": lambda np: np.polymul(V, W),
    "polyder": lambda np: np.polyder(V, 2),
    "polyint": lambda np: np.polyint(V, 2),
    "vander": lambda np: np.vander(W, 3),
    "poly": lambda np: np.poly(W),
    "delete": lambda np: np.delete(X, np.array([0, -1]), axis=1),
    "delete slice": lambda np: np.delete(V, slice(1, 6, 2)),
    "insert": lambda np: np.insert(V, 2, 9.0),
    "insert several": lambda np: np.insert(V, np.array([1, 1, 5]), np.array([7.0, 8.0, 9.0])),
    "insert rows": lambda np: np.insert(X, 1, W, axis=0),
    "insert columns": lambda np: np.insert(X, np.array([1, 3]), np.array([7.0, 8.0]), axis=1),
    "compress": lambda np: np.compress(np.array([True, False, True]), X, axis=0),
    "extract": lambda np: np.extract(X > 0, X),
    "choose": lambda np: np.choose(I[0], X[[0, 1, 2, 0]]),
    "unravel_index": lambda np: np.unravel_index(np.array([0, 5, 11]), (3, 4)),
    "ravel_multi_index": lambda np: np.ravel_multi_index((np.array([0, 2]), np.array([1, 3])), (3, 4)),
    "sort_complex": lambda np: np.sort_complex(np.array([2 + 1j, 1 - 1j, 1 - 2j])),
    "unwrap integers": lambda np: np.unwrap(np.array([0, 5, 60, 3, 9, 13], np.int32), period=7),
    "unwrap by an even period": lambda np: np.unwrap(np.array([0, 4, 8, 3, 9, 13], np.int32), period=8),
    "unwrap": lambda np: np.unwrap(np.array([0.0, 3.0, 6.5, 9.0, 1.0])),
    "frexp": lambda np: np.frexp(np.array([0.0, 1.0, -3.5, 1e-40, 1e30], np.float32)),
    "spacing": lambda np: np.spacing(np.array([1.0, -2.0, 0.5], np.float32)),
    "apply_along_axis": lambda np: np.apply_along_axis(lambda x: x * x.sum(), 0, X),
    "apply_over_axes": lambda np: np.apply_over_axes(np.sum, X, (0, 1)),
    "mgrid": lambda np: np.mgrid[0:2, 0:1:3j],
    "ogrid": lambda np: np.ogrid[0:2, 0:1:3j],
    "r_ of three axes": lambda np: np.r_["0,3,0", [1, 2], [3]],
    "r_ along the last axis": lambda np: np.r_["-1", [[1], [2]], [[3], [4]]],
    "r_ of columns": lambda np: np.r_["1,2,0", [1, 2], [3, 4]],
    "r_ of rows": lambda np: np.r_["0,2", [1, 2], [3, 4]],
    "r_ in the middle": lambda np: np.r_["1,3,1", [1, 2], 3:5],
    "r_": lambda np: np.r_[1:4, 0, np.array([7, 8])],
    "c_": lambda np: np.c_[W, W],
    "hanning": lambda np: np.hanning(6),
    "hamming": lambda np: np.hamming(6),
    "blackman": lambda np: np.blackman(6),
    "bartlett": lambda np: np.bartlett(6),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME_CALL)
def test_agrees_with_numpy(name):
    got, want = SAME_CALL[name](jnp), SAME_CALL[name](np)
    pairs = zip(got, want, strict=True) if isinstance(want, (list, tuple)) else [(got, want)]
    for a, b in pairs:
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_sets_of_known_size():
    got = polyax.jit(lambda x: jnp.unique(x, size=4, fill_value=-1))(jnp.array([3, 1, 3]))
    assert got.tolist() == [1, 3, -1, -1]
    got = polyax.jit(lambda x, y: jnp.intersect1d(x, y, size=3, fill_value=-1))(A, B)
    assert got.tolist() == [2, 3, -1]
    got = polyax.jit(lambda x, y: jnp.setdiff1d(x, y, size=3, fill_value=-1))(A, B)
    assert got.tolist() == [1, 5, -1]


def test_nan_is_unique_once():
    x = jnp.array([np.nan, 1.0, np.nan])
    assert jnp.unique(x).shape == (2,)
    assert jnp.unique(x, equal_nan=False).shape == (3,)


def test_vectorize():
    product = jnp.vectorize(lambda a, v: a @ v, signature="(n,m),(m)->(n)")
    a, v = R.standard_normal((2, 1, 3, 4)), R.standard_normal((5, 4))
    np.testing.assert_allclose(product(a, v), np.einsum("bcnm,cm->bcn", np.broadcast_to(a, (2, 5, 3, 4)), v), rtol=1e-4)
    scaled = jnp.vectorize(lambda x, n: x * n, excluded=(1,))
    np.testing.assert_allclose(scaled(X, 2), 2 * X)
    with pytest.raises(ValueError, match="inconsistent size for core dimension 'm': 3 vs 4"):
        product(a, v[:, :3])


@pytest.mark.parametrize(
    ("fun", "signature", "error", "text"),
    [
        (lambda x: x, "(n)->()", ValueError, r"output shape \(4,\) does not match core dimensions \(\)"),
        (lambda x: x[:2], "(n)->(n)", ValueError, "inconsistent size for core dimension 'n': 2 vs 4"),
        (lambda x: (x, x[1:]), "(n)->(m),(m)", ValueError, "inconsistent size for core dimension 'm': 3 vs 4"),
        (lambda x: x, "(n)->(", ValueError, r"not a valid gufunc signature: \(n\)->\("),
        (lambda x: x, "(n)->(n),(n)", TypeError, "output must be a tuple when multiple outputs are expected"),
        (lambda x: (x, x), "(n)->(n)", TypeError, "wrong number of output arguments: expected 1, got 2"),
    ],
)
def test_vectorize_looks_at_results(fun, signature, error, text):
    with pytest.raises(error, match=text):
        jnp.vectorize(fun, signature=signature)(X)


def test_vectorize_excludes_places_counted_from_the_left():
    with pytest.raises(ValueError, match="contains negative numbers"):
        jnp.vectorize(lambda x: x, excluded={-1})


def test_copies_with_elements_put():
    np.testing.assert_array_equal(
        jnp.put(X, np.array([0, 5]), np.array([1.0, 2.0]), inplace=False).ravel()[:6:5], [1, 2]
    )
    want = X.copy()
    np.place(want, X > 0, [1.0, 2.0])
    np.testing.assert_array_equal(jnp.place(X, X > 0, np.array([1.0, 2.0]), inplace=False), want)
    want = X.copy()
    np.put_along_axis(want, np.array([[0], [1], [2]]), 9.0, axis=1)
    np.testing.assert_array_equal(jnp.put_along_axis(X, np.array([[0], [1], [2]]), 9.0, 1, inplace=False), want)
    with pytest.raises(ValueError, match="jax.numpy.put cannot modify arrays in-place"):
        jnp.put(X, 0, 1.0)
    for args in (([1.0], X > 0, X), (X, [True], X), (X, X > 0, [1.0])):
        with pytest.raises(TypeError, match="place requires ndarray or scalar arguments, got <class 'list'>"):
            jnp.place(*args, inplace=False)


def test_directives_of_r():
    assert jnp.r_["r", [1, 2], 3].tolist() == [[1, 2, 3]]
    assert jnp.r_["c", [1, 2], 3].tolist() == [[1], [2], [3]]
    with pytest.raises(ValueError, match="could not understand directive 'a': it is 'r', 'c' or up to three integers"):
        _ = jnp.r_["a", 1]
    with pytest.raises(ValueError, match="1 axes can't begin at axis 3 of 3"):
        _ = jnp.r_["0,3,3", [1, 2]]
    with pytest.raises(TypeError, match="string directive must be placed at the beginning"):
        _ = jnp.r_[1, "0,2"]


def test_unwrapped_integers_are_of_the_default_float():
    with polyax.enable_x64(True):
        got = jnp.unwrap(np.array([0, 5, 120], np.int8))
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, np.unwrap(np.array([0.0, 5.0, 120.0])), rtol=1e-12)
    assert jnp.unwrap(np.array([0, 5, 12], np.int8), period=7).dtype == np.int8


def test_files(tmp_path):
    jnp.save(tmp_path / "x.npy", jnp.asarray(X))
    np.testing.assert_array_equal(jnp.load(tmp_path / "x.npy"), X)


def test_slopes_do_not_depend_on_the_point_itself():
    assert np.array_equal(jnp.gradient(np.array([1, np.nan, 3, 4], np.float32)), [np.nan, 1, np.nan, 1], True)
    np.testing.assert_allclose(jnp.gradient(X, 0.5, axis=-1), np.gradient(X, 0.5, axis=-1), rtol=1e-6)
    assert jnp.gradient(np.array([1.0, 3.0]), 2.0).tolist() == [1, 1]


def test_what_polynomials_give_is_strongly_typed():
    assert not jnp.polyval(jnp.array([1, 2]), 2.5).weak_type and jnp.polyval(V, 2.0).dtype == V.dtype


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jnp.ediff1d(np.array([True, False])), TypeError, "sub does not accept dtype bool"),
        (lambda: jnp.fft.rfft(np.zeros((2, 0))), ValueError, "RFFT input must have elements along its last dimension"),
        (lambda: polyax.jit(jnp.unique)(V), polyax.errors.ConcretizationTypeError, "concrete value for the `size` arg"),
        (lambda: jnp.convolve(X, W), ValueError, "convolve() only support 1-dimensional inputs."),
        (lambda: jnp.choose(np.array([5]), [V, V]), ValueError, "invalid entry in choice array"),
        (lambda: jnp.delete(V, 9), IndexError, "index 9 is out of bounds for axis 0 with size 7"),
        (lambda: jnp.polyder(V, -1), ValueError, "Order of derivative must be positive"),
        (lambda: jnp.polyder(2.0), TypeError, "polyder: coefficients are given as a vector, got float32[]"),
        (lambda: jnp.polyint(2.0), TypeError, "polyint: coefficients are given as a vector, got float32[]"),
    ],
)  # fmt: skip
def test_bad_input(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_no_coefficients_are_the_polynomial_zero() -> None:
    assert jnp.polymul(V[:0], V[:0]).tolist() == [0] and jnp.polymul(W[:2], V[:0]).tolist() == [0, 0]
    assert jnp.polymul(W[:2], np.zeros(2), trim_leading_zeros=True).tolist() == [0, 0]


def test_powers_are_not_weak() -> None:
    assert not jnp.vander(jnp.broadcast_to(jnp.asarray(2), (3,))).weak_type


def test_constants_of_integrals_may_be_traced() -> None:
    constants = np.float32([3, 4])
    got = polyax.jit(lambda k: jnp.polyint(W, 2, k))(constants)
    np.testing.assert_allclose(got, np.polyint(W, 2, constants), rtol=1e-6)
    assert jnp.polyint(W.astype("float16"), k=np.float32(3)).dtype == np.float32
    with pytest.raises(TypeError, match="polyint requires ndarray or scalar arguments"):
        jnp.polyint(W, 2, [3, 4])
