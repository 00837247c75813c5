"""Windows against a loop in float64; gradients against finite differences; every rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax_conformance.specs.loops import KNOWN, differences, expected, operand

CASES: dict[str, dict[str, Any]] = {
    "plain": {"window_dimensions": (2, 3)},
    "strides": {"window_dimensions": (2, 2), "window_strides": (2, 3)},
    "same": {"window_dimensions": (3, 2), "padding": "SAME"},
    "same lower": {"window_dimensions": (2, 2), "window_strides": (1, 2), "padding": "SAME_LOWER"},
    "pairs": {"window_dimensions": (2, 2), "padding": ((1, 2), (0, 1))},
    "cut off": {"window_dimensions": (2, 2), "padding": ((-1, 1), (0, -2))},
    "dilated window": {"window_dimensions": (2, 3), "window_dilation": (3, 2)},
    "dilated base": {"window_dimensions": (2, 2), "base_dilation": (2, 3), "padding": ((0, 1), (2, 0))},
    "too large": {"window_dimensions": (7, 2)},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", KNOWN)
def test_known_monoids(name: str, case: str) -> None:
    computation, init, fold = KNOWN[name]
    x = operand(5, 6)
    want = expected(x.astype(np.float64), lambda e: fold([init, *e]), CASES[case])
    np.testing.assert_allclose(lax.reduce_window(x, init, computation, **CASES[case]), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_any_computation(case: str) -> None:
    x = operand(5, 6)
    want = expected(x.astype(np.float64), lambda e: 2.0 * np.prod(np.add(e, 1.0)) - 1.0, CASES[case])
    got = lax.reduce_window(x, 1.0, lambda a, b: a * b + a + b, **CASES[case])
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)


def cubes(name: str, case: str) -> Any:
    """A loss whose gradient depends on the values: the sum of the cubes of windows that hold any element."""
    computation, init, _ = KNOWN.get(name, (lambda a, b: a * b, 1.0, None))

    def loss(x: Any) -> Any:
        pooled = lax.reduce_window(lax.sin(x), np.float64(init), computation, **CASES[case])
        return lax.select(abs(pooled) < 9.0, pooled**3, lax.zeros_like(pooled)).sum()

    return loss


@pytest.mark.parametrize("case", [c for c in CASES if c != "too large"])
@pytest.mark.parametrize("name", (*KNOWN, "product"))
def test_gradients(name: str, case: str) -> None:
    with polyax.enable_x64(True):
        x, loss = operand(3, 4).astype(np.float64), cubes(name, case)
        want = differences(polyax.jit(loss), x)
        np.testing.assert_allclose(polyax.jit(polyax.grad(loss))(x), want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("case", ("strides", "dilated base"))
@pytest.mark.parametrize("name", ("sum", "max", "product"))
def test_second_order(name: str, case: str) -> None:
    with polyax.enable_x64(True):
        x, gradient = operand(3, 4).astype(np.float64), polyax.jit(polyax.grad(cubes(name, case)))
        along = operand(3, 4).astype(np.float64)[::-1].copy()
        twice = polyax.grad(lambda x: (gradient(x) * along).sum())(x)
        forward = polyax.jvp(gradient, (x,), (along,))[1]
        np.testing.assert_allclose(twice, differences(lambda x: (gradient(x) * along).sum(), x), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(forward, twice, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", (*KNOWN, "product"))
@pytest.mark.parametrize("dim", (0, 1, 2))
def test_vmap_is_a_loop(name: str, dim: int) -> None:
    computation, init, _ = KNOWN.get(name, (lambda a, b: a * b, 1.0, None))
    xs = operand(3, 4, 5)
    fun = lambda x: lax.reduce_window(x, init, computation, (2, 2), (1, 2), "SAME")
    slope = lambda x: polyax.grad(lambda x: (fun(x) ** 2).sum())(x)
    for f in (fun, slope):
        want = np.stack([f(x) for x in xs])
        np.testing.assert_allclose(polyax.vmap(f, dim)(np.moveaxis(xs, 0, dim)), want, rtol=1e-5, atol=1e-6)


def test_ties_go_to_the_first_element() -> None:
    pool = lambda x: lax.reduce_window(x, -np.inf, lax.max, (3,), (1,), "VALID")
    x = np.ones(4, np.float32)
    weights = np.array([1.0, 10.0], np.float32)
    assert polyax.grad(lambda x: (pool(x) * weights).sum())(x).tolist() == [1.0, 10.0, 0.0, 0.0]
    assert polyax.jvp(pool, (x,), (np.arange(4, dtype=np.float32),))[1].tolist() == [0.0, 1.0]


def test_windows_of_padding_alone_have_no_gradient() -> None:
    pool = lambda x: lax.reduce_window(x, -np.inf, lax.max, (2,), (2,), ((2, 2),)).sum()
    assert polyax.grad(pool)(np.array([3.0, 4.0], np.float32)).tolist() == [0.0, 1.0]


def test_integers_and_booleans() -> None:
    n = np.arange(5, dtype=np.int32)
    assert lax.reduce_window(n, np.iinfo(np.int32).min, lax.max, (2,)).tolist() == [1, 2, 3, 4]
    assert lax.reduce_window(n, 0, lax.add, (2,)).dtype == np.int32
    holds = np.array([True, False, False, True])
    assert lax.reduce_window(holds, False, lax.max, (2,)).tolist() == [True, False, True]
    assert lax.reduce_window(holds, False, lax.bitwise_or, (2,)).tolist() == [True, False, True]


def test_several_operands() -> None:
    """The position of the maximum."""
    x = operand(6)

    def larger(a: Any, b: Any) -> Any:
        first = a[0] >= b[0]
        return lax.select(first, a[0], b[0]), lax.select(first, a[1], b[1])

    places = np.arange(6, dtype=np.int32)
    most, where = lax.reduce_window((x, places), (-np.inf, 0), larger, (3,))
    assert where.tolist() == [k + int(np.argmax(x[k : k + 3])) for k in range(4)]
    np.testing.assert_array_equal(most, x[where])


def test_shape_tuple() -> None:
    assert lax.reduce_window_shape_tuple((5, 4), (2, 2), (2, 1), ((0, 1), (0, 0))) == (3, 3)


def test_same_windows_of_a_dilated_base_are_padded_as_without_dilation() -> None:
    """As in JAX: four elements that lie two apart have seven places, where windows of two begin at three."""
    taken = lax.reduce_window(operand(4), 0.0, lax.add, (2,), (2,), "SAME", base_dilation=(2,))
    np.testing.assert_array_equal(taken, operand(4)[:3])


@pytest.mark.parametrize(
    ("params", "error", "text"),
    (
        ({"window_dimensions": (2, 1)}, TypeError, "wrong number of window_dimensions"),
        ({"window_dimensions": (0,)}, TypeError, "strictly positive, got \\(0,\\)"),
        ({"window_dimensions": (2,), "padding": "MOST"}, RuntimeError, "Unrecognized padding type"),
        ({"window_dimensions": (2,), "window_strides": (1, 1)}, TypeError, "wrong number of window_strides"),
    ),
)
def test_parameters_that_do_not_fit(params: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        lax.reduce_window(operand(4), 0.0, lax.add, **params)
