"""Linear algebra against SciPy; what isn't unique, by what it must satisfy."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.linalg

import polyax
from polyax import lax
from polyax import numpy as jnp
from polyax.scipy import linalg
from polyax.test_util import check_grads
from support.rows import Row, agree, check_derivatives, check_jit, check_values, check_vmap

RNG = np.random.default_rng(5)
A = RNG.uniform(-1, 1, (4, 4)) + 2 * np.eye(4)
WIDE = RNG.uniform(-1, 1, (3, 5))
S = A @ A.T + np.eye(4)
Z = A + 1j * RNG.uniform(-1, 1, (4, 4))
TURN = np.array([[0.0, 1.0, 0.3, 0.0], [-2.0, 0.1, 0.0, 1.0], [0.0, 0.0, 1.0, 0.5], [0.2, 0.0, -3.0, 1.0]])
"""Its eigenvalues are complex."""
B, V = RNG.uniform(-1, 1, (4, 2)), RNG.uniform(-1, 1, 4)
STACK = np.stack([A, A.T, S])
F = np.array([0.1, 2.0, 1.0, 0.1])


def row(name, *args, wrt=(), **how):
    params, oracle = how.pop("params", {}), how.pop("oracle", None)
    mine = partial(getattr(linalg, name), **params)
    return Row(mine, oracle or partial(getattr(scipy.linalg, name), **params), args, wrt, **how)


def many(fun):
    return lambda x: np.stack([fun(a) for a in x])


ROWS = {
    "cholesky": row("cholesky", S),
    "cholesky, lower": row("cholesky", S, params={"lower": True}),
    "solve": row("solve", A, B, wrt=(0, 1)),
    "solve, vector": row("solve", A, V, wrt=(0, 1)),
    "solve, symmetric": row("solve", S, V, params={"assume_a": "sym"}),
    "solve, positive": row("solve", np.tril(S), V, params={"assume_a": "pos", "lower": True}),
    **{
        f"solve_triangular {trans} lower={lower}": row(
            "solve_triangular", A, B, wrt=(0, 1), params={"trans": trans, "lower": lower}
        )
        for trans in (0, "T", 2)
        for lower in (False, True)
    },
    "solve_triangular, complex": row("solve_triangular", Z, V, params={"trans": "C", "unit_diagonal": True}),
    **{
        f"lu_solve {trans}": Row(
            lambda a, b, trans=trans: linalg.lu_solve(linalg.lu_factor(a), b, trans),
            lambda a, b, trans=trans: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b, trans),
            (A, B),
            (0, 1),
        )
        for trans in (0, 1, 2)
    },
    "lu_solve, complex adjoint": Row(
        lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, 2),
        lambda a, b: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b, 2),
        (Z, V),
    ),
    "cho_solve": Row(
        lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b), lambda a, b: np.linalg.solve(a, b), (S, B)
    ),
    "cho_solve, complex lower": Row(
        lambda a, b: linalg.cho_solve(linalg.cho_factor(a, True), b),
        lambda a, b: np.linalg.solve(a, b),
        (Z @ Z.conj().T, B),
    ),
    "lu": row("lu", WIDE),
    "lu, permuted": row("lu", WIDE.T, params={"permute_l": True}),
    "inv": row("inv", A, wrt=(0,)),
    "det": row("det", A, wrt=(0,)),
    "svd": row("svd", WIDE, params={"compute_uv": False}, wrt=(0,)),
    "eigh": row("eigh", S, params={"eigvals_only": True}),
    "eigh, upper complex": row("eigh", Z + Z.conj().T, params={"eigvals_only": True, "lower": False}),
    "eigh_tridiagonal": row("eigh_tridiagonal", V, V[:3], params={"eigvals_only": True}, wrt=(0, 1)),
    "eigh_tridiagonal, some": row(
        "eigh_tridiagonal", V, V[:3], params={"eigvals_only": True, "select": "i", "select_range": (1, 2)}
    ),
    "expm": row("expm", A, wrt=(0,)),
    "expm, far": row("expm", 4 * TURN, coarse=1e-3),
    "expm of a stack": row("expm", STACK),
    "expm, triangular": row("expm", np.triu(A), oracle=scipy.linalg.expm, params={"upper_triangular": True}),
    "expm_frechet": row("expm_frechet", A, S / 5),
    "sqrtm": row("sqrtm", S, oracle=lambda x: scipy.linalg.sqrtm(x) + 0j),
    "sqrtm, turning": row("sqrtm", TURN, oracle=lambda x: scipy.linalg.sqrtm(x) + 0j),
    "funm": row("funm", A, jnp.exp, oracle=lambda x, _: scipy.linalg.expm(x) + 0j, rtol=1e-10, coarse=1e-3),
    "solve_sylvester": row("solve_sylvester", A, S, RNG.uniform(-1, 1, (4, 4))),
    "solve_sylvester, eigen": row(
        "solve_sylvester", A, TURN, A, oracle=scipy.linalg.solve_sylvester, params={"method": "eigen"}, rtol=1e-10
    ),
    "polar": row("polar", A, oracle=scipy.linalg.polar),
    "polar, left": row("polar", WIDE, params={"side": "left"}),
    "polar by svd": row("polar", WIDE, oracle=partial(scipy.linalg.polar), params={"method": "svd"}),
    "block_diag": row("block_diag", A, V, 2.0, wrt=(0, 1, 2)),
    "toeplitz": row("toeplitz", V, F[:3], wrt=(0, 1)),
    "toeplitz of a stack": row("toeplitz", B, oracle=many(scipy.linalg.toeplitz)),
    "toeplitz, conjugate": row("toeplitz", V + 1j * F),
    "hankel": row("hankel", V, wrt=(0,)),
    "hankel, both": row("hankel", V, F[:3]),
    "circulant": row("circulant", V, wrt=(0,)),
    "companion": row("companion", F, wrt=(0,)),
    **{f"fiedler_companion {n}": row("fiedler_companion", 1.0 + np.arange(n)) for n in (2, 3, 6, 7)},
    "fiedler": row("fiedler", V, wrt=(0,)),
    "leslie": row("leslie", F, V[:3], wrt=(0, 1)),
    **{
        f"convolution_matrix {mode} {n}": row("convolution_matrix", V, params={"n": n, "mode": mode})
        for mode in ("full", "same", "valid")
        for n in (2, 4, 7)
    },
    "dft": row("dft", 5, params={"scale": "sqrtn"}),
    "helmert": row("helmert", 4),
    "helmert, full": row("helmert", 4, params={"full": True}),
    "hilbert": row("hilbert", 4),
    "invhilbert": row("invhilbert", 5),
    **{f"pascal {kind}": row("pascal", 5, params={"kind": kind}) for kind in ("symmetric", "lower", "upper")},
    **{
        f"invpascal {kind}": row(
            "invpascal", 5, params={"kind": kind}, oracle=partial(scipy.linalg.invpascal, kind=kind)
        )
        for kind in ("symmetric", "lower", "upper")
    },
}
OF_ARRAYS = [n for n, r in ROWS.items() if any(isinstance(x, np.ndarray) for x in r.args)]


@pytest.mark.parametrize("name", ROWS)
def test_agrees_with_scipy(name):
    check_values(ROWS[name])


@pytest.mark.parametrize("name", [n for n, r in ROWS.items() if r.wrt])
def test_derivatives_agree_with_finite_differences(name):
    check_derivatives(ROWS[name])


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_compiled_is_eager(name):
    check_jit(ROWS[name])


@pytest.mark.parametrize("name", [n for n in OF_ARRAYS if n not in ("block_diag", "eigh_tridiagonal, some")])
def test_mapped_is_a_loop(name):
    check_vmap(ROWS[name])


# --- what isn't unique -----------------------------------------------------------------------------------------------


@pytest.fixture
def float64():
    with polyax.enable_x64(True):
        yield


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def is_unitary(q):
    np.testing.assert_allclose(
        adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), q.shape[:-2] + (q.shape[-1],) * 2), atol=1e-10
    )


BIG = RNG.uniform(-1, 1, (30, 30))
DEFECTIVE = np.diag(np.full(5, 2.0)) + np.diag(np.ones(4), 1)
SQUARE = {
    "a matrix": A, "turning": TURN, "complex": Z, "large": BIG, "large complex": BIG + 1j * BIG.T, "a stack": STACK,
    "defective": DEFECTIVE, "a permutation": np.eye(5)[[1, 2, 3, 4, 0]], "one number": np.array([[3.0]]),
    "zero": np.zeros((3, 3)), "symmetric": S, "empty": np.zeros((0, 0)),
}  # fmt: skip


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", SQUARE)
def test_schur(name):
    a = SQUARE[name]
    t, z = map(np.asarray, linalg.schur(a))
    is_unitary(z)
    np.testing.assert_allclose(z @ t @ adjoint(z), a, atol=1e-10)
    assert not np.tril(t, -2 if a.dtype.kind == "f" else -1).any()
    below = np.diagonal(t, -1, -2, -1)
    assert not (below[..., 1:] * below[..., :-1]).any(), "blocks have two rows"
    if a.dtype.kind == "f" and a.size:
        two, upper = below != 0, np.diagonal(t, 1, -2, -1)
        diagonal = np.diagonal(t, 0, -2, -1)
        assert (upper[two] * below[two] < 0).all(), "a block of two rows has complex eigenvalues"
        np.testing.assert_allclose(diagonal[..., 1:][two], diagonal[..., :-1][two], rtol=1e-6, atol=1e-8)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", ["turning", "large", "a stack", "a permutation", "defective"])
def test_complex_schur(name):
    a = SQUARE[name]
    for t, z in (linalg.schur(a, output="complex"), linalg.rsf2csf(*linalg.schur(a))):
        is_unitary(np.asarray(z))
        np.testing.assert_allclose(z @ t @ adjoint(z), a, atol=1e-9)
        np.testing.assert_allclose(np.tril(t, -1), 0, atol=0)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", [n for n in SQUARE if n != "empty"])
def test_hessenberg(name):
    a = SQUARE[name]
    h, q = map(np.asarray, linalg.hessenberg(a, calc_q=True))
    is_unitary(q)
    np.testing.assert_allclose(q @ h @ adjoint(q), a, atol=1e-10)
    assert not np.tril(h, -2).any()
    np.testing.assert_array_equal(linalg.hessenberg(a), h)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("a", [S, Z + adjoint(Z)], ids=["real", "complex"])
def test_tridiagonal(a):
    packed, d, e, taus = map(np.asarray, lax.linalg.tridiagonal(a))
    assert d.dtype == e.dtype == np.float64 and taus.dtype == packed.dtype == a.dtype
    np.testing.assert_allclose(scipy.linalg.eigvalsh_tridiagonal(d, e), np.linalg.eigvalsh(a), rtol=1e-10)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("a", [S, Z + adjoint(Z)], ids=["real", "complex"])
def test_tridiagonal_of_the_upper_triangle(a):
    """The reflections make a basis in which the matrix is tridiagonal; the other triangle isn't read."""
    packed, d, e, taus = map(
        np.asarray, lax.linalg.tridiagonal(np.triu(a) + np.tril(np.full_like(a, 7), -1), lower=False)
    )
    q = np.eye(4, dtype=a.dtype)
    for i, tau in enumerate(taus):  # H_i is I - tau v v^H, with v above the diagonal of the next column
        v = np.concatenate([packed[:i, i + 1], [1], np.zeros(3 - i)])
        q = (np.eye(4) - tau * np.outer(v, v.conj())) @ q
    is_unitary(q)
    np.testing.assert_allclose(adjoint(q) @ a @ q, np.diag(d) + np.diag(e, 1) + np.diag(e, -1), atol=1e-12)


@pytest.mark.usefixtures("float64")
def test_hermitian_tridiagonal_matrices():
    d, e = np.arange(4) + 0.5j, np.array([1j, 2.0, 1 - 1j])
    whole = np.diag(d.real) + np.diag(e, -1) + np.diag(e.conj(), 1)
    values, vectors = linalg.eigh_tridiagonal(d, e)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(whole), atol=1e-12)
    np.testing.assert_allclose(whole @ vectors, vectors * values, atol=1e-12)
    chosen = linalg.eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(1, 2))
    np.testing.assert_allclose(chosen, values[1:3], atol=1e-12)


QR_SHAPES = {
    "wide": (WIDE, "economic"),
    "wide, complex": (Z[:3], "economic"),
    "tall": (WIDE.T, "full"),
    "tall, complex": (Z[:, :2], "full"),
    "stack": (STACK[:, :, :1], "full"),
    "stack, wide": (STACK[:, :2], "economic"),
}


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("pivoting", [False, True])
@pytest.mark.parametrize("name", QR_SHAPES)
def test_derivative_of_qr(name, pivoting):
    a, mode = QR_SHAPES[name]
    if pivoting and a.ndim > 2 and a.shape[-1] == 1:
        pytest.skip("one column has one order")
    fun = lambda a: linalg.qr(a, mode=mode, pivoting=pivoting)[:2]
    with polyax.default_device(polyax.devices("cpu")[0]):  # whose factors are made of reflections
        check_grads(fun, (a,), 2, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("a", [A, WIDE, WIDE.T, Z[:, :2], STACK], ids=str)
def test_qr(a):
    for mode in ("full", "economic"):
        q, r = linalg.qr(a, mode=mode)
        is_unitary(np.asarray(q))
        np.testing.assert_allclose(q @ r, a, atol=1e-12)
        q, r, order = map(np.asarray, linalg.qr(a, mode=mode, pivoting=True))
        is_unitary(q)
        np.testing.assert_allclose(q @ r, np.take_along_axis(a, order[..., None, :], -1), atol=1e-12)
        sizes = np.abs(np.diagonal(r, 0, -2, -1))
        assert (sizes[..., 1:] <= sizes[..., :-1] * (1 + 1e-12)).all()
    assert len(linalg.qr(a, mode="r")) == 1 and len(linalg.qr(a, mode="r", pivoting=True)) == 2


@pytest.mark.usefixtures("float64")
def test_derivative_of_pivoted_qr():
    fun = lambda a: sum((x * x).sum() for x in linalg.qr(a, pivoting=True)[1:2]) + linalg.qr(a, pivoting=True)[0][0, 0]
    check_grads(fun, (A,), 1)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("a", [A, WIDE.T, Z], ids=["square", "tall", "complex"])
def test_products_with_q(a):
    q = np.linalg.qr(a, "complete")[0]
    packed, taus = lax.linalg.geqrf(a)
    for got, want in zip(jnp.linalg.qr(a, mode="raw"), np.linalg.qr(a, mode="raw")):
        np.testing.assert_allclose(got, want, atol=1e-12)
    np.testing.assert_allclose(np.triu(packed)[: a.shape[1]], linalg.qr(a, mode="economic")[1], atol=1e-12)
    left, right = RNG.uniform(-1, 1, (len(a), 2)).astype(a.dtype), RNG.uniform(-1, 1, (2, len(a))).astype(a.dtype)
    q = np.asarray(lax.linalg.ormqr(packed, taus, np.eye(len(a), dtype=a.dtype)))
    is_unitary(q)
    np.testing.assert_allclose((q @ np.triu(packed))[:, : a.shape[1]], a, atol=1e-12)
    np.testing.assert_allclose(lax.linalg.ormqr(packed, taus, left, transpose=True), adjoint(q) @ left, atol=1e-12)
    np.testing.assert_allclose(lax.linalg.ormqr(packed, taus, right, left=False), right @ q, atol=1e-12)
    for mode, c in (
        ("right", right),
        ("right", right[0]),
        ("left", left[: a.shape[1]]),
        ("left", left[: a.shape[1], 0]),
    ):
        product, r = linalg.qr_multiply(a, c, mode)
        thin = linalg.qr(a, mode="economic")[0]
        np.testing.assert_allclose(product, c @ thin if mode == "right" else thin @ c, atol=1e-12)
        assert r.shape == (a.shape[1], a.shape[1])
    product, r, order = linalg.qr_multiply(a, right, pivoting=True, conjugate=True)
    np.testing.assert_allclose(product, right @ np.conj(linalg.qr(a, mode="economic", pivoting=True)[0]), atol=1e-12)


# --- lax.linalg ------------------------------------------------------------------------------------------------------

DL, D, DU = np.array([0.0, 3.0, -1.0, 2.0]), np.array([0.5, 1.0, -2.0, 0.3]), np.array([2.0, 1.0, 0.7, 9.0])
TRIDIAGONAL = lambda dl, d, du, b: np.linalg.solve(np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1), b)
OF_LAX = {
    "tridiagonal_solve": Row(lax.linalg.tridiagonal_solve, TRIDIAGONAL, (DL, D, DU, B), (0, 1, 2, 3)),
    "tridiagonal_solve of one": Row(lax.linalg.tridiagonal_solve, TRIDIAGONAL, (DL[:1], D[:1], DU[:1], B[:1])),
    "cholesky_update": Row(
        lax.linalg.cholesky_update,
        lambda r, w: np.linalg.cholesky(r.T @ r + np.outer(w, w)).T,
        (np.linalg.cholesky(S).T, V),
    ),
    "symmetric_product": Row(
        lambda a, c: lax.linalg.symmetric_product(a, c, alpha=2.0, beta=-1.0),
        lambda a, c: 2 * a @ a.T - c,
        (WIDE, S[:3, :3]),
    ),
}


@pytest.mark.parametrize("name", OF_LAX)
def test_of_lax(name):
    row = OF_LAX[name]
    check_values(row)
    check_derivatives(row)
    check_jit(row)
    check_vmap(row)


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_permutation_of_pivots(shape):
    pivots = RNG.integers(np.arange(3), 4, shape).astype(np.int32)
    got = lax.linalg.lu_pivots_to_permutation(pivots, 4)
    for i in np.ndindex(shape[:-1]):
        rows = list(range(4))
        for k, other in enumerate(pivots[i]):
            rows[k], rows[other] = rows[other], rows[k]
        assert np.asarray(got)[i].tolist() == rows


@pytest.mark.usefixtures("float64")
def test_qdwh_and_parts_of_decompositions():
    for a in (A, WIDE.T, Z, 1e-6 * A, np.diag([1.0, 1e-9])):
        u, h, steps, converged = lax.linalg.qdwh(a)
        is_unitary(np.asarray(u))
        np.testing.assert_allclose(u @ h, a, atol=1e-12)
        assert steps.dtype == np.int32 and converged.dtype == bool and bool(converged)
    v, w = lax.linalg.eigh(S, subset_by_index=(1, 3))
    agree(w, np.linalg.eigvalsh(S)[1:3], 1e-12)
    np.testing.assert_allclose(S @ np.asarray(v), v * w, atol=1e-10)
    u, s, vh = lax.linalg.svd(WIDE, full_matrices=False, subset_by_index=(0, 2), algorithm=lax.linalg.SvdAlgorithm.QR)
    agree(s, np.linalg.svd(WIDE)[1][:2], 1e-12)
    assert (u.shape, vh.shape) == ((3, 2), (2, 5))


def test_nan_where_there_is_no_answer():
    assert np.isnan(linalg.expm(np.eye(2, dtype=np.float32) * 1e30)).all()
    assert np.isnan(linalg.solve_sylvester(np.eye(2), -np.eye(2), np.ones((2, 2)))).all()
    assert np.isnan(linalg.schur(np.full((3, 3), np.nan, np.float32))[0]).any()
    assert linalg.funm(np.eye(2), jnp.exp, disp=False)[1].shape == ()


@pytest.mark.parametrize("name", ["solve", "expm", "toeplitz", "polar", "eigh_tridiagonal"])
def test_runs_compiled_on_the_cpu(name):
    with polyax.default_device("cpu"):
        check_values(ROWS[name])


I = np.eye(3)
BAD = {
    "not square": (lambda: linalg.cholesky(WIDE), ValueError, "square"),
    "solve shapes": (lambda: linalg.solve(A, V[:2]), ValueError, "don't fit"),
    "solve stacks of vectors": (lambda: linalg.solve(STACK, np.ones((3, 4))), ValueError, "Invalid shapes for solve"),
    "assume_a": (lambda: linalg.solve(A, V, assume_a="x"), ValueError, "Expected assume_a"),
    "trans": (lambda: linalg.solve_triangular(A, V, trans=5), ValueError, "Invalid 'trans' value 5"),
    "lu trans": (lambda: linalg.lu_solve(linalg.lu_factor(A), V, trans=7), ValueError, "must be 0, 1, or 2"),
    "eigh b": (lambda: linalg.eigh(S, S), NotImplementedError, "b=None"),
    "eigh type": (lambda: linalg.eigh(S, type=2), NotImplementedError, "type=1"),
    "eigh eigvals": (lambda: linalg.eigh(S, eigvals=(0, 1)), NotImplementedError, "eigvals=None"),
    "qr mode": (lambda: linalg.qr(A, mode="x"), ValueError, "Unsupported QR decomposition mode 'x'"),
    "qr_multiply mode": (lambda: linalg.qr_multiply(A, A, mode="x"), ValueError, "'right' or 'left'"),
    "schur output": (lambda: linalg.schur(A, output="x"), ValueError, "'real' or 'complex'"),
    "polar side": (lambda: linalg.polar(A, side="x"), ValueError, "`side`"),
    "polar method": (lambda: linalg.polar(A, method="x"), ValueError, "Unknown polar decomposition method x"),
    "polar, wide": (lambda: linalg.polar(WIDE), NotImplementedError, "use method='svd'"),
    "select": (lambda: linalg.eigh_tridiagonal(V, V[:3], select="q"), ValueError, "select must have a value"),
    "select by values": (lambda: linalg.eigh_tridiagonal(V, V[:3], select="v"), NotImplementedError, "select='v'"),
    "select_range": (lambda: linalg.eigh_tridiagonal(V, V[:3], select="i", select_range=(2, 1)), ValueError, "range"),
    "tridiagonal lengths": (lambda: linalg.eigh_tridiagonal(V, V), TypeError, "n - 1"),
    "expm": (lambda: linalg.expm(WIDE), ValueError, "square matrix, got A.shape=\\(3, 5\\)"),
    "expm_frechet": (lambda: linalg.expm_frechet(A, I), ValueError, "same shape"),
    "sqrtm": (lambda: linalg.sqrtm(A, blocksize=4), NotImplementedError, "Blocked"),
    "funm": (lambda: linalg.funm(WIDE, jnp.exp), ValueError, "square"),
    "sylvester": (lambda: linalg.solve_sylvester(A, I, A), ValueError, "Incompatible shapes"),
    "sylvester method": (lambda: linalg.solve_sylvester(A, A, A, method="x"), ValueError, "Unrecognized method x"),
    "rsf2csf": (lambda: linalg.rsf2csf(A, I), ValueError, "shapes must match"),
    "block_diag": (lambda: linalg.block_diag(STACK), ValueError, "at most 2 dimensions"),
    "companion": (lambda: linalg.companion(np.ones(1)), ValueError, "at least 2"),
    "leslie": (lambda: linalg.leslie(V, V), ValueError, "one less"),
    "convolution_matrix": (lambda: linalg.convolution_matrix(V, 4, mode="x"), ValueError, "mode must be one of"),
    "convolution_matrix n": (lambda: linalg.convolution_matrix(V, 0), ValueError, "positive integer; got 0"),
    "dft": (lambda: linalg.dft(4, scale="x"), ValueError, "scale must be"),
    "dft dtype": (lambda: linalg.dft(4, dtype=np.float32), ValueError, "complex floating-point"),
    "hadamard": (lambda: linalg.hadamard(3), ValueError, "power of 2; got 3"),
    "helmert": (lambda: linalg.helmert(0), ValueError, "positive integer"),
    "pascal": (lambda: linalg.pascal(3, kind="x"), ValueError, "Expected kind"),
    "invpascal": (lambda: linalg.invpascal(3, kind="x"), ValueError, "Expected kind"),
    "pivots": (lambda: lax.linalg.lu_pivots_to_permutation(V, 4), TypeError, "does not accept dtype float"),
    "too many pivots": (lambda: lax.linalg.lu_pivots_to_permutation(np.zeros(5, np.int32), 4), ValueError, "exceed"),
    "tridiagonal_solve": (lambda: lax.linalg.tridiagonal_solve(V, V, V, V), TypeError, "rank at least 2"),
    "tridiagonal diagonals": (lambda: lax.linalg.tridiagonal_solve(V[1:], V, V, B), TypeError, "got shapes"),
    "cholesky_update": (lambda: lax.linalg.cholesky_update(A, V[1:]), ValueError, "of the same size"),
    "complex cholesky_update": (lambda: lax.linalg.cholesky_update(A, V * 1j), TypeError, "position 1"),
    "symmetric_product": (lambda: lax.linalg.symmetric_product(WIDE, A), ValueError, "compatible"),
    "ormqr": (lambda: lax.linalg.ormqr(A, V, I), ValueError, "don't fit"),
    "qdwh": (lambda: lax.linalg.qdwh(WIDE), ValueError, "M >= N"),
    "sorted schur": (lambda: lax.linalg.schur(A, sort_eig_vals=True), NotImplementedError, "sort_eig_vals"),
    "eigh subset": (lambda: lax.linalg.eigh(S, subset_by_index=(2, 9)), ValueError, "within \\(0, 4\\)"),
    "svd subset": (lambda: lax.linalg.svd(S, subset_by_index=(0, 2)), ValueError, "full_matrices=False"),
    "derivative of schur": (lambda: polyax.jvp(linalg.schur, (A,), (A,)), NotImplementedError, "Schur form"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("solve", [linalg.solve_triangular, lambda a, b: linalg.cho_solve((a, False), b)])
def test_stacks_of_vectors_are_solved_for_but_warned_of(solve):
    b = np.ones((3, 4))
    with pytest.warns(FutureWarning, match=r"ask for vectors by b\[..., None\]"):
        found = solve(STACK, b)
    np.testing.assert_allclose(found, solve(STACK, b[..., None])[..., 0], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_matrices(dtype):
    """They are factored in float32, and rounded once; eigenvalues are complex64."""
    a = jnp.array(S / 4, dtype)
    wide = np.asarray(a, np.float32)
    pairs = [
        (jnp.linalg.cholesky(a), np.linalg.cholesky(wide)),
        (jnp.linalg.inv(a), np.linalg.inv(wide)),
        (linalg.solve_triangular(a, a), scipy.linalg.solve_triangular(wide, wide)),
        (jnp.linalg.eigvalsh(a), np.linalg.eigvalsh(wide)),
        (jnp.linalg.svdvals(a), np.linalg.svd(wide, compute_uv=False)),
        (np.abs(jnp.linalg.qr(a)[1]), np.abs(np.linalg.qr(wide)[1])),
        (linalg.schur(a)[0].trace(), np.trace(wide)),
    ]
    for got, want in pairs:
        assert got.dtype == dtype
        np.testing.assert_allclose(np.asarray(got, np.float32), want, rtol=0.05, atol=0.05)
    assert jnp.linalg.eigvals(a).dtype == "complex64"
    assert jnp.linalg.qr(jnp.zeros((0, 2), dtype))[1].dtype == dtype


def test_matrices_without_elements():
    for shape in ((0, 0), (2, 0, 0)):
        a = jnp.zeros(shape)
        assert np.array_equal(jnp.linalg.det(a), np.ones(shape[:-2])) and jnp.trace(a, axis1=-2, axis2=-1).sum() == 0
        assert jnp.linalg.pinv(a).shape == linalg.expm(a).shape == shape
        assert linalg.lu_solve(linalg.lu_factor(a), a).shape == shape
    assert [x.shape for x in linalg.polar(jnp.zeros((0, 0)))] == [(0, 0), (0, 0)]
    assert jnp.linalg.pinv(jnp.zeros((0, 3))).shape == (3, 0) and jnp.diagonal(jnp.zeros((3, 0))).shape == (0,)
    x, residuals, rank, values = jnp.linalg.lstsq(jnp.zeros((0, 3)), jnp.zeros((0, 2)))
    assert x.shape == (3, 2) and residuals.tolist() == [0, 0] and rank == 0 and values.shape == (0,)
    with pytest.raises(ValueError, match="input array must not be empty"):
        jnp.linalg.cond(jnp.zeros((0, 0)))


def test_powers_of_integers_are_integers():
    found = jnp.linalg.matrix_power(jnp.array([[1, 2], [3, 4]]), 3)
    assert found.dtype == "int32" and found.tolist() == [[37, 54], [81, 118]]
    assert jnp.linalg.matrix_power(jnp.array([[1, 2], [3, 4]]), -1).dtype == "float32"


def test_rank_of_vectors():
    ranks = [jnp.linalg.matrix_rank(x) for x in (jnp.zeros(3), jnp.arange(3), 2.0)]
    assert [int(r) for r in ranks] == [0, 1, 1] and ranks[0].dtype == "int32"


def test_least_squares_as_numpy_gives_residuals():
    a, b = jnp.array([[1.0, 1.0], [1.0, 2.0], [1.0, 4.0]]), jnp.array([1.0, 2.0, 3.0])
    assert np.allclose(jnp.linalg.lstsq(a, b, numpy_resid=True)[1], np.linalg.lstsq(a, b)[1], rtol=1e-4)
    assert jnp.linalg.lstsq(a[:2], b[:2], numpy_resid=True)[1].shape == (0,)
    assert jnp.linalg.lstsq(a[:, :1] * jnp.ones(2), b, numpy_resid=True)[1].shape == (0,)
    assert np.allclose(jnp.linalg.lstsq(a, b, rcond=-1.0)[0], jnp.linalg.lstsq(a, b)[0])
    for other in (b[:2], jnp.ones((2, 3, 1))):
        with pytest.raises(ValueError, match="Leading dimensions of input arrays must match"):
            jnp.linalg.lstsq(a, other)
    with pytest.raises(TypeError, match="Array must be one or two-dimensional"):
        jnp.linalg.lstsq(a, jnp.ones((3, 1, 1)))


LISTED = {
    "cholesky": lambda a: linalg.cholesky(a),
    "cho_solve": lambda a: linalg.cho_solve((a, True), [1.0, 2.0]),
    "lu": lambda a: linalg.lu(a),
    "lu_factor": lambda a: linalg.lu_factor(a),
    "qr": lambda a: linalg.qr(a),
    "svd": lambda a: linalg.svd(a),
    "solve_triangular": lambda a: linalg.solve_triangular(a, [1.0, 2.0]),
    "eigh": lambda a: linalg.eigh(a),
    "expm_frechet": lambda a: linalg.expm_frechet(a, a),
    "funm": lambda a: linalg.funm(a, jnp.sin),
    "rsf2csf": lambda a: linalg.rsf2csf(a, a),
    "polar": lambda a: linalg.polar(a),
    "eigh_tridiagonal": lambda a: linalg.eigh_tridiagonal(a[0], a[1][1:]),
}


@pytest.mark.parametrize("name", LISTED)
def test_nested_lists_are_matrices(name):
    rows = [[4.0, 1.0], [1.0, 3.0]]
    of_lists, of_arrays = (LISTED[name](a) for a in (rows, jnp.array(rows)))
    assert type(of_lists) is type(of_arrays)
    for x, y in zip(polyax.tree.leaves(of_lists), polyax.tree.leaves(of_arrays), strict=True):
        assert x.aval == y.aval
        np.testing.assert_array_equal(x, y)


def test_all_rows_of_the_triangular_factor():
    assert linalg.qr(jnp.ones((3, 2)), mode="r")[0].shape == (3, 2)


def test_the_schur_form_of_a_number_is_itself():
    assert [x.tolist() for x in linalg.rsf2csf(jnp.ones((1, 1)), jnp.ones((1, 1)))] == [[[1]], [[1]]]


def test_blocks_of_python_numbers_are_of_a_strong_type():
    assert not linalg.block_diag(1, 2.0).weak_type


def test_cholesky_reads_one_triangle():
    a = np.array([[4.0, 2.0], [-7.0, 2.0]], np.float32)
    assert np.allclose(linalg.cholesky(a), [[2, 1], [0, 1]]) and np.isnan(linalg.cholesky(a, lower=True)[1, 1])
    assert np.allclose(linalg.cho_factor(a.T, lower=True)[0], [[2, 0], [1, 1]])


def test_a_permutation_is_real():
    permutation, left, right = linalg.lu(A * 1j)
    assert permutation.dtype == left.real.dtype
    np.testing.assert_allclose(permutation @ left @ right, A * 1j, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_polar_factors_of_narrow_matrices(dtype):
    u, h = linalg.polar(jnp.asarray(A, dtype))
    assert u.dtype == h.dtype == dtype
    np.testing.assert_allclose((u @ h).astype("float32"), A, atol=0.05)


def test_of_matrices_that_are_not_symmetric_the_symmetric_part_has_eigenvalues():
    expected = np.linalg.eigvalsh((A + A.T) / 2)
    for lower in (False, True):
        np.testing.assert_allclose(linalg.eigh(A, lower=lower, eigvals_only=True), expected, rtol=1e-5)


@pytest.mark.parametrize("assume_a", ["sym", "her", "pos"])
@pytest.mark.parametrize("lower", [False, True])
def test_derivatives_by_symmetric_matrices_are_of_both_triangles(assume_a, lower):
    matrix = jnp.asarray(S)

    def total(a, **how):
        return jnp.sum(linalg.solve(a, jnp.asarray(V), **how))

    found = polyax.grad(partial(total, assume_a=assume_a, lower=lower))(matrix)
    np.testing.assert_allclose(found, polyax.grad(total)(matrix), rtol=2e-4, atol=1e-6)


def test_a_stack_of_vectors_meets_one_factor():
    right = RNG.uniform(-1, 1, (3, 4)).astype("float32")
    with pytest.warns(FutureWarning, match="taken for a matrix"):
        found = linalg.lu_solve(linalg.lu_factor(A[None]), right)
    np.testing.assert_allclose(found, np.linalg.solve(A, right.T).T, rtol=1e-4, atol=1e-6)


def test_matrices_on_the_right_of_stacks():
    right = RNG.uniform(-1, 1, (4, 4)).astype("float32")
    np.testing.assert_allclose(linalg.solve(STACK, right), np.linalg.solve(STACK, right), rtol=1e-3, atol=1e-5)


def test_exponentials_overflow_before_they_are_refused():
    assert jnp.all(jnp.isinf(linalg.expm(jnp.full((3, 3), 1e5))))
    assert jnp.all(jnp.isnan(linalg.expm(jnp.full((3, 3), 1e6))))


def test_the_lower_triangle_of_a_symmetric_product_counts_for_both():
    c = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    found = lax.linalg.symmetric_product(jnp.eye(2), c, beta=1.0, symmetrize_output=True)
    assert found.tolist() == [[2, 3], [3, 5]]


@pytest.mark.parametrize(
    ("mode", "shape", "text"),
    [("right", (2, 3), "c @ Q operation: a has shape (4, 2) so Q has 4 rows, but c has 3 columns (expected 4)."),
     ("left", (3, 2), "Q @ c operation: a has shape (4, 2) so Q has 2 columns, but c has 3 rows (expected 2).")],
)  # fmt: skip
def test_factors_that_do_not_fit_are_refused(mode, shape, text):
    with pytest.raises(ValueError) as caught:
        linalg.qr_multiply(B, np.ones(shape), mode)
    assert text in str(caught.value)


def test_diagonals_have_one_dtype():
    with pytest.raises(TypeError, match="must have same dtype, got float32 and float16"):
        linalg.eigh_tridiagonal(jnp.ones(3), jnp.ones(2, "float16"))


def test_matrices_of_no_size() -> None:
    assert linalg.hilbert(0).shape == linalg.invhilbert(0).shape == (0, 0)
