"""Iterative solvers, minima and rotations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.spatial.transform

import polyax
from polyax import numpy as jnp
from polyax import random
from polyax.scipy import optimize
from polyax.scipy.sparse import linalg
from polyax.scipy.spatial import transform
from polyax.test_util import check_grads
from support.rows import Row, check_derivatives, check_jit, check_values

RNG = np.random.default_rng(4)
GENERAL = RNG.normal(size=(12, 12)) + 6 * np.eye(12)
DEFINITE = GENERAL @ GENERAL.T
B = RNG.normal(size=12)
SOLVERS = {"cg": DEFINITE, "bicgstab": GENERAL, "gmres": GENERAL}


@pytest.fixture(autouse=True)
def float64():
    with polyax.enable_x64(True):
        yield


@pytest.mark.parametrize("name", SOLVERS)
def test_solutions(name):
    solve, a = getattr(linalg, name), SOLVERS[name]
    want = np.linalg.solve(a, B)
    for x, _ in (
        solve(a, B, tol=1e-12),
        solve(lambda x: a @ x, B, tol=1e-12, x0=want + 0.1),
        solve(a, B, tol=1e-12, M=np.diag(1 / np.diag(a))),
        polyax.jit(lambda b: solve(a, b, tol=1e-12))(B),
    ):
        np.testing.assert_allclose(x, want, rtol=1e-8)
    mapped = polyax.vmap(lambda b: solve(a, b, tol=1e-12)[0])(np.stack([B, 2 * B]))
    np.testing.assert_allclose(mapped, np.stack([want, 2 * want]), rtol=1e-8)


@pytest.mark.parametrize("name", SOLVERS)
def test_derivatives_of_solutions(name):
    solve, a = getattr(linalg, name), SOLVERS[name]
    check_grads(lambda a, b: solve(a, b, tol=1e-13)[0], (a, B), 1, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["bicgstab", "gmres"])
def test_complex_systems(name):
    a = GENERAL + 1j * RNG.normal(size=(12, 12))
    x, _ = getattr(linalg, name)(a, B + 1j, tol=1e-12)
    np.testing.assert_allclose(x, np.linalg.solve(a, B + 1j), rtol=1e-8)


@pytest.mark.parametrize("name", SOLVERS)
def test_vectors_may_be_trees(name):
    a = SOLVERS[name]

    def product(x):
        y = a @ jnp.concatenate([x["a"], x["b"].reshape(-1)])
        return {"a": y[:4], "b": y[4:].reshape(2, 4)}

    x, status = getattr(linalg, name)(product, {"a": B[:4], "b": B[4:].reshape(2, 4)}, tol=1e-12)
    got = np.concatenate([x["a"], np.ravel(x["b"])])
    np.testing.assert_allclose(got, np.linalg.solve(a, B), rtol=1e-8)
    assert status == 0 if name == "gmres" else status is None


def test_gmres_says_what_is_no_number():
    assert linalg.gmres(GENERAL, B, x0=B * np.nan)[1] == -1


@pytest.mark.parametrize("name", SOLVERS)
def test_few_steps_give_up(name):
    """And an exact start or a zero right side needs none."""
    solve, a = getattr(linalg, name), SOLVERS[name]
    x, _ = solve(a, B, tol=1e-12, maxiter=1, **({"restart": 2} if name == "gmres" else {}))
    assert np.linalg.norm(a @ np.asarray(x) - B) > 1e-6
    np.testing.assert_array_equal(solve(a, np.zeros(12))[0], np.zeros(12))
    want = np.linalg.solve(a, B)
    np.testing.assert_allclose(solve(a, B, x0=want)[0], want, rtol=1e-12)


# --- minima ----------------------------------------------------------------------------------------------------------

FUNCTIONS = {
    "rosenbrock": (lambda x: jnp.sum(100 * jnp.diff(x) ** 2 + (1 - x[:-1]) ** 2), np.zeros(2)),
    "banana": (lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2, np.array([-1.2, 1.0])),
    "himmelblau": (lambda x: (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2, np.zeros(2)),
    "quadratic": (lambda x: 0.5 * x @ DEFINITE @ x - B @ x, np.zeros(12)),
    "logarithmic": (lambda x: jnp.sum(jnp.logaddexp(x, -3 * x)), np.array([3.0, -7.0, 0.2])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_minimum(name):
    fun, x0 = FUNCTIONS[name]
    want = scipy.optimize.minimize(lambda x: float(fun(x)), x0, method="BFGS", options={"gtol": 1e-8})
    for got in (
        optimize.minimize(fun, x0, method="BFGS"),
        polyax.jit(lambda x: optimize.minimize(fun, x, method="BFGS"))(x0),
    ):
        assert bool(got.success) and got.status == 0 and np.max(np.abs(got.jac)) < 1e-5
        np.testing.assert_allclose(got.fun, want.fun, rtol=1e-7, atol=1e-9)
        assert 0 < got.nit <= got.nfev == got.njev


def test_minima_of_several_starts_and_with_arguments():
    fun = lambda x, a: jnp.sum((x - a) ** 2 + (x - a) ** 4)
    solve = lambda x: optimize.minimize(fun, x, (3.0,), method="bfgs", tol=1e-8).x
    starts = RNG.normal(size=(5, 3))
    np.testing.assert_allclose(polyax.vmap(solve)(starts), np.full((5, 3), 3.0), atol=1e-7)


def test_failure_says_why():
    fun, x0 = FUNCTIONS["banana"]
    few = optimize.minimize(fun, x0, method="BFGS", options={"maxiter": 2})
    assert not few.success and few.status == 1 and few.nit == 2
    lost = optimize.minimize(lambda x: jnp.sum(x) * jnp.nan, x0, method="BFGS")
    assert not lost.success


# --- rotations -------------------------------------------------------------------------------------------------------

QUATS = RNG.normal(size=(5, 4))
THEIRS = scipy.spatial.transform.Rotation
MINE = transform.Rotation
VECTORS = RNG.normal(size=(5, 3))
MATRICES = THEIRS.from_quat(QUATS).as_matrix()
ANGLES = RNG.uniform(-1.5, 1.5, (5, 3))
TIMES = np.array([0.0, 1.0, 2.5, 3.0, 4.0])


def both(fun, *args, wrt=(0,), slope=1e-5):
    return Row(
        lambda *xs: fun(MINE, *xs), lambda *xs: fun(THEIRS, *xs), args, wrt, rtol=1e-10, coarse=2e-4, slope=slope
    )


SEQUENCES = ("xyz", "zyx", "zxz", "XYZ", "ZYX", "YXY")
ROWS = {
    "matrix": both(lambda r, q: r.from_quat(q).as_matrix(), QUATS),
    "one matrix": both(lambda r, q: r.from_quat(q).as_matrix(), QUATS[0]),
    "rotvec": both(lambda r, q: r.from_quat(q).as_rotvec(), QUATS),
    "rotvec, degrees": both(lambda r, q: r.from_quat(q).as_rotvec(degrees=True), QUATS),
    "mrp": both(lambda r, q: r.from_quat(q).as_mrp(), QUATS),
    "canonical": both(lambda r, q: r.from_quat(q).as_quat(canonical=True, scalar_first=True), QUATS),
    "magnitude": both(lambda r, q: r.from_quat(q).magnitude(), QUATS),
    "inverse": both(lambda r, q: r.from_quat(q).inv().as_quat(canonical=True), QUATS),
    "apply": both(lambda r, q, v: r.from_quat(q).apply(v), QUATS, VECTORS, wrt=(0, 1)),
    "apply back": both(lambda r, q, v: r.from_quat(q).apply(v, inverse=True), QUATS, VECTORS, wrt=(0, 1)),
    "product": both(
        lambda r, p, q: (r.from_quat(p) * r.from_quat(q)).as_matrix(), QUATS, QUATS[::-1].copy(), wrt=(0, 1)
    ),
    "mean": both(lambda r, q: r.from_quat(q).mean().as_matrix(), QUATS, wrt=()),
    "mean with weights": both(lambda r, q, w: r.from_quat(q).mean(w).as_matrix(), QUATS, TIMES + 1, wrt=()),
    "from rotvec": both(lambda r, v: r.from_rotvec(v).as_matrix(), VECTORS),
    "from small rotvec": both(lambda r, v: r.from_rotvec(v, degrees=True).as_matrix(), VECTORS * 1e-2),
    "from mrp": both(lambda r, v: r.from_mrp(v).as_matrix(), VECTORS),
    "from matrix": both(lambda r, m: r.from_matrix(m).as_quat(canonical=True), MATRICES, wrt=()),
    "concatenate": both(lambda r, q: r.concatenate([r.from_quat(q), r.from_quat(q[:2])]).as_matrix(), QUATS),
    **{f"from {s}": both(lambda r, a, s=s: r.from_euler(s, a).as_matrix(), ANGLES) for s in SEQUENCES},
    **{f"to {s}": both(lambda r, q, s=s: r.from_quat(q).as_euler(s), QUATS) for s in SEQUENCES},
    "about one axis": both(lambda r, a: r.from_euler("y", a, degrees=True).as_matrix(), ANGLES[:, :1] * 90),
    "path": Row(
        lambda q, t: transform.Slerp.init(TIMES, MINE.from_quat(q))(t).as_matrix(),
        lambda q, t: scipy.spatial.transform.Slerp(TIMES, THEIRS.from_quat(q))(t).as_matrix(),
        (QUATS, np.array([0.1, 0.3, 2.0, 3.9])),
        (0, 1),
        rtol=1e-10,
        slope=1e-5,
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_rotations_agree_with_scipy(name):
    check_values(ROWS[name])
    check_derivatives(ROWS[name])


@pytest.mark.parametrize("name", [n for n in ROWS if n != "path"])
def test_rotations_compiled(name):
    check_jit(ROWS[name])


def test_rotations_are_stacks_and_trees():
    r = MINE.from_quat(QUATS)
    assert len(r) == 5 and r[1].single and not r.single and r[1:3].quat.shape == (2, 4)
    assert MINE.identity(3).quat.shape == (3, 4) and MINE.identity().single
    np.testing.assert_allclose(np.linalg.norm(MINE.random(random.PRNGKey(1), 7).quat, axis=-1), 1)
    np.testing.assert_allclose(polyax.jit(lambda r: r.as_matrix())(r), MATRICES, atol=1e-12)
    np.testing.assert_allclose(polyax.vmap(lambda r, v: r.apply(v))(r, VECTORS), THEIRS.from_quat(QUATS).apply(VECTORS))


def test_angles_that_are_not_unique():
    got = MINE.from_euler("xyz", [0.3, np.pi / 2, 0.4])
    angles = got.as_euler("xyz")
    np.testing.assert_allclose(MINE.from_euler("xyz", angles).as_matrix(), got.as_matrix(), atol=1e-7)


def test_derivative_at_the_identity():
    check_grads(lambda v: MINE.from_rotvec(v).as_rotvec(), (np.zeros(3),), 1, ("fwd",))


ONE = lambda: MINE.from_quat(QUATS[0])
BAD = {
    "not square": (
        lambda: linalg.cg(np.ones((2, 3)), np.ones(2)),
        ValueError,
        "square matrix, but has shape: \\(2, 3\\)",
    ),
    "x0": (lambda: linalg.cg(DEFINITE, B, x0=np.ones(3)), ValueError, "matching shapes"),
    "x0 tree": (lambda: linalg.gmres(DEFINITE, B, x0=(B,)), ValueError, "matching tree structure"),
    "integers": (lambda: linalg.cg(np.eye(2), np.arange(2)), TypeError, "cg solves in floating-point numbers"),
    "gmres": (lambda: linalg.gmres(DEFINITE, B, solve_method="x"), ValueError, "invalid solve_method x"),
    "method": (lambda: optimize.minimize(jnp.sum, B, method="x"), ValueError, "Method x not recognized"),
    "args": (lambda: optimize.minimize(jnp.sum, B, 3, method="BFGS"), TypeError, "must be a tuple, got 3"),
    "option": (lambda: optimize.minimize(jnp.sum, B, method="BFGS", options={"zz": 1}), TypeError, "'zz'"),
    "matrix of unknowns": (lambda: optimize.minimize(jnp.sum, GENERAL, method="BFGS"), ValueError, "must be a vector"),
    "quaternion": (lambda: MINE.from_quat(np.ones(3)), ValueError, "vectors of 4 numbers"),
    "matrix": (lambda: MINE.from_matrix(np.ones((2, 2))), ValueError, "shape \\(3, 3\\)"),
    "axes": (lambda: MINE.from_euler("xya", ANGLES), ValueError, "Expected axes from `seq`"),
    "axes twice": (lambda: MINE.from_euler("xxy", ANGLES), ValueError, "consecutive axes"),
    "two axes": (lambda: ONE().as_euler("xy"), ValueError, "Expected 3 axes"),
    "angles": (lambda: MINE.from_euler("xyz", np.ones(2)), ValueError, "3 numbers along the last axis"),
    "length of one": (lambda: len(ONE()), TypeError, "no len"),
    "item of one": (lambda: ONE()[0], TypeError, "not subscriptable"),
    "weights": (lambda: MINE.from_quat(QUATS).mean(np.ones(2)), ValueError, "number of values equal to 5"),
    "times": (lambda: transform.Slerp.init(TIMES[:2], MINE.from_quat(QUATS)), ValueError, "number of times"),
    "one rotation": (lambda: transform.Slerp.init(TIMES, ONE()), ValueError, "at least 2"),
    "no rotation": (lambda: transform.Slerp.init(TIMES, QUATS), TypeError, "Rotation"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()


LIMITED = "l-bfgs-experimental-do-not-rely-on-this"


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize("n, maxcor", [(2, 10), (6, 3), (10, 10)])
def test_minima_with_limited_memory(n, maxcor):
    end = optimize.minimize(rosenbrock, np.zeros(n, np.float32), method=LIMITED, options={"maxcor": maxcor, "ftol": -1})
    np.testing.assert_allclose(end.x, np.ones(n), atol=1e-3)
    assert end.hess_inv is None and end.success == (end.status == 0) and end.nfev >= end.nit > 0


def test_each_step_with_limited_memory_leads_down():
    curve = np.array([1.0, 30.0], np.float32)
    parabola = lambda x: (curve * x * x).sum()
    values = [
        optimize.minimize(parabola, np.ones(2, np.float32), method=LIMITED, options={"maxiter": n}).fun
        for n in (1, 2, 8)
    ]
    assert 31 > values[0] > values[1] > values[2] and values[2] < 1e-4


@pytest.mark.parametrize(
    "options, status", [({"maxiter": 2}, 1), ({"maxfun": 4}, 2), ({"maxgrad": 4}, 3), ({"ftol": 1e3}, 4)]
)
def test_why_searches_with_limited_memory_end(options, status):
    end = optimize.minimize(rosenbrock, np.zeros(4, np.float32), method=LIMITED, options=options)
    assert (end.status, end.success) == (status, False)


def test_searches_with_limited_memory_are_mapped_and_compiled():
    search = lambda x: optimize.minimize(rosenbrock, x, method=LIMITED, options={"ftol": -1}).x
    starts = np.array([[0.0, 0.0], [-1.0, 1.0], [1.0, 1.0]], np.float32)
    np.testing.assert_allclose(polyax.jit(polyax.vmap(search))(starts), np.ones((3, 2)), atol=1e-3)
