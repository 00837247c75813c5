"""Linear algebra through LAPACK: factors against NumPy in float64, derivatives against the reference backend."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax import numpy as jnp
from polyax.ir.config import config
from polyax_cpu.libraries import lapack

R = np.random.default_rng(7)
CPU, REFERENCE = (polyax.devices(name)[0] for name in ("cpu", "reference"))
TOLERANCE = {"float32": 2e-4, "float64": 1e-11}
SHAPES = [(5, 5), (1, 1), (0, 0), (3, 7, 4), (3, 4, 7), (2, 3, 6, 6), (0, 3, 3), (70, 50), (50, 70), (4, 1), (1, 4)]
SQUARE = [s for s in SHAPES if s[-1] == s[-2]]


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    with config.override(enable_x64=True), polyax.default_device(CPU):
        yield


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The routines that were called meanwhile."""
    names: set[str] = set()
    real = lapack.call
    monkeypatch.setattr(lapack, "call", lambda name, *args: (names.add(name), real(name, *args))[1])
    return names


@pytest.fixture(params=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> str:
    return request.param


def general(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (R.uniform(-1, 1, shape) + 3 * np.eye(*shape[-2:])).astype(dtype)


def definite(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = R.uniform(-1, 1, shape)
    return (x @ np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def close(got: object, want: np.ndarray, dtype: str) -> None:
    got = np.asarray(got)
    assert got.dtype == dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=TOLERANCE[dtype], atol=10 * TOLERANCE[dtype])


def orthonormal(q: np.ndarray, dtype: str) -> None:
    gram = np.swapaxes(q, -1, -2) @ q
    close(gram, np.zeros(gram.shape) + np.eye(q.shape[-1]), dtype)


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_cholesky(shape: tuple[int, ...], dtype: str) -> None:
    x = definite(shape, dtype)
    unread = x + np.triu(np.ones(shape, dtype), 1)
    close(lax.linalg.cholesky(unread, symmetrize_input=False), np.linalg.cholesky(x.astype(float)), dtype)


def test_cholesky_of_an_indefinite_matrix_is_nan_and_its_neighbours_are_not(dtype: str) -> None:
    x = definite((3, 4, 4), dtype)
    x[1] = -x[1]
    factor = np.asarray(lax.linalg.cholesky(x))
    np.testing.assert_array_equal(np.isnan(factor[1]), np.tri(4, dtype=bool))
    close(factor[::2], np.linalg.cholesky(x[::2].astype(float)), dtype)
    assert not np.triu(np.nan_to_num(factor, nan=1.0), 1).any()


FLAGS = ("left_side", "lower", "transpose_a", "unit_diagonal")


@pytest.mark.parametrize("values", list(product((False, True), repeat=4)), ids=str)
@pytest.mark.parametrize("batch, m, n", [((), 5, 3), ((2, 3), 4, 4), ((3,), 1, 1), ((), 0, 0), ((0,), 2, 3)])
def test_triangular_solve(batch, m, n, values, dtype: str) -> None:
    flags = dict(zip(FLAGS, values, strict=True))
    size = m if flags["left_side"] else n
    a, b = general((*batch, size, size), dtype), general((*batch, m, n), dtype)
    op = np.tril(a) if flags["lower"] else np.triu(a)
    if flags["unit_diagonal"]:
        op = op - op * np.eye(size) + np.eye(size)
    op = (np.swapaxes(op, -1, -2) if flags["transpose_a"] else op).astype(float)
    want = np.linalg.solve(op, b) if flags["left_side"] else b @ np.linalg.inv(op)
    close(lax.linalg.triangular_solve(a, b, **flags), want, dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_lu(shape: tuple[int, ...], dtype: str) -> None:
    x, k = R.uniform(-1, 1, shape).astype(dtype), min(shape[-2:])
    packed, pivots, permutation = map(np.asarray, lax.linalg.lu(x))
    unit = np.tril(packed[..., :k].astype(float), -1) + np.eye(shape[-2], k)
    permuted = np.take_along_axis(x, permutation[..., None], -2) if x.size else x
    close((unit @ np.triu(packed[..., :k, :])).astype(dtype), permuted, dtype)
    for i in np.ndindex(shape[:-2]):
        rows = np.arange(shape[-2])
        for here, there in enumerate(pivots[i]):
            rows[[here, there]] = rows[[there, here]]
        np.testing.assert_array_equal(permutation[i], rows)


def test_lu_of_a_singular_matrix_has_finite_factors(dtype: str) -> None:
    packed, _, _ = lax.linalg.lu(np.ones((3, 3), dtype))
    np.testing.assert_array_equal(packed, [[1, 1, 1], [1, 0, 0], [1, 0, 0]])


@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_qr(shape: tuple[int, ...], full_matrices: bool, dtype: str) -> None:
    x = R.uniform(-1, 1, shape).astype(dtype)
    q, r = map(np.asarray, lax.linalg.qr(x, full_matrices=full_matrices))
    k = shape[-2] if full_matrices else min(shape[-2:])
    assert q.shape == (*shape[:-1], k)
    close(q @ r, x.astype(float), dtype)
    orthonormal(q, dtype)
    assert not np.tril(r, -1).any()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_householder_product(count: int, dtype: str) -> None:
    a, taus = (R.uniform(-1, 1, s).astype(dtype) for s in ((2, 5, 3), (2, count)))
    want = np.broadcast_to(np.eye(5, 3), a.shape)
    for j in reversed(range(count)):
        v = np.where(np.arange(5) > j, a[..., j], np.arange(5) == j).astype(float)
        want = want - taus[:, j, None, None] * v[:, :, None] * (v[:, None] @ want)
    close(lax.linalg.householder_product(a, taus), want, dtype)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_eigh(shape: tuple[int, ...], lower: bool, dtype: str) -> None:
    x = definite(shape, dtype)
    unread = (np.triu if lower else np.tril)(np.ones(shape, dtype), 1 if lower else -1)
    v, w = map(np.asarray, lax.linalg.eigh(x + unread, lower=lower, symmetrize_input=False))
    close(w, np.linalg.eigvalsh(x.astype(float)), dtype)
    close(v * w[..., None, :] @ np.swapaxes(v, -1, -2), x.astype(float), dtype)
    orthonormal(v, dtype)


@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_svd(shape: tuple[int, ...], full_matrices: bool, dtype: str) -> None:
    x, k = R.uniform(-1, 1, shape).astype(dtype), min(shape[-2:])
    u, s, vh = map(np.asarray, lax.linalg.svd(x, full_matrices=full_matrices))
    close(s, np.linalg.svd(x.astype(float), compute_uv=False), dtype)
    close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x.astype(float), dtype)
    orthonormal(u, dtype)
    orthonormal(np.swapaxes(vh, -1, -2), dtype)
    close(lax.linalg.svd(x, compute_uv=False), s.astype(float), dtype)


def test_nan_comes_out_as_nan(dtype: str) -> None:
    x = definite((2, 4, 4), dtype)
    x[1] = np.nan
    results = [*lax.linalg.eigh(x), *lax.linalg.svd(x), *lax.linalg.qr(x), lax.linalg.cholesky(x), lax.linalg.lu(x)[0]]
    for y in map(np.asarray, results):
        assert np.isfinite(y[0]).all() and np.isnan(y[1]).any()


FACTORS = {
    "cholesky": lax.linalg.cholesky,
    "lu": lambda x: lax.linalg.lu(x)[0],
    "svd": lambda x: lax.linalg.svd(x, compute_uv=False),
}


@pytest.mark.parametrize("name", FACTORS)
def test_threads_share_a_stack(name: str, dtype: str) -> None:
    x = definite((101, 12, 12), dtype)
    with config.override(num_threads=3):
        together, alone = FACTORS[name](x), [FACTORS[name](item) for item in x]
    np.testing.assert_array_equal(together, np.stack(list(map(np.asarray, alone))))


# --- programs --------------------------------------------------------------------------------------------------------

PROGRAMS = {
    "inv": (jnp.linalg.inv, {"getrf", "laswp", "trsm"}),
    "det": (jnp.linalg.det, {"getrf", "laswp"}),
    "solve": (lambda x: jnp.linalg.solve(x, x[:, :2] + 1), {"getrf", "laswp", "trsm"}),
    "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.mT), {"potrf"}),
    "eigh": (lambda x: [y**2 for y in jnp.linalg.eigh(x + x.mT)], {"syevd"}),
    "svd": (lambda x: [y**2 for y in jnp.linalg.svd(x[:, :3], full_matrices=False)], {"gesdd"}),
    "singular values": (lambda x: jnp.linalg.svd(x[:3], compute_uv=False), {"gesdd"}),
    "qr": (lambda x: list(jnp.linalg.qr(x[:, :3])), {"geqrf", "orgqr"}),
}
"""Of matrices of 4 x 4; squares where signs are free."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_call_lapack(name: str, called: set[str]) -> None:
    polyax.block_until_ready(polyax.jit(PROGRAMS[name][0])(general((4, 4), "float32")))
    assert called == PROGRAMS[name][1]


@pytest.mark.parametrize("x", [np.eye(3, dtype=np.complex64), np.zeros((0, 0), np.float32)], ids=["complex", "empty"])
def test_the_rest_is_left_to_numpy(x: np.ndarray, called: set[str]) -> None:
    np.testing.assert_array_equal(lax.linalg.cholesky(x, symmetrize_input=False), x)
    assert not called


@pytest.mark.parametrize("name", PROGRAMS)
def test_batches_and_derivatives_agree_with_the_reference(name: str) -> None:
    program, x = PROGRAMS[name][0], general((3, 4, 4), "float64")

    def loss(x):
        return sum(jnp.sum(jnp.sin(y + jnp.arange(y.size).reshape(y.shape))) for y in polyax.tree.leaves(program(x)))

    def everything(x):
        return polyax.tree.leaves([polyax.vmap(program)(x), polyax.vmap(polyax.grad(loss))(x)])

    found = [np.asarray(y) for y in polyax.jit(everything)(polyax.device_put(x, CPU))]
    with polyax.default_device(REFERENCE):
        expected = [np.asarray(y) for y in everything(polyax.device_put(x, REFERENCE))]
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-9)
