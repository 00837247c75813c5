"""``custom_root`` and ``custom_linear_solve``: derivatives against those of the solutions in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax

A = np.array([[3.0, 1.0], [0.5, 2.0]], np.float32)
B = np.array([1.0, 2.0], np.float32)


def close(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def dense(matvec: Any, b: Any) -> Any:
    return jnp.linalg.solve(polyax.jacobian(matvec)(jnp.zeros_like(b)), b)


def solution(a: Any, b: Any, symmetric: bool = False) -> Any:
    """The matrix product is hidden from derivatives: they must come from solving further systems."""
    transposed = None if symmetric else dense
    return lax.custom_linear_solve(lambda x: a @ x, b, dense, transposed, symmetric=symmetric)


def by_b(a: np.ndarray) -> np.ndarray:
    return np.linalg.inv(a.astype(np.float64))


def by_a(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """d x_i / d A_jk = -(A^-1)_ij x_k."""
    inverse = by_b(a)
    return -np.einsum("ij,k->ijk", inverse, inverse @ b)


@pytest.mark.parametrize("jacobian", [polyax.jacfwd, polyax.jacrev], ids=["forward", "reverse"])
@pytest.mark.parametrize("wrap", [lambda f: f, polyax.jit], ids=["eager", "jit"])
def test_jacobians_of_linear_systems(jacobian: Any, wrap: Any) -> None:
    got = jacobian(wrap(solution), (0, 1))(A, B)
    close(got[0], by_a(A, B))
    close(got[1], by_b(A))


def test_second_order() -> None:
    """The Hessian of |A^-1 b|^2 by b is 2 A^-T A^-1."""
    inverse = by_b(A)
    close(polyax.hessian(lambda b: jnp.sum(solution(A, b) ** 2))(B), 2 * inverse.T @ inverse)


def test_symmetric_systems_need_one_solver() -> None:
    close(polyax.jacrev(lambda b: solution(A @ A.T, b, True))(B), by_b(A @ A.T))


@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (0, None)])
def test_mapped_systems(axes: Any) -> None:
    matrices, sides = np.stack([A, A + 1, A + 2]), np.stack([B, 2 * B, 3 * B])
    args = (A if axes[0] is None else matrices, B if axes[1] is None else sides)
    close(polyax.vmap(solution, axes)(*args), [by_b(a) @ b for a, b in zip(*_pairs(*args), strict=True)])
    got = polyax.vmap(polyax.jacrev(solution, (0, 1)), axes)(*args)
    close(got[0], [by_a(a, b) for a, b in zip(*_pairs(*args), strict=True)])
    close(got[1], [by_b(a) for a in _pairs(*args)[0]])


def test_only_what_depends_on_mapped_arguments_is_mapped() -> None:
    def solve(matvec: Any, b: Any) -> Any:
        return b[0], (b[1] - 3.0 * b[0]) / 2.0, b[2]

    def run(slope: Any, b: Any) -> Any:
        matvec = lambda x: (x[0], slope * x[0] + 2.0 * x[1], x[2])
        return lax.custom_linear_solve(matvec, b, solve)

    b = (np.ones(()), np.arange(4.0), np.ones(()))
    got = polyax.vmap(run, (None, (None, 0, None)), (None, 0, None))(3.0, b)
    for x, wanted in zip(got, (1.0, (b[1] - 3.0) / 2.0, 1.0), strict=True):
        close(x, wanted)
    polyax.vmap(run, (0, None), (None, 0, None))(np.ones(4), (1.0, 1.0, 1.0))


def _pairs(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Three of each, which is another number than that of unknowns."""
    return np.broadcast_to(a, (3, 2, 2)), np.broadcast_to(b, (3, 2))


def test_trees_and_what_solvers_give_besides() -> None:
    def solve(matvec: Any, b: Any) -> Any:
        return {"u": b["u"] / 2, "v": b["v"] / 4}, {"steps": 7, "norm": b["u"]}

    def run(b: Any) -> Any:
        matvec = lambda x: {"u": 2 * x["u"], "v": 4 * x["v"]}
        return lax.custom_linear_solve(matvec, b, solve, symmetric=True, has_aux=True)

    b = {"u": 2.0, "v": 4.0}
    x, aux = polyax.jit(run)(b)
    assert (x["u"], x["v"], aux["steps"], aux["norm"]) == (1.0, 1.0, 7, 2.0)
    slope = polyax.grad(lambda b: run(b)[0]["v"] + run(b)[1]["norm"])(b)
    assert (slope["u"], slope["v"]) == (0.0, 0.25)


def test_reverse_mode_needs_the_transposed_solver() -> None:
    f = lambda b: lax.custom_linear_solve(lambda x: A @ x, b, dense)
    close(polyax.jvp(f, (B,), (B,))[1], by_b(A) @ B)
    with pytest.raises(TypeError, match="transpose_solve required for backwards mode"):
        polyax.jacrev(f)(B)


STRUCTURE = r"\(\) output pytree structure must match b, got PyTreeDef\(\(\*, \*\)\) and PyTreeDef\(\*\)"
BAD = {
    "matvec": (TypeError, lambda: (lambda x: (x, x), B, lambda m, b: b), f"matvec{STRUCTURE}"),
    "shape": (ValueError, lambda: (lambda x: x[:1], B, lambda m, b: b), r"matvec\(\) output shapes must match b"),
    "solve": (ValueError, lambda: (lambda x: x, B, lambda m, b: b[:1]), r"solve\(\) .* got \[\(1,\)\] and \[\(2,\)\]"),
    "transpose": (
        TypeError,
        lambda: (lambda x: x, B, lambda m, b: b, lambda m, b: (b, b)),
        f"transpose_solve{STRUCTURE}",
    ),
    "dtype": (TypeError, lambda: (lambda x: x.astype("float16"), B, lambda m, b: b), r"float16\[2\].*float32\[2\]"),
}


@pytest.mark.parametrize("name", BAD)
def test_systems_that_do_not_fit(name: str) -> None:
    error, args, text = BAD[name]
    with pytest.raises(error, match=text):
        lax.custom_linear_solve(*args())


def cube_root(a: Any) -> Any:
    newton = lambda f, x: lax.fori_loop(0, 30, lambda _, x: x - f(x) / (3 * x * x), x)
    return lax.custom_root(lambda x: x**3 - a, 1.0, newton, lambda g, y: y / g(1.0))


@pytest.mark.parametrize("wrap", [lambda f: f, polyax.jit], ids=["eager", "jit"])
def test_roots(wrap: Any) -> None:
    """The derivatives of a^(1/3) at 8 are 1/12 and -1/144."""
    f = wrap(cube_root)
    close(f(8.0), 2)
    close(polyax.grad(f)(8.0), 1 / 12)
    close(polyax.jvp(f, (8.0,), (2.0,))[1], 1 / 6)
    close(polyax.grad(polyax.grad(f))(8.0), -1 / 144)
    close(polyax.jacfwd(polyax.grad(f))(8.0), -1 / 144)


def test_mapped_roots() -> None:
    cubes = np.array([1.0, 8.0, 27.0], np.float32)
    close(polyax.vmap(cube_root)(cubes), [1, 2, 3])
    close(polyax.vmap(polyax.grad(cube_root))(cubes), [1 / 3, 1 / 12, 1 / 27])


def test_roots_of_trees_with_what_solvers_give_besides() -> None:
    def root(a: Any) -> Any:
        residual = lambda t: {"u": t["u"] ** 2 - a, "v": t["v"] - 3 * t["u"]}
        solve = lambda f, t: ({"u": jnp.sqrt(a), "v": 3 * jnp.sqrt(a)}, 30)
        back = lambda g, y: _solve_pair(g, y)
        return lax.custom_root(residual, {"u": 1.0, "v": 1.0}, solve, back, has_aux=True)

    found, steps = root(4.0)
    assert (found["u"], found["v"], steps) == (2.0, 6.0, 30)
    for jacobian in (polyax.jacfwd, polyax.jacrev):
        slope = jacobian(lambda a: root(a)[0])(4.0)
        close([slope["u"], slope["v"]], [0.25, 0.75])


def _solve_pair(g: Any, y: Any) -> Any:
    matrix = polyax.jacobian(lambda v: jnp.stack(polyax.tree.leaves(g({"u": v[0], "v": v[1]}))))(jnp.zeros(2))
    u, v = jnp.linalg.solve(matrix, jnp.stack([y["u"], y["v"]]))
    return {"u": u, "v": v}


def test_roots_that_do_not_fit() -> None:
    same = lambda f, x: x
    with pytest.raises(TypeError, match=r"f\(\) output pytree structure must match initial_guess"):
        lax.custom_root(lambda x: (x, x), 1.0, same, same)
    with pytest.raises(TypeError, match=r"solve\(\) output pytree structure must match initial_guess"):
        lax.custom_root(lambda x: x, 1.0, lambda f, x: (x, x), same)
    with pytest.raises(TypeError, match=r"tangent_solve\(\) output pytree structure must match x"):
        lax.custom_root(lambda x: x, 1.0, same, lambda g, y: (y, y))
