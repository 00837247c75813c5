"""Kernels of rows of each width: LLVM unrolls short ones, and makes vectors of what is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import nn
from polyax import numpy as jnp

WIDTHS = [*range(1, 20), 24, 31, 32, 33, 40, 48, 63, 64, 65, 100]


def softmax(np: Any, x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


ROWS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "softmax": (nn.softmax, lambda x: softmax(np, x)),
    "log_softmax": (nn.log_softmax, lambda x: np.log(softmax(np, x))),
    "below the maximum": (lambda x: x.max(1, keepdims=True) - x, lambda x: x.max(1, keepdims=True) - x),
    "above the minimum": (lambda x: x - x.min(1, keepdims=True), lambda x: x - x.min(1, keepdims=True)),
    "place of the maximum": (lambda x: x.argmax(1), lambda x: x.argmax(1)),
    "about the mean": (lambda x: x - x.mean(1, keepdims=True), lambda x: x - x.mean(1, keepdims=True)),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ROWS)
def test_rows_of_each_width(name: str, width: int) -> None:
    fun, oracle = ROWS[name]
    rng = np.random.default_rng(width)
    x, bias = rng.standard_normal((33, width)).astype(np.float32), rng.standard_normal(width).astype(np.float32)
    got = polyax.jit(lambda x, bias: fun(x + bias), device=polyax.devices("cpu")[0])(x, jnp.asarray(bias))
    np.testing.assert_allclose(got, oracle((x + bias).astype(np.float64)), 1e-5, 1e-6)
