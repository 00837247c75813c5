"""Linear algebra of a few numbers within loops: values against NumPy and LAPACK, and that nothing is called."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax import numpy as jnp
from polyax_cpu import loops
from polyax_cpu.libraries import small
from support.products import CASES, expected

R = np.random.default_rng(11)
TOLERANCE = {"float32": 1e-4, "float64": 1e-12}
SIZES = range(1, small.ROWS + 1)


pytestmark = pytest.mark.usefixtures("in_64_bits")


def calls(texts: list[str]) -> int:
    """How many calls of libraries and of kernels the functions hold."""
    return sum("@step" in line and "declare" not in line for text in texts for line in text.splitlines())


def in_a_scan(f: Callable[..., Any], *stacks: np.ndarray) -> list[np.ndarray]:
    """What ``f`` says of each item of stacks, a turn for each."""
    return list(map(np.asarray, polyax.tree.leaves(polyax.jit(lambda *xs: lax.map(lambda x: f(*x), xs))(*stacks))))


def random(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return R.uniform(-1, 1, shape).astype(dtype)


def close(got: np.ndarray, want: np.ndarray, dtype: str) -> None:
    assert got.dtype == dtype
    np.testing.assert_allclose(got, want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def same(got: list[np.ndarray], want: list[np.ndarray], dtype: str) -> None:
    """What isn't finite in the same places, and as large as there."""
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def lapack(f: Callable[..., Any], *stacks: np.ndarray) -> list[np.ndarray]:
    """What ``f`` says outside of a loop, where LAPACK is called."""
    told = [polyax.tree.leaves(f(*xs)) for xs in zip(*stacks, strict=True)]
    return [np.stack(list(map(np.asarray, column))) for column in zip(*told, strict=True)]


def lu(x: Any) -> Any:
    return list(lax.linalg.lu(x))


def cholesky(x: Any) -> Any:
    return lax.linalg.cholesky(x, symmetrize_input=False)


# --- values ----------------------------------------------------------------------------------------------------------

FLAGS = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")


@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
@pytest.mark.parametrize("n", SIZES)
def test_cholesky(n: int, batch: tuple[int, ...], dtype: str, code: list[str]) -> None:
    x = random((5, *batch, n, n), "float64")
    x = (x @ np.swapaxes(x, -1, -2) + 0.1 * np.eye(n)).astype(dtype)
    (found,) = in_a_scan(cholesky, x + np.triu(np.full((n, n), np.nan, dtype), 1) if n > 1 else x)
    close(found, np.linalg.cholesky(x.astype(float)), dtype)
    assert not np.triu(found, 1).any()
    assert code and not calls(code)


@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
@pytest.mark.parametrize(("m", "n"), list(product(SIZES, SIZES)))
def test_lu(m: int, n: int, batch: tuple[int, ...], dtype: str, code: list[str]) -> None:
    x = random((5, *batch, m, n), dtype)
    packed, pivots, permutation = in_a_scan(lu, x)
    assert code and not calls(code)
    same([packed, pivots, permutation], lapack(lu, x), dtype)
    k = min(m, n)
    multiplied = (np.tril(packed[..., :k], -1) + np.eye(m, k)) @ np.triu(packed[..., :k, :])
    close(multiplied.astype(dtype), np.take_along_axis(x, permutation[..., None], -2), dtype)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_first_of_equal_pivots_is_taken(n: int, dtype: str) -> None:
    """Of these numbers many are equal, and many matrices are singular."""
    x = R.integers(-1, 2, (300, n, n)).astype(dtype)
    same(in_a_scan(lu, x), lapack(lu, x), dtype)


@pytest.mark.parametrize("values", list(product((False, True), repeat=5)), ids=str)
def test_triangular_solve(values: tuple[bool, ...], dtype: str, code: list[str]) -> None:
    flags = dict(zip(FLAGS, values, strict=True))
    turned, lower, left = flags["transpose_a"], flags["lower"], flags["left_side"]
    for n, columns in ((1, 1), (2, 3), (3, 2), (4, 4)):
        a, b = random((3, 2, n, n), dtype) + 2 * np.eye(n, dtype=dtype), random((3, 2, n, columns), dtype)
        unread = (np.triu if lower else np.tril)(np.ones((n, n)), 1 if lower else -1).astype(bool)
        unread |= flags["unit_diagonal"] & np.eye(n, dtype=bool)
        op = np.where(unread, np.eye(n), a.astype(float))
        op = np.swapaxes(op, -1, -2) if turned else op
        b = b if left else np.swapaxes(b, -1, -2)
        want = np.linalg.solve(op, b) if left else b @ np.linalg.inv(op)
        solve = lambda a, b: lax.linalg.triangular_solve(a, b, **flags)
        (found,) = in_a_scan(solve, np.where(unread, np.nan, a).astype(dtype), b)
        close(found, want, dtype)
    assert len(code) == 4 and not calls(code)


def smaller(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple({7: 3, 6: 4}.get(n, min(n, 2)) for n in shape)


@pytest.mark.parametrize("name", CASES)
def test_products(name: str, dtype: str, code: list[str]) -> None:
    x_shape, y_shape, contracted, batch = CASES[name]
    x, y = (random((3, *smaller(s)), dtype) for s in (x_shape, y_shape))
    (found,) = in_a_scan(lambda x, y: lax.dot_general(x, y, (contracted, batch)), x, y)
    close(found, np.stack([expected(*pair, contracted, batch) for pair in zip(x, y, strict=True)]), dtype)
    assert code and not calls(code)


# --- what fails ------------------------------------------------------------------------------------------------------


def test_an_indefinite_matrix_has_no_factor(dtype: str) -> None:
    good = np.diag([4.0, 9.0, 1.0]).astype(dtype)
    bad = [np.diag(d).astype(dtype) for d in ([-1.0, 1, 1], [1.0, 0, 1], [1.0, 1, -1], [np.nan, 1, 1], [1, 1, np.nan])]
    (found,) = in_a_scan(cholesky, np.stack([good, *bad, good]))
    for factor in found[1:-1]:
        np.testing.assert_array_equal(np.isnan(factor), np.tri(3, dtype=bool))
        assert not np.triu(factor, 1).any()
    np.testing.assert_array_equal(found[[0, -1]], np.sqrt([good, good]))


SINGULAR = {
    "zeros": np.zeros((3, 3)),
    "ones": np.ones((3, 3)),
    "a column of zeros": np.array([[0, 1, 2], [0, 3, 4], [0, 5, 6]]),
    "a row of zeros": np.array([[1, 1, 2], [0, 0, 0], [2, 5, 6]]),
    "a zero at the end": np.array([[2, 1], [4, 2]]),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_singular_matrices_have_factors_and_no_solution(name: str, dtype: str) -> None:
    x = SINGULAR[name].astype(dtype)[None]
    same(in_a_scan(lu, x), lapack(lu, x), dtype)
    for program in (jnp.linalg.inv, jnp.linalg.det, lambda x: jnp.linalg.solve(x, jnp.ones(len(x), x.dtype))):
        (found,), (want,) = in_a_scan(program, x), lapack(program, x)
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(want))  # whether 0/0 or 1/0 is up to rounding


@pytest.mark.parametrize("lower", [False, True])
def test_a_zero_of_the_diagonal_divides(lower: bool, dtype: str) -> None:
    a, b = np.diag([1.0, 0.0, 2.0]).astype(dtype)[None], np.array([[[1.0, 0], [1, 0], [-1, 4]]], dtype)
    (found,) = in_a_scan(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=lower), a, b)
    finite = (slice(None), 0 if lower else 2)
    np.testing.assert_array_equal(found[finite], b[finite] / (1 if lower else 2))
    assert np.isinf(found[0, 1, 0]) and np.isnan(found[0, 1, 1])


@pytest.mark.parametrize("place", [(0, 0), (2, 1), (2, 2)])
def test_nan_goes_on(place: tuple[int, int], dtype: str) -> None:
    x, b = random((1, 3, 3), dtype) + 3 * np.eye(3, dtype=dtype), np.ones((1, 3, 2), dtype)
    x[(0, *place)] = np.nan
    for f in (cholesky, lambda x: lu(x)[0], jnp.linalg.inv, lambda x: x @ x):
        assert np.isnan(in_a_scan(f, x)[0]).any()
    (found,) = in_a_scan(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True), x, b)
    assert np.isnan(found[0, place[0]]).all() and np.isfinite(found[0, : place[0]]).all()


# --- programs --------------------------------------------------------------------------------------------------------


def kalman(m: Any, y: Any) -> Any:
    s = m @ m.T + jnp.eye(len(m))
    factor = jnp.linalg.cholesky(s)
    gain = jnp.linalg.solve(s, m).T
    return jnp.tanh(m - gain @ m), lax.linalg.triangular_solve(factor, y[:, None], left_side=True, lower=True)[:, 0]


def filtered(m: Any, ys: Any) -> Any:
    end, out = lax.scan(kalman, m, ys)
    return jnp.sum(end) + jnp.sum(out)


def searched(m: Any, ys: Any) -> Any:
    test = lambda c: jnp.sum(c[1] ** 2) > 1e-3
    return lax.while_loop(test, lambda c: (c[0], jnp.linalg.solve(c[0] + 2 * jnp.eye(3), c[1])), (m, ys[0]))[1]


PROGRAMS = {
    "a scan": filtered,
    "a search": searched,
    "a gradient": polyax.grad(filtered),
    "a mapped scan": lambda m, ys: polyax.vmap(lambda s: filtered(s * m, ys))(jnp.arange(3.0)),
    "a mapped search": lambda m, ys: polyax.vmap(lambda s: searched(s * m, ys))(jnp.arange(1.0, 4.0)),
    "mapped gradients": lambda m, ys: polyax.vmap(lambda s: polyax.grad(filtered)(s * m, ys))(jnp.arange(3.0)),
    "a second derivative": lambda m, ys: polyax.jvp(lambda m: polyax.grad(filtered)(m, ys), (m,), (m,))[1],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_call_nothing(name: str, code: list[str]) -> None:
    args = 0.5 * random((3, 3), "float64"), random((6, 3), "float64")
    found = np.asarray(polyax.jit(PROGRAMS[name])(*args))
    assert code and not calls(code)
    with polyax.default_device(polyax.devices("reference")[0]):
        np.testing.assert_allclose(found, np.asarray(PROGRAMS[name](*args)), rtol=1e-9, atol=1e-11)


LARGE = {
    "rows": (lambda x: jnp.linalg.cholesky(x @ x.mT + jnp.eye(5)), (5, 5), "float64"),
    "columns": (lambda x: lax.linalg.triangular_solve(x[:, :4], x, left_side=True, lower=True), (4, 5), "float64"),
    "a product": (lambda x: x @ x, (5, 5), "float64"),
    "a long stack": (lambda x: x @ x, (1025, 2, 2), "float64"),
    "complex numbers": (lambda x: lax.linalg.lu(x)[0], (3, 3), "complex128"),
}


@pytest.mark.parametrize("name", LARGE)
def test_what_is_larger_is_called(name: str, code: list[str]) -> None:
    f, shape, dtype = LARGE[name]
    x = R.uniform(1, 2, (2, *shape)).astype(dtype)
    same(in_a_scan(f, x), lapack(f, x), "float64")
    assert calls(code)


def test_a_function_holds_no_more_than_llvm_takes_well(monkeypatch: pytest.MonkeyPatch, code: list[str]) -> None:
    monkeypatch.setattr(loops, "INLINED_WORK", 700)

    def run(x: Any, y: Any) -> Any:
        for _ in range(9):
            x = x @ y
        return x

    x, y = random((2, 2, 4, 4), "float64")
    same(in_a_scan(run, x, y), lapack(run, x, y), "float64")
    assert calls(code) == 4


def test_products_are_rounded_with_their_sums(dtype: str) -> None:
    """What is left of two products that nearly cancel is exact."""
    half = np.finfo(dtype).nmant // 2 + 1
    a = 1 + 2.0**-half
    x = np.array([[[1, a]]], dtype)
    y = np.array([[[-(1 + 2.0 ** (1 - half))], [a]]], dtype)
    (found,) = in_a_scan(lambda x, y: x @ y, x, y)
    assert found.item() == 2.0 ** (-2 * half)
