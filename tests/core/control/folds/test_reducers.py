"""``lax.reduce`` against loops in float64: known monoids, any computation, every rule."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax

MONOIDS = {
    "reduce_sum": (lax.add, 0.0, np.sum),
    "reduce_prod": (lax.mul, 1.0, np.prod),
    "reduce_max": (lax.max, -np.inf, np.max),
    "reduce_min": (lax.min, np.inf, np.min),
}


def operand(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def names(fun: Any, *args: Any) -> list[str]:
    return [e.primitive.name for e in polyax.make_jaxpr(fun)(*args).jaxpr.eqns]


@pytest.mark.parametrize("name", MONOIDS)
def test_known_monoids_become_primitives(name: str) -> None:
    computation, init, fold = MONOIDS[name]
    x = operand(3, 4)
    fun = lambda x: lax.reduce(x, init, computation, (0,))
    assert names(fun, x) == [name]
    np.testing.assert_allclose(fun(x), fold(x.astype(np.float64), 0), rtol=1e-5)


@pytest.mark.parametrize(("computation", "init"), ((lax.bitwise_and, -1), (lax.bitwise_or, 0), (lax.bitwise_xor, 0)))
def test_logic(computation: Any, init: int) -> None:
    x = np.array([12, 10, 7], np.int32)
    want = functools.reduce(lambda a, b: computation(a, b), x)
    assert lax.reduce(x, init, computation, (0,)).item() == int(want)
    holds = np.array([True, True, False])
    assert lax.reduce(holds, bool(init), computation, (0,)).item() == bool(functools.reduce(computation, holds))


@pytest.mark.parametrize("name", MONOIDS)
def test_other_initial_values_count_once(name: str) -> None:
    computation, _, fold = MONOIDS[name]
    x = operand(3, 5)
    fun = lambda x: lax.reduce(x, 0.5, computation, (1,))
    assert names(fun, x) == ["reduce"]
    want = fold(np.concatenate([x, np.full((3, 1), 0.5)], 1).astype(np.float64), 1)
    np.testing.assert_allclose(fun(x), want, rtol=1e-5)


def compose(a: Any, b: Any) -> Any:
    """Affine maps, one after the other: associative, not commutative."""
    return a[0] * b[0], a[1] * b[0] + b[1]


@pytest.mark.parametrize("dims", ((0,), (1,), (2,), (0, 2), (0, 1, 2), ()))
def test_elements_are_combined_in_order(dims: tuple[int, ...]) -> None:
    scale, shift = operand(3, 5, 2), operand(2, 3, 5).reshape(3, 5, 2)
    got = lax.reduce((scale, shift), (1.0, 0.0), compose, dims)
    rest = [d for d in range(3) if d not in dims]
    rows = [np.transpose(x, (*rest, *dims)).astype(np.float64) for x in (scale, shift)]
    rows = [x.reshape([x.shape[k] for k in range(len(rest))] + [-1]) for x in rows]
    for place in np.ndindex(*rows[0].shape[:-1]):
        want = functools.reduce(compose, zip(rows[0][place], rows[1][place]), (1.0, 0.0))
        np.testing.assert_allclose([float(y[place]) for y in got], want, rtol=1e-4, atol=1e-5)


def test_no_elements() -> None:
    assert lax.reduce(np.zeros((0, 2), np.float32), 3.0, lambda a, b: a * b + b, (0,)).tolist() == [3.0, 3.0]
    assert lax.reduce(np.zeros((2, 0), np.float32), 3.0, lambda a, b: a * b + b, (0,)).shape == (0,)


def test_gradients_of_both_orders() -> None:
    with polyax.enable_x64(True):
        x = operand(3, 5).astype(np.float64)
        loss = lambda x: (lax.reduce((x, jnp.sin(x)), (1.0, 0.0), compose, (1,))[1] ** 2).sum()
        gradient = polyax.grad(loss)
        for k in np.ndindex(3, 5):
            moved = np.zeros_like(x)
            moved[k] = 1e-6
            slope = (loss(x + moved) - loss(x - moved)) / 2e-6
            np.testing.assert_allclose(gradient(x)[k], slope, rtol=1e-5, atol=1e-7)
            bend = (gradient(x + moved) - gradient(x - moved)) / 2e-6
            np.testing.assert_allclose(polyax.jvp(gradient, (x,), (moved / 1e-6,))[1], bend, rtol=1e-4, atol=1e-6)
            twice = polyax.grad(lambda x, k=k: gradient(x)[k])(x)
            np.testing.assert_allclose(twice, bend, rtol=1e-4, atol=1e-6)


def test_gradient_of_the_initial_value() -> None:
    x = operand(4)
    product = lambda init: lax.reduce(x, init, lambda a, b: a * b, (0,))
    np.testing.assert_allclose(polyax.grad(product)(2.0), np.prod(x), rtol=1e-5)


@pytest.mark.parametrize("dims", ((0, None), (1, None), (0, 0), (None, 0)))
def test_vmap_is_a_loop(dims: tuple[Any, Any]) -> None:
    x, init = operand(4, 4), operand(4)
    fun = lambda x, init: lax.reduce(x, init, lambda a, b: a * b + a + b, (0,))
    args = (x if dims[0] is not None else x[0]), (init if dims[1] is not None else init[0])
    rows = [np.moveaxis(x, dims[0], 0)[k] if dims[0] is not None else x[0] for k in range(4)]
    want = [fun(r, init[k] if dims[1] is not None else init[0]) for k, r in enumerate(rows)]
    np.testing.assert_allclose(polyax.vmap(fun, dims)(*args), np.stack(want), rtol=1e-5)


def test_pytrees_of_operands() -> None:
    x = {"value": operand(5), "place": np.arange(5, dtype=np.int32)}

    def larger(a: Any, b: Any) -> Any:
        return {k: lax.select(a["value"] >= b["value"], a[k], b[k]) for k in a}

    found = lax.reduce(x, {"value": -np.inf, "place": -1}, larger, (0,))
    assert found["place"].item() == int(np.argmax(x["value"]))


def test_computations_may_hold_programs() -> None:
    x = operand(6)
    within = lambda a, b: lax.cond(a > b, lambda: a, lambda: b)
    assert lax.reduce(x, -np.inf, within, (0,)).item() == x.max()
    assert polyax.jit(lambda x: lax.reduce(x, -np.inf, polyax.jit(within), (0,)))(x).item() == x.max()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    (
        (lambda x: lax.reduce((x, x), (0.0,), lax.add, (0,)), ValueError, "same tree structure as init_values"),
        (lambda x: lax.reduce(x, np.zeros(2, np.float32), lax.add, (0,)), ValueError, "non-scalar initial value"),
        (lambda x: lax.reduce(x, 0.0, lax.add, (1,)), ValueError, "out-of-bounds indices for float32\\[4\\]"),
        (lambda x: lax.reduce(x, 0.0, lambda a, b: a > b, (0,)), TypeError, "takes float32\\[\\] .* gives bool\\[\\]"),
        (lambda x: lax.reduce(x, 0.0, lambda a, b: (a, b), (0,)), ValueError, "same tree structure as the operands"),
        (lambda x: lax.reduce((x, x[:2]), (0.0, 0.0), compose, (0,)), TypeError, "must have equal shapes"),
        (lambda x: lax.reduce(x, np.int32(1), lambda a, b: a, (0,)), TypeError, "must have equal dtypes"),
    ),
)
def test_what_does_not_fit_is_named(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(operand(4))


def test_computations_do_not_close_over_traced_values() -> None:
    x = operand(4)
    with pytest.raises(NotImplementedError, match="can't close over Tracers"):
        polyax.jit(lambda y: lax.reduce(x, 0.0, lambda a, b: a + b * y, (0,)))(2.0)


def fading(a: Any, b: Any) -> Any:
    return a * 0.5 + b


def faded(x: np.ndarray, init: float) -> float:
    return functools.reduce(fading, x.ravel().astype(np.float64), init)


@pytest.mark.parametrize(("shape", "dims"), (((32,), (0,)), ((3, 4), (0, 1)), ((3, 4), (1, 0)), ((2, 31), (1,))))
def test_functions_that_are_not_associative_go_from_the_initial_value_on(shape: Any, dims: Any) -> None:
    x = operand(*shape)
    rows = [x] if len(dims) == len(shape) else x
    got = lax.reduce(x, 1.0, fading, dims)
    np.testing.assert_allclose(np.ravel(got), [faded(row, 1.0) for row in rows], rtol=1e-5)


@pytest.mark.parametrize("n", (33, 64, 100, 1100))
def test_many_elements_go_by_windows(n: int) -> None:
    """XLA's order on CPUs: windows of 32, with as much room before the first as behind the last."""
    x = values = operand(n)
    while len(values) > 32:
        before = -len(values) % 32 // 2
        bounds = [0, *range(32 - before, len(values), 32), len(values)]
        values = np.array([faded(values[a:b], 1.0) for a, b in itertools.pairwise(bounds)])
    np.testing.assert_allclose(lax.reduce(x, 1.0, fading, (0,)), faded(values, 1.0), rtol=1e-5)
    both = lax.reduce(np.stack([x, x], 1), 1.0, fading, (0,))
    np.testing.assert_allclose(both, [faded(values, 1.0)] * 2, rtol=1e-5)


@pytest.mark.parametrize("padding", ("VALID", "SAME"))
def test_windows_go_from_the_initial_value_on(padding: str) -> None:
    x = operand(5, 4)
    got = lax.reduce_window(x, 1.0, fading, (3, 2), (2, 1), padding)
    before = 1 if padding == "SAME" else 0
    for i, j in np.ndindex(*got.shape):
        at = max(2 * i - before, 0)
        np.testing.assert_allclose(got[i, j], faded(x[at : 2 * i - before + 3, j : j + 2], 1.0), rtol=1e-5)
