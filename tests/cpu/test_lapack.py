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
from polyax.ops import reflections
from polyax.scipy.linalg import cho_factor, cho_solve

R = np.random.default_rng(7)
CPU, REFERENCE = (polyax.devices(name)[0] for name in ("cpu", "reference"))
TOLERANCE = {"float32": 2e-4, "float64": 1e-11, "complex64": 2e-4, "complex128": 1e-11}
REAL = {"complex64": "float32", "complex128": "float64"}
SHAPES = [(5, 5), (1, 1), (0, 0), (3, 7, 4), (3, 4, 7), (2, 3, 6, 6), (0, 3, 3), (70, 50), (50, 70), (4, 1), (1, 4)]
SQUARE = [s for s in SHAPES if s[-1] == s[-2]]


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    with config.override(enable_x64=True), polyax.default_device(CPU):
        yield


@pytest.fixture(params=list(TOLERANCE))
def dtype(request: pytest.FixtureRequest) -> str:
    return request.param


def random(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (R.uniform(-1, 1, shape) + (1j * R.uniform(-1, 1, shape) if dtype in REAL else 0)).astype(dtype)


def general(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (random(shape, dtype) + 3 * np.eye(*shape[-2:])).astype(dtype)


def definite(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = random(shape, dtype)
    return (x @ adjoint(x) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype("complex128" if x.dtype.name in REAL else "float64")


def close(got: object, want: np.ndarray, dtype: str) -> None:
    got = np.asarray(got)
    assert got.dtype == dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=TOLERANCE[dtype], atol=10 * TOLERANCE[dtype])


def orthonormal(q: np.ndarray, dtype: str) -> None:
    gram = adjoint(q) @ q
    close(gram, np.zeros(gram.shape) + np.eye(q.shape[-1]), dtype)


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_cholesky(shape: tuple[int, ...], dtype: str) -> None:
    x = definite(shape, dtype)
    unread = x + np.triu(np.ones(shape, dtype), 1)
    close(lax.linalg.cholesky(unread, symmetrize_input=False), np.linalg.cholesky(wide(x)), dtype)


def test_cholesky_of_an_indefinite_matrix_is_nan_and_its_neighbours_are_not(dtype: str) -> None:
    x = definite((3, 4, 4), dtype)
    x[1] = -x[1]
    factor = np.asarray(lax.linalg.cholesky(x))
    np.testing.assert_array_equal(np.isnan(factor[1]), np.tri(4, dtype=bool))
    close(factor[::2], np.linalg.cholesky(wide(x[::2])), dtype)
    assert not np.triu(np.nan_to_num(factor, nan=1.0), 1).any()


FLAGS = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")


@pytest.mark.parametrize("values", list(product((False, True), repeat=5)), ids=str)
@pytest.mark.parametrize("batch, m, n", [((), 5, 3), ((2, 3), 4, 4), ((3,), 1, 1), ((), 0, 0), ((0,), 2, 3)])
def test_triangular_solve(batch, m, n, values, dtype: str) -> None:
    flags = dict(zip(FLAGS, values, strict=True))
    size = m if flags["left_side"] else n
    a, b = general((*batch, size, size), dtype), general((*batch, m, n), dtype)
    op = np.tril(a) if flags["lower"] else np.triu(a)
    if flags["unit_diagonal"]:
        op = op - op * np.eye(size) + np.eye(size)
    op = wide(np.swapaxes(op, -1, -2) if flags["transpose_a"] else op)
    op = np.conj(op) if flags["conjugate_a"] else op
    want = np.linalg.solve(op, b) if flags["left_side"] else b @ np.linalg.inv(op)
    close(lax.linalg.triangular_solve(a, b, **flags), want, dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_lu(shape: tuple[int, ...], dtype: str) -> None:
    x, k = random(shape, dtype), min(shape[-2:])
    packed, pivots, permutation = map(np.asarray, lax.linalg.lu(x))
    unit = np.tril(wide(packed[..., :k]), -1) + np.eye(shape[-2], k)
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
    x = random(shape, dtype)
    q, r = map(np.asarray, lax.linalg.qr(x, full_matrices=full_matrices))
    k = shape[-2] if full_matrices else min(shape[-2:])
    assert q.shape == (*shape[:-1], k)
    close(q @ r, wide(x), dtype)
    orthonormal(q, dtype)
    assert not np.tril(r, -1).any()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_geqrf(shape: tuple[int, ...], dtype: str) -> None:
    """R and the reflections, whose product has orthonormal columns."""
    x, k = random(shape, dtype), min(shape[-2:])
    packed, taus = lax.linalg.geqrf(x)
    assert packed.shape == shape and taus.shape == (*shape[:-2], k)
    q = lax.linalg.householder_product(packed[..., :k], taus)
    close(np.asarray(q) @ np.triu(packed)[..., :k, :], wide(x), dtype)
    orthonormal(q, dtype)


@pytest.mark.parametrize(("left", "transpose"), list(product([True, False], repeat=2)))
@pytest.mark.parametrize("shape", [(5, 5), (7, 3), (3, 7), (2, 6, 4)], ids=str)
def test_products_with_reflections(shape: tuple[int, ...], left: bool, transpose: bool, dtype: str) -> None:
    x = random(shape, dtype)
    packed, taus = lax.linalg.geqrf(x)
    one = np.broadcast_to(np.eye(shape[-2], dtype=dtype), (*shape[:-1], shape[-2]))
    q = np.asarray(reflections.ormqr(packed, taus, one))
    orthonormal(q, dtype)
    close(q @ np.triu(packed), wide(x), dtype)
    c = random((*shape[:-2], shape[-2], 2) if left else (*shape[:-2], 2, shape[-2]), dtype)
    by = wide(adjoint(q) if transpose else q)
    found = reflections.ormqr(packed, taus, c, left=left, transpose=transpose)
    close(found, by @ wide(c) if left else wide(c) @ by, dtype)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_householder_product(count: int, dtype: str) -> None:
    a, taus = (random(s, dtype) for s in ((2, 5, 3), (2, count)))
    want = np.broadcast_to(np.eye(5, 3), a.shape)
    for j in reversed(range(count)):
        v = np.where(np.arange(5) > j, a[..., j], np.arange(5) == j)
        want = want - taus[:, j, None, None] * v[:, :, None] * (np.conj(v[:, None]) @ want)
    close(lax.linalg.householder_product(a, taus), want, dtype)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_eigh(shape: tuple[int, ...], lower: bool, dtype: str) -> None:
    x = definite(shape, dtype)
    unread = (np.triu if lower else np.tril)(np.ones(shape, dtype), 1 if lower else -1)
    v, w = map(np.asarray, lax.linalg.eigh(x + unread, lower=lower, symmetrize_input=False))
    close(w, np.linalg.eigvalsh(wide(x)), REAL.get(dtype, dtype))
    close(v * w[..., None, :] @ adjoint(v), wide(x), dtype)
    orthonormal(v, dtype)


@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_svd(shape: tuple[int, ...], full_matrices: bool, dtype: str) -> None:
    x, k = random(shape, dtype), min(shape[-2:])
    u, s, vh = map(np.asarray, lax.linalg.svd(x, full_matrices=full_matrices))
    close(s, np.linalg.svd(wide(x), compute_uv=False), REAL.get(dtype, dtype))
    close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], wide(x), dtype)
    orthonormal(u, dtype)
    orthonormal(adjoint(vh), dtype)
    close(lax.linalg.svd(x, compute_uv=False), s, REAL.get(dtype, dtype))


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("shape", [*SQUARE, (26, 26), (3, 26, 26)], ids=str)
def test_eigenvalues_alone(shape: tuple[int, ...], lower: bool, dtype: str) -> None:
    x = definite(shape, dtype)
    unread = (np.triu if lower else np.tril)(np.ones(shape, dtype), 1 if lower else -1)
    values = polyax.jit(lambda x: lax.linalg.eigh(x, lower=lower, symmetrize_input=False)[1])(x + unread)
    close(values, np.linalg.eigvalsh(wide(x)), REAL.get(dtype, dtype))


@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_qr_with_pivots(shape: tuple[int, ...], full_matrices: bool, dtype: str) -> None:
    x = random(shape, dtype)
    q, r, order = map(np.asarray, lax.linalg.qr(x, pivoting=True, full_matrices=full_matrices))
    orthonormal(q, dtype)
    close(q @ r, np.take_along_axis(x, order[..., None, :], -1), dtype)
    assert not np.tril(r, -1).any()
    sizes = np.abs(np.diagonal(r, axis1=-2, axis2=-1))
    assert (sizes[..., 1:] <= sizes[..., :-1] * (1 + TOLERANCE[dtype])).all()


@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_eig(shape: tuple[int, ...], dtype: str) -> None:
    x = random(shape, dtype)
    values, left, right = map(np.asarray, lax.linalg.eig(x))
    kind = np.result_type(dtype, "complex64").name
    close(x @ right, right * values[..., None, :], kind)
    close(adjoint(left) @ x, values[..., None] * adjoint(left), kind)
    for vectors in (left, right):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, rtol=TOLERANCE[dtype])
    close(jnp.linalg.eigvals(x), values, kind)
    close(jnp.linalg.eig(x)[1], right, kind)


@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_schur(shape: tuple[int, ...], dtype: str) -> None:
    x = random(shape, dtype)
    t, z = map(np.asarray, lax.linalg.schur(x))
    orthonormal(z, dtype)
    close(z @ t @ adjoint(z), x, dtype)
    assert not np.tril(t, -1 if dtype in REAL else -2).any()
    (alone,) = lax.linalg.schur(x, compute_schur_vectors=False)
    close(alone, t, dtype)


@pytest.mark.parametrize("shape", [s for s in SQUARE if s[-1]], ids=str)
def test_hessenberg(shape: tuple[int, ...], dtype: str) -> None:
    x = random(shape, dtype)
    h, q = map(np.asarray, polyax.scipy.linalg.hessenberg(x, calc_q=True)) if len(shape) == 2 else _hessenberg(x)
    close(q @ h @ adjoint(q), x, dtype)
    assert not np.tril(h, -2).any()


def _hessenberg(x: np.ndarray) -> list[np.ndarray]:
    flat = x.reshape(-1, *x.shape[-2:])
    found = polyax.vmap(lambda x: polyax.scipy.linalg.hessenberg(x, calc_q=True))(flat)
    return [np.asarray(y).reshape(x.shape) for y in found]


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("shape", [s for s in SQUARE if s[-1]], ids=str)
def test_tridiagonal(shape: tuple[int, ...], lower: bool, dtype: str) -> None:
    """As the reference has it, with its signs."""
    x = definite(shape, dtype)
    found = lax.linalg.tridiagonal(x, lower=lower)
    with polyax.default_device(REFERENCE):
        want = lax.linalg.tridiagonal(x, lower=lower)
    of = np.tri(shape[-1], dtype=bool) if lower else np.tri(shape[-1], dtype=bool).T
    for got, y in zip([np.where(of, found[0], 0), *found[1:]], [np.where(of, want[0], 0), *want[1:]], strict=True):
        close(got, np.asarray(y), np.asarray(y).dtype.name)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_general_matrices_that_are_not_finite_have_no_eigenvalues(value: float, dtype: str) -> None:
    x = random((3, 4, 4), dtype)
    x[1, 2, 2] = value
    for found in (*lax.linalg.eig(x), *lax.linalg.schur(x)):
        assert [bool(np.isnan(np.asarray(y)).all()) for y in found] == [False, True, False]


@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_r_and_singular_values_alone(shape: tuple[int, ...], full_matrices: bool, dtype: str) -> None:
    x = random(shape, dtype)
    r = np.asarray(polyax.jit(lambda x: lax.linalg.qr(x, full_matrices=full_matrices)[1])(x))
    close(adjoint(r) @ r, adjoint(wide(x)) @ wide(x), dtype)
    assert not np.tril(r, -1).any()
    s = polyax.jit(lambda x: lax.linalg.svd(x, full_matrices=full_matrices)[1])(x)
    close(s, np.linalg.svd(wide(x), compute_uv=False), REAL.get(dtype, dtype))


def test_nan_comes_out_as_nan(dtype: str) -> None:
    x = definite((2, 4, 4), dtype)
    x[1] = np.nan
    results = [*lax.linalg.eigh(x), *lax.linalg.svd(x), *lax.linalg.qr(x), lax.linalg.cholesky(x), lax.linalg.lu(x)[0]]
    results.append(polyax.jit(jnp.linalg.eigvalsh)(x))
    for y in map(np.asarray, results):
        assert np.isfinite(y[0]).all() and np.isnan(y[1]).any()


FACTORS = {
    "cholesky": lax.linalg.cholesky,
    "lu": lambda x: lax.linalg.lu(x)[0],
    "svd": lambda x: lax.linalg.svd(x, compute_uv=False),
}


@pytest.mark.parametrize("name", FACTORS)
def test_threads_share_a_stack(name: str, dtype: str) -> None:
    x = definite((101, 34, 34), dtype)
    with config.override(num_threads=3):
        together, alone = FACTORS[name](x), [FACTORS[name](item) for item in x]
    np.testing.assert_array_equal(together, np.stack(list(map(np.asarray, alone))))


@pytest.mark.parametrize("left_side", [False, True])
def test_threads_share_the_right_sides_of_one_system(left_side: bool, dtype: str) -> None:
    a, b = np.tril(general((90, 90), dtype)), random((90, 200) if left_side else (200, 90), dtype)
    want = np.linalg.solve(wide(a), b) if left_side else b @ np.linalg.inv(wide(a))
    for threads in (1, 3):
        with config.override(num_threads=threads):
            found = polyax.jit(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=left_side, lower=True))(a, b)
        close(found, want, dtype)


# --- programs --------------------------------------------------------------------------------------------------------

PROGRAMS = {
    "inv": jnp.linalg.inv,
    "det": jnp.linalg.det,
    "slogdet": lambda x: jnp.linalg.slogdet(x)[1],
    "solve": lambda x: jnp.linalg.solve(x, x[:, :2] + 1),
    "solve by a factor": lambda x: cho_solve(cho_factor(x @ adjoint_of(x), lower=True), x[:, 0]),
    "cholesky": lambda x: jnp.linalg.cholesky(x @ adjoint_of(x)),
    "eigh": lambda x: [abs(y) ** 2 for y in jnp.linalg.eigh(x + adjoint_of(x))],
    "svd": lambda x: [abs(y) ** 2 for y in jnp.linalg.svd(x[:, :3], full_matrices=False)],
    "singular values": lambda x: jnp.linalg.svd(x[:3], compute_uv=False),
    "qr": lambda x: list(jnp.linalg.qr(x[:, :3])),
    "eigenvalues": lambda x: jnp.linalg.eigvalsh(x + adjoint_of(x)),
    "r": lambda x: jnp.linalg.qr(x[:, :3], mode="r"),
}
"""Of matrices of 4 x 4; squares where signs are free."""


def adjoint_of(x):
    return x.mT.conj()


def total(program, x):
    """A real number that depends on all that ``program`` computes."""
    leaves = polyax.tree.leaves(program(x))
    return sum(jnp.sum(jnp.sin(y.real + 0.5 * y.imag + jnp.arange(y.size).reshape(y.shape))) for y in leaves)


def in_a_loop(program, x):
    def body(i, x):
        return x + 0.01 * jnp.cos(total(program, x))

    return lax.fori_loop(0, 3, body, x)


def in_a_scan(program, x):
    def body(c, y):
        s = total(program, c + 0.1 * y)
        return c + 0.01 * s, s

    return lax.scan(body, x, jnp.stack([x, -x, 2 * x]), reverse=True)


def in_a_search(program, x):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + 0.01 * jnp.sin(total(program, c[1]))), (0, x))


def in_a_branch(program, x):
    def body(c, n):
        return lax.switch(n, [lambda x: x + 0.01 * total(program, x), lambda x: x * 1.01, jnp.tanh], c), None

    return lax.scan(body, x, jnp.array([0, 1, 0, 2]))[0]


WAYS = {
    "in a loop": in_a_loop,
    "in a scan": in_a_scan,
    "in a search": in_a_search,
    "in a branch": in_a_branch,
    "in a mapped loop": lambda f, x: polyax.vmap(lambda x: in_a_loop(f, x))(jnp.stack([x, x + 1])),
    "in a loop, mapped": lambda f, x: in_a_loop(polyax.vmap(f), jnp.stack([x, x + 1])),
    "in the gradient of a scan": lambda f, x: polyax.grad(lambda x: in_a_scan(f, x)[1].sum())(x),
    "in a loop of gradients": lambda f, x: in_a_loop(polyax.grad(lambda x: total(f, x)), x),
}


def expected(program, *args):
    """By NumPy, step by step."""
    with polyax.default_device(REFERENCE):
        return polyax.tree.map(np.asarray, program(*[polyax.device_put(x, REFERENCE) for x in args]))


def agree(program, *args, rtol: float = 1e-8) -> None:
    found = polyax.tree.map(np.asarray, polyax.jit(program)(*[polyax.device_put(x, CPU) for x in args]))
    for got, want in zip(polyax.tree.leaves(found), polyax.tree.leaves(expected(program, *args)), strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_and_branches_need_no_python(name: str, way: str) -> None:
    agree(lambda x: WAYS[way](PROGRAMS[name], x), general((4, 4), "float64"))


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_of_other_dtypes_need_no_python(name: str, dtype: str) -> None:
    agree(lambda x: in_a_loop(PROGRAMS[name], x), general((4, 4), dtype), rtol=10 * TOLERANCE[dtype])


def test_empty_matrices_are_left_to_numpy() -> None:
    x = np.zeros((0, 0), np.float32)
    np.testing.assert_array_equal(lax.linalg.cholesky(x, symmetrize_input=False), x)


def test_what_fails_in_a_loop_is_nan() -> None:
    xs = np.stack([definite((4, 4), "float64"), -np.eye(4), definite((4, 4), "float64")])
    found = np.asarray(polyax.jit(lambda xs: lax.map(jnp.linalg.cholesky, xs))(xs))
    assert np.isnan(found[1]).any()
    close(found[::2], np.linalg.cholesky(xs[::2]), "float64")


@pytest.mark.parametrize("name", PROGRAMS)
def test_batches_and_derivatives_agree_with_the_reference(name: str) -> None:
    program = PROGRAMS[name]

    def everything(x):
        return [polyax.vmap(program)(x), polyax.vmap(polyax.grad(lambda x: total(program, x)))(x)]

    agree(everything, general((3, 4, 4), "float64"), rtol=1e-7)
