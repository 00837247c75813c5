"""What moves elements of arrays that are large enough to be cut in stages and squares, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import polyax
import polyax.numpy as jnp

SHAPES = [(300, 101), (9000, 3), (3, 9001), (40, 3, 200), (30011,)]
DTYPES = ["float32", "int8", "bool", "float16", "bfloat16", "float64", "complex64"]
MOVES: dict[str, Callable[[Any, Any], Any]] = {
    "joined along the last": lambda m, x: m.concatenate([x, x[..., :2], x], -1),
    "joined along the first": lambda m, x: m.concatenate([x[:2], x], 0),
    "joined along the middle": lambda m, x: m.concatenate([x, x], x.ndim // 2),
    "padded": lambda m, x: m.pad(x, [(1, 2)] * x.ndim),
    "padded at one end": lambda m, x: m.pad(x, [(0, 0)] * (x.ndim - 1) + [(3, 0)]),
    "reflected": lambda m, x: m.pad(x, 2, mode="reflect"),
    "mirrored": lambda m, x: m.pad(x, 1, mode="symmetric"),
    "rolled": lambda m, x: m.roll(x, 1, -1),
    "rolled along the first": lambda m, x: m.roll(x, -2, 0),
    "rolled along all": lambda m, x: m.roll(x, 5),
    "turned round": lambda m, x: m.flip(x, -1),
    "stacked": lambda m, x: m.stack([x, x], -1),
    "without the first": lambda m, x: x[..., 1:],
    "every other": lambda m, x: x[..., ::2],
    "transposed": lambda m, x: x.T,
}


def array(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    numbers = np.random.default_rng(0).integers(-100, 100, shape)
    return numbers.astype(getattr(ml_dtypes, dtype, dtype))


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_moves(move: str, shape: tuple[int, ...]) -> None:
    for dtype in DTYPES:
        x = array(shape, dtype)
        with polyax.enable_x64(dtype == "float64"):
            got = polyax.jit(lambda x: MOVES[move](jnp, x))(x)
        np.testing.assert_array_equal(np.asarray(got), MOVES[move](np, x), err_msg=dtype)


def test_a_stencil_of_rolls() -> None:
    x = np.random.default_rng(0).standard_normal((200, 300))
    shifts = [(1, 0), (-1, 0), (1, 1), (-1, 1)]
    with polyax.enable_x64(True):
        got = polyax.jit(lambda x: sum(jnp.roll(x, n, axis) for n, axis in shifts) - 4 * x)(x)
    np.testing.assert_allclose(got, sum(np.roll(x, n, axis) for n, axis in shifts) - 4 * x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1])
def test_gradients_of_what_is_rolled_and_joined(axis: int) -> None:
    x = np.random.default_rng(0).standard_normal((200, 300)).astype("float32")
    w = np.random.default_rng(1).standard_normal((400, 300) if axis == 0 else (200, 600)).astype("float32")
    got = polyax.grad(lambda x: jnp.sum(jnp.concatenate([x, jnp.roll(x, 3, axis)], axis) * w))(x)
    first, second = np.split(w, 2, axis)
    np.testing.assert_allclose(got, first + np.roll(second, -3, axis), rtol=1e-6, atol=1e-6)
