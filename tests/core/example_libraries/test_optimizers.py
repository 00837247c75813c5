"""Optimizers against their formulas in NumPy, schedules, and what states are packed as."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.example_libraries import optimizers as o

STEPS = 4
X = np.array([[1.0, -2.0, 0.5], [0.3, 2.0, -1.0]])
GRADS = [np.cos(X + i) for i in range(STEPS)]
Update = Callable[[np.ndarray, dict[str, Any], np.ndarray, int], np.ndarray]


def kept(state: dict[str, Any], name: str, rate: float, new: np.ndarray, weight: float = 1.0) -> np.ndarray:
    state[name] = rate * state.get(name, np.zeros_like(new)) + weight * new
    return state[name]


def adagrad(x: np.ndarray, s: dict[str, Any], g: np.ndarray, i: int) -> np.ndarray:
    return x - 0.1 * kept(s, "m", 0.9, g / np.sqrt(kept(s, "v", 1, g * g)), 0.1)


def nesterov(x: np.ndarray, s: dict[str, Any], g: np.ndarray, i: int) -> np.ndarray:
    return x - 0.1 * (0.8 * kept(s, "v", 0.8, g) + g)


def rmsprop_momentum(x: np.ndarray, s: dict[str, Any], g: np.ndarray, i: int) -> np.ndarray:
    return x - kept(s, "m", 0.9, 0.1 * g / np.sqrt(kept(s, "v", 0.9, g * g, 0.1) + 1e-8))


def adam(x: np.ndarray, s: dict[str, Any], g: np.ndarray, i: int) -> np.ndarray:
    m, v = kept(s, "m", 0.9, g, 0.1) / (1 - 0.9 ** (i + 1)), kept(s, "v", 0.999, g * g, 0.001) / (1 - 0.999 ** (i + 1))
    return x - 0.1 * m / (np.sqrt(v) + 1e-8)


def adamax(x: np.ndarray, s: dict[str, Any], g: np.ndarray, i: int) -> np.ndarray:
    s["u"] = np.maximum(0.999 * s.get("u", 0), abs(g))
    return x - 0.1 / (1 - 0.9 ** (i + 1)) * kept(s, "m", 0.9, g, 0.1) / (s["u"] + 1e-8)


def sm3(x: np.ndarray, s: dict[str, Any], g: np.ndarray, i: int) -> np.ndarray:
    rows, columns = s.get("sums", (np.zeros(2), np.zeros(3)))
    squares = np.minimum(rows[:, None], columns) + g * g
    s["sums"] = squares.max(1), squares.max(0)
    return x - 0.1 * kept(s, "m", 0.9, g / np.sqrt(squares), 0.1)


CASES: dict[str, tuple[o.Optimizer, Update]] = {
    "sgd": (o.sgd(0.1), lambda x, s, g, i: x - 0.1 * g),
    "sgd, scheduled": (o.sgd(lambda i: 0.1 / (i + 1)), lambda x, s, g, i: x - 0.1 / (i + 1) * g),
    "momentum": (o.momentum(0.1, 0.8), lambda x, s, g, i: x - 0.1 * kept(s, "v", 0.8, g)),
    "nesterov": (o.nesterov(0.1, 0.8), nesterov),
    "adagrad": (o.adagrad(0.1), adagrad),
    "rmsprop": (o.rmsprop(0.1), lambda x, s, g, i: x - 0.1 * g / np.sqrt(kept(s, "v", 0.9, g * g, 0.1) + 1e-8)),
    "rmsprop_momentum": (o.rmsprop_momentum(0.1), rmsprop_momentum),
    "adam": (o.adam(0.1), adam),
    "adamax": (o.adamax(0.1), adamax),
    "sm3": (o.sm3(0.1), sm3),
}


@pytest.mark.parametrize("name", CASES)
def test_steps(name: str) -> None:
    opt, update = CASES[name]
    with polyax.enable_x64(True):
        state, x, memory = opt.init_fn({"w": X, "rest": [X[0]]}), X, {}
        step = polyax.jit(opt.update_fn)
        for i, g in enumerate(GRADS):
            state, x = step(i, {"w": g, "rest": [g[0]]}, state), update(x, memory, g, i)
        np.testing.assert_allclose(opt.params_fn(state)["w"], x, rtol=1e-12)


def test_training_is_differentiable() -> None:
    def end(rate: Any) -> Any:
        opt = o.momentum(rate, 0.5)
        state = opt.init_fn(1.0)
        for i in range(3):
            state = opt.update_fn(i, 2 * opt.params_fn(state), state)
        return opt.params_fn(state)

    np.testing.assert_allclose(polyax.grad(end)(0.1), (end(0.1005) - end(0.0995)) / 1e-3, rtol=1e-2)


SCHEDULES = {
    "constant": (o.constant(0.1), lambda i: 0.1),
    "exponential": (o.exponential_decay(0.1, 10, 0.5), lambda i: 0.1 * 0.5 ** (i / 10)),
    "inverse time": (o.inverse_time_decay(0.1, 10, 0.5), lambda i: 0.1 / (1 + 0.5 * i / 10)),
    "staircase": (o.inverse_time_decay(0.1, 10, 0.5, True), lambda i: 0.1 / (1 + 0.5 * (i // 10))),
    "polynomial": (o.polynomial_decay(0.1, 10, 0.01, 2.0), lambda i: 0.01 + 0.09 * (1 - min(i, 10) / 10) ** 2),
    "piecewise": (o.piecewise_constant([2, 4], [0.1, 0.2, 0.3]), lambda i: (0.1, 0.2, 0.3)[(i > 2) + (i > 4)]),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name: str) -> None:
    schedule, wanted = SCHEDULES[name]
    for i in (0, 2, 3, 5, 15):
        np.testing.assert_allclose(polyax.jit(schedule)(i), wanted(i), rtol=1e-6)


def test_clipping() -> None:
    grads = {"a": jnp.array([3.0, 0.0]), "b": jnp.array([[4.0]])}
    assert o.l2_norm(grads) == 5
    np.testing.assert_allclose(o.l2_norm(o.clip_grads(grads, 2.0)), 2.0, rtol=1e-6)
    assert o.clip_grads(grads, 7.0)["b"] == 4


def test_states_are_packed_and_unpacked() -> None:
    state = o.adam(0.1).init_fn({"a": jnp.ones(2)})
    marked = o.unpack_optimizer_state(state)
    assert isinstance(marked["a"], o.JoinPoint) and len(next(iter(marked["a"]))) == 3
    again = o.pack_optimizer_state(marked)
    assert polyax.tree.structure(again) == polyax.tree.structure(state)


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "another tree": (
        lambda: o.sgd(0.1).update_fn(0, [1.0, 2.0], o.sgd(0.1).init_fn([1.0])), TypeError, "did not match the par",
    ),
    "a state of another structure": (
        lambda: o.optimizer(lambda: (lambda x: (x,), lambda i, g, s: x2(s), lambda s: s[0]))().update_fn(
            0, [1.0], o.optimizer(lambda: (lambda x: (x,), None, None))().init_fn([1.0])),
        TypeError, "output structure that did not match",
    ),
    "a text as step size": (lambda: o.sgd("x"), TypeError, "must be a number or a function"),
    "an array as step size": (lambda: o.make_schedule(np.ones(2)), TypeError, "must be a number or a function"),
    "too few values": (lambda: o.piecewise_constant([1], [1.0]), ValueError, "one shorter than values"),
    "no state": (lambda: o.pack_optimizer_state([1.0]), TypeError, "needs a tree of JoinPoint"),
}  # fmt: skip


def x2(state: Any) -> Any:
    return (*state, *state)


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_told(case: str) -> None:
    call, error, text = MISTAKES[case]
    with pytest.raises(error, match=text):
        call()
