"""Linear algebra and Fourier transforms against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.backend import walk_eqns
from polyax.runtime.contract.backend import CompileOptions

R = np.random.default_rng(4)
A = R.standard_normal((2, 4, 4)).astype(np.float32)
B = R.standard_normal((2, 4, 3)).astype(np.float32)
S = A @ A.transpose(0, 2, 1) + np.eye(4, dtype=np.float32)
X = R.standard_normal((3, 4, 5, 6)).astype(np.float32)
Z = (X + 1j * X[::-1]).astype(np.complex64)


def close(got, want, tolerance=2e-3):
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


SAME_CALL = {
    "solve": lambda np: np.linalg.solve(A, B),
    "solve for a vector": lambda np: np.linalg.solve(A[0], B[0, :, 0]),
    "inv": lambda np: np.linalg.inv(A),
    "det": lambda np: np.linalg.det(A),
    "cholesky": lambda np: np.linalg.cholesky(S),
    "pinv": lambda np: np.linalg.pinv(B),
    "matrix_rank": lambda np: np.linalg.matrix_rank(B[:, :, [0, 1, 1]]),
    "matrix_power": lambda np: np.linalg.matrix_power(S, 3),
    "inverse power": lambda np: np.linalg.matrix_power(S, -2),
    "multi_dot": lambda np: np.linalg.multi_dot([A[0], B[0], B[0].T, A[1]]),
    "cond": lambda np: np.linalg.cond(S),
    "eigvalsh": lambda np: np.linalg.eigvalsh(S),
    "svdvals": lambda np: np.linalg.svd(B, compute_uv=False),
    "lstsq": lambda np: np.linalg.lstsq(B[0], A[0])[0],
    "tensorinv": lambda np: np.linalg.tensorinv(S[0].reshape(2, 2, 4), 2),
    "tensorsolve": lambda np: np.linalg.tensorsolve(S[0].reshape(2, 2, 4), B[0, :, 0].reshape(2, 2)),
    "slogdet": lambda np: np.linalg.slogdet(A)[1],
    "sign of the determinant": lambda np: np.linalg.slogdet(A)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", SAME_CALL)
def test_agrees_with_numpy(name):
    close(SAME_CALL[name](jnp), SAME_CALL[name](np), 1e-2 if "power" in name else 2e-3)


@pytest.mark.parametrize("ord", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_matrix_norm(ord):
    close(jnp.linalg.norm(A, ord, axis=(-2, -1)), np.linalg.norm(A, ord, axis=(-2, -1)))


@pytest.mark.parametrize("ord", [None, 0, 1, 2, 3, np.inf, -np.inf])
@pytest.mark.parametrize("keepdims", [False, True])
def test_vector_norm(ord, keepdims):
    close(jnp.linalg.norm(A, ord, 1, keepdims), np.linalg.norm(A, ord, 1, keepdims))


@pytest.mark.parametrize("ord", [1, np.inf, -np.inf])
def test_norms_of_integers_without_a_root_are_integers(ord):
    found = jnp.linalg.vector_norm(jnp.arange(-3, 2), ord=ord)
    assert found.dtype == np.int32 and found == np.linalg.vector_norm(np.arange(-3, 2), ord=ord)
    assert jnp.linalg.vector_norm(jnp.ones(4, bool), ord=np.inf).dtype == bool


def test_factors_multiply_to_the_matrix():
    u, s, vh = jnp.linalg.svd(B, full_matrices=False)
    close((u * s[:, None]) @ vh, B)
    q, r = jnp.linalg.qr(B)
    close(q @ r, B)
    w, v = jnp.linalg.eigh(S)
    close((v * w[:, None]) @ v.mT, S)
    w, v = jnp.linalg.eig(A[0])
    close(np.asarray(A[0] @ np.asarray(v)), np.asarray(v * w))


def test_determinants_by_reflections():
    for got, want in zip(jnp.linalg.slogdet(A, method="qr"), np.linalg.slogdet(A), strict=True):
        close(got, want)
    close(polyax.grad(lambda a: jnp.linalg.slogdet(a, method="qr")[1])(A[0]), np.linalg.inv(A[0]).T)


def test_derivatives():
    close(polyax.grad(lambda a: jnp.linalg.slogdet(a)[1])(A[0]), np.linalg.inv(A[0]).T)
    close(polyax.grad(lambda b: jnp.linalg.solve(A[0], b).sum())(B[0]), np.linalg.solve(A[0].T, np.ones((4, 3))))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "hfft", "irfft", "ihfft"])
@pytest.mark.parametrize(
    "options", [{}, {"n": 3}, {"n": 9, "axis": 1}, {"norm": "ortho"}, {"norm": "forward"}], ids=str
)
def test_transform_along_one_axis(name, options):
    data = X if name in ("rfft", "ihfft") else Z
    close(getattr(jnp.fft, name)(data, **options), getattr(np.fft, name)(data, **options), 1e-4)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_transform_without_an_axis_is_along_all(name):
    data = X if name == "rfft" else Z
    close(getattr(jnp.fft, name)(data, axis=None), getattr(np.fft, f"{name}n")(data), 1e-3)
    assert getattr(jnp.fft, name)(data, n=3, axis=None).shape == getattr(jnp.fft, name)(data, n=3).shape


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"])
def test_transform_along_several_axes(name):
    data = X if name.startswith("r") else Z
    close(getattr(jnp.fft, name)(data), getattr(np.fft, name)(data), 1e-3)


def test_frequencies():
    close(jnp.fft.fftfreq(5, 0.5), np.fft.fftfreq(5, 0.5))
    close(jnp.fft.rfftfreq(6), np.fft.rfftfreq(6))
    close(jnp.fft.fftshift(X), np.fft.fftshift(X))
    close(jnp.fft.ifftshift(X, (1, 2)), np.fft.ifftshift(X, (1, 2)))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jnp.linalg.inv(B), ValueError, "Argument to inv() must have shape [..., n, n], got (2, 4, 3)"),
        (lambda: jnp.linalg.det(jnp.ones(3)), ValueError, "got (3,)"),
        (lambda: jnp.linalg.solve(A[0], jnp.ones(3)), ValueError, "the shapes of a and b don't fit: (4, 4) and (3,)"),
        (lambda: jnp.linalg.norm(X, axis=(0, 1, 2)), ValueError, "Improper number of axes for norm"),
        (lambda: jnp.linalg.norm(A[0], ord="x"), ValueError, "Invalid order 'x' for matrix norm."),
        (lambda: jnp.linalg.eigh(S, UPLO="x"), ValueError, "UPLO must be one of None, 'L', or 'U', got x"),
        (lambda: jnp.linalg.pinv(B, 0.1, rcond=0.1), ValueError, "only one of rtol and rcond may be specified"),
        (lambda: jnp.linalg.matrix_rank(B, 0.1, tol=0.1), ValueError, "only one of tol or rtol may be specified"),
        (lambda: jnp.linalg.svd(B, hermitian=True), ValueError, "must have shape [..., n, n], got (2, 4, 3)"),
        (lambda: jnp.linalg.cholesky(B[0]), TypeError, "incompatible shapes for broadcasting: (4, 3), (3, 4)"),
        (lambda: jnp.linalg.eigh(B[0]), TypeError, "incompatible shapes for broadcasting: (4, 3), (3, 4)"),
        (lambda: jnp.linalg.eig(B[0]), ValueError, "The input to eig must be a square matrix. Got shape (4, 3)"),
        (lambda: jnp.linalg.qr(B[0, 0]), TypeError, "qr must have rank at least 2, but got shape=(3,)"),
        (lambda: jnp.linalg.matrix_power(B, 2), TypeError, "Last 2 dimensions of the array must be square"),
        (lambda: jnp.linalg.matrix_power(A, 2.0), TypeError, "exponent must be an integer, got 2.0"),
        (lambda: jnp.linalg.cond(B, 1), ValueError, "for p=1, array must be square; got arr.shape=(2, 4, 3)"),
        (lambda: jnp.linalg.solve(A[0, 0], B), ValueError, "must be at least two dimensional; got a.shape=(4,)"),
        (lambda: jnp.linalg.solve(A[:1], jnp.ones((3, 4))), ValueError, "shapes for solve: (1, 4, 4), (3, 4)"),
        (lambda: jnp.linalg.tensorinv(B), ValueError, "dimensions. got arr.shape=(2, 4, 3) with ind=2."),
        (lambda: jnp.linalg.tensorsolve(B, jnp.ones((2, 4))), ValueError, "got a.shape=(2, 4, 3), b.ndim=2."),
        (lambda: jnp.linalg.vecdot(A[0, 0], B[0, 0]), ValueError, "got shapes (4,) and (3,) with axis=-1"),
        (lambda: jnp.linalg.matrix_power(B[0, 0], 2), TypeError, "1-dimensional array given"),
        (lambda: jnp.linalg.cond(B[0, 0]), ValueError, "must be at least 2D; got arr.shape=(3,)"),
        (lambda: jnp.linalg.slogdet(A, method="x"), ValueError, "Unknown slogdet method 'x'"),
        (lambda: jnp.linalg.multi_dot([A[0], jnp.ones(3)]), ValueError, "Got array shapes [(4, 4), (3,)]"),
        (lambda: jnp.linalg.multi_dot([A, A[0]]), ValueError, "input arrays must all be two-dimensional, except"),
        (lambda: jnp.linalg.outer([1], [2]), TypeError, "jnp.linalg.outer requires ndarray or scalar arguments"),
        (lambda: jnp.linalg.cross([1] * 3, [2] * 3), TypeError, "jnp.linalg.cross requires ndarray or scalar"),
        (lambda: jnp.linalg.matrix_norm([[1]]), TypeError, "jnp.linalg.matrix_norm requires ndarray or scalar"),
        (lambda: jnp.linalg.tensorsolve(B[0], jnp.ones(3)), ValueError, "got a.shape=(4, 3), b.shape=(3,)"),
        (lambda: jnp.fft.fft(Z, n=0), ValueError, "invalid number of data points (0,)"),
        (lambda: jnp.fft.rfft(Z), ValueError, "only real valued inputs supported for rfft"),
        (lambda: jnp.fft.fft(Z, norm="x"), ValueError, "Invalid norm value x"),
        (lambda: jnp.fft.fft(Z, axis=(0, 1)), ValueError, "jax.numpy.fft.fft does not support multiple axes"),
        (lambda: jnp.fft.fft2(Z, axes=(0,)), ValueError, "jax.numpy.fft.fft2 only supports 2 axes"),
    ],
)  # fmt: skip
def test_bad_input(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_solve_without_equations():
    assert jnp.linalg.solve(jnp.zeros((0, 0)), jnp.zeros((0, 2))).shape == (0, 2)
    assert jnp.linalg.solve(jnp.eye(2), jnp.zeros((2, 0))).shape == (2, 0)


@pytest.mark.parametrize("name", ["inv", "cholesky", "det", "slogdet", "eigvals", "qr", "svd", "cond"])
@pytest.mark.parametrize("shape", [(0, 2, 2), (3, 0, 2, 2)])
def test_no_matrices(name, shape):
    got, want = (
        polyax.tree.leaves(getattr(np.linalg, name)(np.zeros(shape, np.float32))) for np in (jnp, globals()["np"])
    )
    assert [x.shape for x in got] == [x.shape for x in want]
    assert jnp.linalg.solve(np.zeros(shape, np.float32), np.zeros((*shape[:-1], 4), np.float32)).shape == (
        *shape[:-1],
        4,
    )


def test_a_tolerance_for_each_matrix():
    rtol = np.array([0.9, 1e-6], np.float32)
    np.testing.assert_array_equal(jnp.linalg.matrix_rank(B, rtol=rtol), np.linalg.matrix_rank(B, tol=rtol))
    close(jnp.linalg.pinv(B, rtol=rtol), np.linalg.pinv(B, rcond=rtol))
    close(jnp.linalg.pinv(B[0], rtol=rtol), [np.linalg.pinv(B[0], rcond=r) for r in rtol])


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0)])
def test_eigenvalues_of_nothing(shape: tuple[int, ...]) -> None:
    w, v = jnp.linalg.eig(np.zeros(shape, np.float32))
    assert (w.shape, v.shape) == (shape[:-1], shape)
    assert jnp.linalg.eigvals(np.zeros(shape, np.float32)).shape == shape[:-1]


@pytest.mark.parametrize("ord", [1, 2, np.inf])
def test_norm_of_no_elements(ord):
    assert jnp.linalg.matrix_norm(np.zeros((0, 0), np.float32), ord=ord).item() == 0
    assert jnp.linalg.norm(np.zeros((0,), np.float32), ord=ord).item() == 0


def test_matrices_without_elements():
    square, wide = np.zeros((0, 0), np.float32), np.zeros((0, 3), np.float32)
    assert jnp.linalg.det(square).item() == 1 and jnp.linalg.matrix_rank(square).item() == 0
    assert jnp.linalg.pinv(wide).shape == (3, 0)
    assert jnp.linalg.lstsq(wide, np.zeros(0, np.float32))[0].tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="must not be empty"):
        jnp.linalg.cond(square)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_of_solutions_are_those_of_the_equations(dtype: str) -> None:
    """``a x = b`` gives ``da x + a dx = 0``, and the cotangent of ``b`` solves the transposed system."""
    with polyax.enable_x64():
        a, da, b = (x.astype(dtype) for x in (A + 1j * S[::-1] if dtype[0] == "c" else A, S, B[0]))
        x, dx = polyax.jvp(lambda a: jnp.linalg.solve(a, b), (a,), (da,))
        np.testing.assert_allclose(a @ np.asarray(dx), -da @ np.asarray(x), rtol=1e-9, atol=1e-9)
        _, back = polyax.vjp(jnp.linalg.solve, a, b)
        of_a, of_b = back(jnp.ones_like(x))
        y = np.linalg.solve(a.transpose(0, 2, 1), np.ones_like(b))
        np.testing.assert_allclose(of_b, y.sum(0), rtol=1e-9)
        np.testing.assert_allclose(of_a, -y @ np.asarray(x).transpose(0, 2, 1), rtol=1e-9)


def test_gradients_of_solutions_factor_once() -> None:
    """Derivatives of the factors would be products of square matrices."""
    device = polyax.devices("cpu")[0]
    f = polyax.grad(lambda a: jnp.linalg.solve(a, B[0, :, 0]).sum())
    program = polyax.make_jaxpr(f)(A[0])
    kernels = device.backend.compile(program, CompileOptions(device)).report().kernels
    assert sum("lu" in k.primitives for k in kernels) == 1
    products = [eqn for eqn in walk_eqns(program.jaxpr) if eqn.primitive.name == "dot_general"]
    for eqn in products:
        ((contracted, _), _), x = eqn.params["dimension_numbers"], eqn.invars[0].aval
        assert eqn.outvars[0].aval.size * x.shape[contracted[0]] <= 4 * 4, eqn
    assert products


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_hermitian_matrices(dtype):
    real, imaginary = np.random.default_rng(5).normal(size=(2, 2, 4, 4))
    half = real + 1j * imaginary if dtype == np.complex64 else real
    a = (half + half.conj().swapaxes(-1, -2)).astype(dtype)
    u, s, vh = jnp.linalg.svd(a, hermitian=True)
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), rtol=1e-4)
    np.testing.assert_allclose((u * s[..., None, :]) @ vh, a, atol=1e-4)
    np.testing.assert_allclose(jnp.linalg.svd(a, compute_uv=False, hermitian=True), s, rtol=1e-4)
    np.testing.assert_allclose(jnp.linalg.pinv(a, hermitian=True), np.linalg.pinv(a), rtol=1e-2, atol=1e-3)
    deficient = a[0][:, :1] @ a[0][:, :1].conj().T
    assert jnp.linalg.matrix_rank(deficient, hermitian=True).item() == 1


def test_transforms_of_nothing():
    for shape in ((0, 2), (3, 0, 2)):
        for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "irfftn"):
            found, expected = getattr(jnp.fft, name)(jnp.ones(shape)), shape
            assert found.shape == expected and found.size == 0
    assert jnp.fft.irfft(jnp.ones((2, 0))).shape == (2, 0) and jnp.fft.fft(jnp.ones(0)).dtype == np.complex64
    assert jnp.fft.fftn(jnp.float32(3)).item() == 3


@pytest.mark.parametrize(
    ("shape", "values"), [((4, 4), (4, 2, 1, 0.5)), ((4, 4), (4, 2, 1, 0)), ((5, 3), (3, 2, 1)), ((3, 5), (3, 2, 1))]
)
def test_derivatives_of_singular_vectors_make_up_that_of_the_matrix(shape, values):
    """Also of a singular matrix, if it is square: of square bases nothing leaves their space."""
    with polyax.config.override(enable_x64=True):
        left, right = (np.linalg.qr(R.standard_normal((n, n)))[0][:, : len(values)] for n in shape)
        x, t = left * values @ right.T, R.standard_normal(shape)
        svd = lambda x: tuple(jnp.linalg.svd(x, full_matrices=False))
        (u, s, vh), (du, ds, dvh) = polyax.jvp(svd, (x,), (t,))
        close(du * s @ vh + u * ds @ vh + u * s @ dvh, t, 1e-9)
        close(u.T @ du + du.T @ u, np.zeros((len(values),) * 2), 1e-9)


@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (2, 3)])
def test_pseudoinverses_have_derivatives_where_singular_values_are_equal(shape):
    a = np.eye(*shape, dtype=np.float32)
    change = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    got = polyax.jvp(jnp.linalg.pinv, (a,), (change,))[1]
    step = np.float64(1e-6) * change
    np.testing.assert_allclose(got, (np.linalg.pinv(a + step) - np.linalg.pinv(a - step)) / 2e-6, rtol=1e-4, atol=1e-4)


def test_the_old_name_of_the_reduced_factors():
    assert [x.shape for x in jnp.linalg.qr(np.ones((4, 3)), mode="full")] == [(4, 3), (3, 3)]


def test_norms_of_integers() -> None:
    count = np.array([3, 4], np.uint32)
    assert [jnp.linalg.vector_norm(count, ord=o).item() for o in (1, np.inf, -np.inf, 2)] == [7, 4, 3, 5]
    with polyax.enable_x64(True):
        assert jnp.linalg.vector_norm(count).dtype == np.float64


def test_ranks_of_vectors_are_int32() -> None:
    with polyax.enable_x64(True):
        assert jnp.linalg.matrix_rank(np.ones(3)).dtype == np.int32
        assert jnp.linalg.matrix_rank(np.eye(3)).dtype == np.int64
