"""What the structural functions of lax compute, against NumPy. Elementwise ones are in the conformance suite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax.lax import lenient

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4)).astype(np.float32)


@pytest.fixture
def on_the_reference() -> Any:
    with polyax.default_device(polyax.devices("reference")[0]):
        yield


@pytest.mark.usefixtures("on_the_reference")
def test_factorizations_multiply_back() -> None:
    symmetric = X @ X.T + np.eye(3, dtype=np.float32)
    low = np.asarray(lax.linalg.cholesky(symmetric))
    np.testing.assert_allclose(low @ low.T, symmetric, rtol=1e-5)
    packed, _, permutation = map(np.asarray, lax.linalg.lu(X))
    unit = np.tril(packed[:, :3], -1) + np.eye(3)
    np.testing.assert_allclose(unit @ np.triu(packed), X[permutation], rtol=1e-5, atol=1e-6)
    q, r = map(np.asarray, lax.linalg.qr(X))
    np.testing.assert_allclose(q @ r, X, rtol=1e-5, atol=1e-6)
    v, w = map(np.asarray, lax.linalg.eigh(symmetric))
    np.testing.assert_allclose(v @ np.diag(w) @ v.T, symmetric, rtol=1e-5, atol=1e-5)
    u, s, vh = map(np.asarray, lax.linalg.svd(X, full_matrices=False))
    np.testing.assert_allclose(u @ np.diag(s) @ vh, X, rtol=1e-5, atol=1e-6)
    general, vectors = map(np.asarray, lax.linalg.eig(X[:, :3], compute_left_eigenvectors=False))
    np.testing.assert_allclose(X[:, :3] @ vectors, vectors * general, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("on_the_reference")
def test_failed_factorizations_are_nan() -> None:
    assert np.isnan(np.asarray(lax.linalg.cholesky(-np.eye(2, dtype=np.float32)))[0, 0])
    singular = lax.linalg.triangular_solve(np.zeros((1, 1), np.float32), np.ones((1, 1), np.float32), left_side=True)
    assert np.isinf(np.asarray(singular)[0, 0])


@pytest.mark.usefixtures("on_the_reference")
@pytest.mark.parametrize("length", [5, 6])
def test_fourier_transforms(length: int) -> None:
    x = RNG.standard_normal((2, length)).astype(np.float32)
    spectrum = np.fft.rfft(x)
    np.testing.assert_allclose(lax.fft(x, "rfft", (length,)), spectrum, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(lax.fft(spectrum, "irfft", (length,)), x, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(lax.fft(x, "fft", (length,)), np.fft.fft(x), rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("on_the_reference")
def test_products_have_second_derivatives_at_zeros() -> None:
    x = np.array([0.0, 2.0, 0.0, 3.0], np.float32)
    got = polyax.hessian(lambda x: lax.reduce_prod(x, (0,)))(x)
    want = np.zeros((4, 4))
    want[0, 2] = want[2, 0] = 6.0
    np.testing.assert_allclose(got, want)


@pytest.mark.usefixtures("on_the_reference")
@pytest.mark.parametrize("shape, axes", [((2003,), (0,)), ((1024,), (0,)), ((3, 45, 30), (2, 1)), ((3, 1100, 2), (1,))])
@pytest.mark.parametrize("zeros", (0, 1, 2))
def test_derivatives_of_products_of_long_rows(shape: tuple[int, ...], axes: tuple[int, ...], zeros: int) -> None:
    """By complex steps, whose differences cancel nothing, and second ones by differences of those."""
    x = np.exp(np.random.default_rng(zeros).normal(0.0, 0.1, shape))
    for k in range(zeros):
        np.moveaxis(x, axes, range(len(axes)))[(7 * k,) * len(axes)] = 0.0
    t, s = np.cos(np.arange(x.size)).reshape(shape), np.sin(np.arange(x.size)).reshape(shape)
    slope = lambda a: np.prod(x + 1e-20j * t + a * s, axis=axes).imag / 1e-20
    with polyax.enable_x64(True):
        gradient = np.asarray(polyax.grad(lambda x: lax.reduce_prod(x, axes).sum())(x))
        along = lambda x: polyax.jvp(lambda x: lax.reduce_prod(x, axes), (x,), (t,))[1]
        bend = np.asarray(polyax.jvp(along, (x,), (s,))[1])
    np.testing.assert_allclose(np.sum(gradient * t), slope(0.0).sum(), rtol=1e-9, atol=1e-12)
    want = (slope(1e-4) - slope(-1e-4)) / 2e-4
    np.testing.assert_allclose(bend, want, rtol=1e-3, atol=1e-5 * np.abs(want).max())


def test_products_along_neighbouring_dimensions_are_derived_where_they_lie() -> None:
    gradient = polyax.grad(lambda x, axes: lax.reduce_prod(x, axes).sum())
    text = lambda axes: str(polyax.make_jaxpr(gradient, static_argnums=1)(np.ones((2000, 3, 40), np.float32), axes))
    assert all("transpose" not in text(axes) for axes in ((0,), (1,), (0, 1), (0, 1, 2), ()))
    assert "transpose" in text((0, 2))


@pytest.mark.usefixtures("on_the_reference")
def test_python_scalars_take_the_other_operands_type_and_stay_literals() -> None:
    text = str(polyax.make_jaxpr(lambda x: lenient.add(lenient.mul(2, x), 1.0))(X))
    assert "mul 2.0:f32[] a" in text and "add b 1.0:f32[]" in text
    assert lenient.add(lenient.full((2,), 1.0), 1.0).weak_type
    assert not lenient.add(np.ones(2, np.float32), 1.0).weak_type
    assert lenient.mul(np.ones(2, np.float16), 2.0).dtype == np.float16
    assert lenient.mul(2, lenient.full((2,), 1.0)).weak_type
    with pytest.raises(OverflowError):
        lenient.add(np.ones(2, np.int32), 2**31)


@pytest.mark.usefixtures("on_the_reference")
def test_parameters_print_as_in_jax() -> None:
    text = str(polyax.make_jaxpr(lambda x: lax.dot_general(x, x, (((1,), (1,)), ((), ()))))(X))
    assert "dimension_numbers=(((1,), (1,)), ((), ()))" in text
    assert "precision=None" in text and "preferred_element_type=None" in text
    assert "integer_pow[y=3] a" in str(polyax.make_jaxpr(lambda x: lax.integer_pow(x, 3))(X))
    assert "reduce_sum[axes=(0,)] a" in str(polyax.make_jaxpr(lambda x: lax.reduce_sum(x, (0,)))(X))


def test_dimensions_are_broadcast_in_any_order():
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(lax.broadcast_in_dim(x, (3, 2), (1, 0)), x.T)
    np.testing.assert_array_equal(lax.broadcast_in_dim(x[:, :2], (2, 2), (1, 0)), x[:, :2].T)
    spread = polyax.jit(lambda x: lax.broadcast_in_dim(x, (3, 4, 2), (2, 0)))
    np.testing.assert_array_equal(spread(x), np.broadcast_to(x.T[:, None], (3, 4, 2)))
    with pytest.raises(TypeError, match="strictly increasing"):
        lax.broadcast_in_dim(np.ones((2, 2)), (2, 2), (0, 0))
