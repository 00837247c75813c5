"""``sparsify``, and the operators of ``BCOO`` that it makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from core.experimental.sparse.layouts import close, full, some

import polyax
from polyax import lax
from polyax import numpy as jnp
from polyax.experimental import sparse
from polyax.experimental.sparse import BCOO, BCSR, sparsify

X = some(3, 4)
V = full(3)
both_ways = pytest.mark.parametrize("use_tracer", [False, True])

FUNCTIONS: dict[str, Any] = {
    "a product of a function": lambda m: 2 * jnp.dot(jnp.log1p(abs(m).T), V) + 1,
    "elementwise": lambda m: jnp.sin(m) ** 3 + m / 2 - jnp.tanh(m * 3),
    "sums": lambda m: m.sum(0) + jnp.full(4, 2.0) * m.sum(),
    "shapes": lambda m: jnp.squeeze(m.reshape(6, 1, 2).T),
    "stacks": lambda m: jnp.concatenate([jnp.stack([m, -m]), m[None]]),
    "slices": lambda m: m[1:, ::2][::-1],
    "elements": lambda m: m[2, 1] + m[-1].sum(),
    "einsum": lambda m: jnp.einsum("ij,kj->ik", m, m),
    "dense sum": lambda m: m + jnp.ones((3, 4)),
    "jit": lambda m: polyax.jit(lambda x: x * 2)(m),
    "cond": lambda m: lax.cond(m.sum() > 100, lambda x: x * 2, jnp.sin, m),
    "while": lambda m: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, m))[1],
    "for": lambda m: lax.fori_loop(0, 3, lambda i, x: jnp.sin(x) + 0.0 * i * x, m),
    "scan": lambda m: lax.scan(lambda c, x: (c, m.T @ c * x), V, jnp.arange(3.0))[1],
    "convolution": lambda m: jnp.convolve(m[0], V),
    "made dense": lambda m: jnp.exp(sparse.todense(m)),
}


@both_ways
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_of_dense_arrays(name: str, use_tracer: bool) -> None:
    fun = FUNCTIONS[name]
    close(sparse.todense(sparsify(fun, use_tracer=use_tracer)(BCOO.fromdense(X))), fun(jnp.asarray(X)), 1e-4)


@pytest.mark.parametrize("name", ["elementwise", "einsum", "scan", "jit", "slices"])
def test_in_jit_and_differentiated(name: str) -> None:
    fun, mat = FUNCTIONS[name], BCOO.fromdense(X)
    loss = lambda m: (sparse.todense(sparsify(fun)(m)) ** 2).sum()
    found = polyax.jit(sparse.grad(loss))(mat)
    wanted = polyax.grad(lambda x: (fun(x) ** 2).sum())(jnp.asarray(X))
    close(found.data, sparse.bcoo_extract(mat, wanted).data, 1e-3)


def test_operators() -> None:
    mat, y = BCOO.fromdense(X), full(4)
    for found, wanted in (
        (mat @ y, X @ y), (V @ mat, V @ X), (np.asarray(V) @ mat, V @ X), (mat.T @ V, X.T @ V), (mat @ mat.T, X @ X.T),
        (mat + mat, 2 * X), (mat - 2 * mat, -X), (mat * mat, X * X), (3 * mat, 3 * X),
        (mat * V[:, None], X * V[:, None]), (mat / 2, X / 2),
        (-mat, -X), (+mat, X), (abs(mat), abs(X)), (mat**2, X**2),
        (full(3, 4) + mat, full(3, 4) + X),
        (mat.sum(), X.sum()), (mat.reshape(4, 3), X.reshape(4, 3)), (mat[1], X[1]), (mat[:, None, 1:], X[:, None, 1:]),
        (mat[jnp.array(2)], X[2]),
    ):  # fmt: skip
        close(sparse.todense(found), wanted, 1e-4)
    assert mat.astype(int).dtype == jnp.arange(0).dtype
    assert len(list(mat)) == 3 and isinstance(next(iter(mat)), BCOO)
    assert ((mat + mat).nse, (2 * mat).nse) == (2 * mat.nse, mat.nse)
    assert sparsify(lambda m: m + m)(mat).nse == mat.nse  # of one array, it knows that indices are the same
    assert mat[3:].nse == 0 and isinstance(mat[3:], BCOO)


def test_duplicates_are_added_before_what_is_not_linear() -> None:
    mat = BCOO((np.array([1.0, 2.0], np.float32), np.array([[0], [0]], np.int32)), shape=(2,))
    close((mat**2).todense(), [9, 0])
    close(sparsify(jnp.sqrt)(mat * 3).todense(), [3, 0])
    close(polyax.jit(lambda m: abs(-m))(mat).todense(), [3, 0])


def test_custom_derivatives_are_kept() -> None:
    @polyax.custom_jvp
    def square(x: Any) -> Any:
        return x * x

    square.defjvp(lambda p, t: (square(*p), 10 * p[0] * t[0]))
    mat = BCOO.fromdense(X)
    for use_tracer in (False, True):
        close(sparsify(square, use_tracer=use_tracer)(mat).todense(), X * X)
    found = sparse.grad(lambda m: sparsify(square)(m).sum())(mat)
    close(found.data, 10 * mat.data)


def test_compressed_rows() -> None:
    mat, y = BCSR.fromdense(X), full(4)
    close(sparsify(lambda m: jnp.sin(m) @ y)(mat), np.sin(X) @ y)
    close(sparsify(lambda m: jnp.concatenate([m, m]))(mat).todense(), np.concatenate([X, X]))
    close(sparsify(lambda m: sparse.todense(m) + 1)(mat), X + 1)
    with pytest.raises(NotImplementedError, match="sparse rule for transpose is not implemented"):
        sparsify(jnp.transpose)(mat)


def test_branches_have_to_agree() -> None:
    choose = sparsify(lambda x, y: lax.cond(False, lambda p: p[0], lambda p: p[1], (x, y)))
    mat = BCOO.fromdense(V)
    close(choose(mat, mat).todense(), V)
    with pytest.raises(TypeError, match="sparsified true_fun output must have same type structure as sparsified false"):
        choose(mat, V)


def test_ranks_are_never_promoted() -> None:
    mat = BCOO.fromdense(X)
    with polyax.numpy_rank_promotion("raise"):
        close((mat @ mat.T)[1:, ::2].sum(0).todense(), (X @ X.T)[1:, ::2].sum(0))
        close((mat * mat).reshape(4, 3)[::-1].sum_duplicates().todense(), (X * X).reshape(4, 3)[::-1])
        close((mat * V[:, None])[jnp.array([2, 0])].todense(), (X * V[:, None])[[2, 0]])
        close(jnp.ones(3) @ mat, X.sum(0))


def test_tracers_stand_for_all_arguments() -> None:
    seen: list[Any] = []
    sparsify(lambda *xs: seen.extend(xs), use_tracer=True)(V, BCOO.fromdense(X))
    assert all(isinstance(x, sparse.SparseTracer) for x in seen)


def test_trees_and_keywords_pass_through() -> None:
    fun = sparsify(lambda tree, scale: {"out": tree["m"] * scale, "v": tree["v"]})
    found = fun({"m": BCOO.fromdense(X), "v": V}, scale=2.0)
    close(found["out"].todense(), 2 * X)
    close(found["v"], V)


@both_ways
def test_what_would_be_dense_is_refused(use_tracer: bool) -> None:
    mat = BCOO.fromdense(X)
    for fun, text in (
        (jnp.exp, "sparse rule for exp is not implemented because it would result in dense output"),
        (lambda m: m == 0, "sparse rule for eq is not implemented because it would result in dense"),
        (lambda m: jnp.cumsum(m, 0), "sparse rule for cumsum is not implemented"),
        (lambda m: m - 1.0, "Subtraction between sparse and dense array"),
        (lambda m: m + 1.0, "Addition between a sparse array X and a dense array Y is not implemented"),
        (lambda m: 1.0 / m, "Division by a sparse array is not implemented"),
        (lambda m: m**-2, "with non-positive exponent -2"),
        (lambda m: m + m[:1], "Addition between sparse matrices of different shapes|Adding sparse dimensions"),
        (lambda m: lax.scan(lambda c, x: (c + 1.0, x), 0.0, m), "sparse rule for scan with x values"),
    ):
        with pytest.raises((NotImplementedError, ValueError, TypeError), match=text):
            sparsify(fun, use_tracer=use_tracer)(mat)
    with pytest.raises(NotImplementedError, match="sparse rule for gt"):
        _ = mat > 0
