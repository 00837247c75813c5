"""Programs on a device whose groups of threads share rows, against the NumPy rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernels.gpu_backend import grouped_backend
from kernels.programs import compiled, launched, traced

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.reference.backend import evaluate

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(5, 300)).astype(np.float32)
SHORT = RNG.normal(size=(40, 7)).astype(np.float32)
CUBE = RNG.normal(size=(6, 50, 11)).astype(np.float32)
WHOLE = RNG.integers(-9, 9, size=(4, 3, 70)).astype(np.int32)
TIES = RNG.integers(0, 3, size=(6, 200)).astype(np.float32)
NAN = np.where(RNG.random((6, 200)) < 0.02, np.nan, TIES).astype(np.float32)


def layer_norm(x: Any) -> Any:
    mean = x.mean(1, keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(1, keepdims=True) + 1e-5)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "elementwise": (lambda x: 2 * x + 1, (ROWS,)),
    "short rows": (lambda x: x * x - x[:, :1], (SHORT,)),
    "broadcast": (lambda x, y: x + y[:, 0, 0][:, None], (ROWS[:5], CUBE[:5])),
    "transpose": (lambda x: x.transpose(2, 0, 1) * 2, (CUBE,)),
    "row sums": (lambda x: x.sum(1), (ROWS,)),
    "column sums": (lambda x: x.sum(0), (ROWS,)),
    "sum of all": (lambda x: (x * x).sum(), (ROWS,)),
    "short sums": (lambda x: x.sum(1), (SHORT,)),
    "two axes": (lambda x: x.sum((1, 2)), (CUBE,)),
    "outer axes": (lambda x: x.sum((0, 2)), (CUBE,)),
    "product": (lambda x: (1 + x / 50).prod(1), (ROWS,)),
    "extrema": (lambda x: (x.max(1), x.min(1)), (ROWS,)),
    "integers": (lambda x: (x.sum(2), x.max((0, 2)), x.prod(1)), (WHOLE,)),
    "bools": (lambda x: ((x > 2.9).any(1), (x < 3.5).all(1)), (ROWS,)),
    "argmax": (lambda x: (x.argmax(1), x.argmin(1), x.argmax(0)), (TIES,)),
    "argmax with nan": (lambda x: (x.argmax(1), x.argmin(1), x.max(1)), (NAN,)),
    "softmax": (polyax.nn.softmax, (ROWS,)),
    "log softmax": (lambda x: polyax.nn.log_softmax(x, 0), (ROWS,)),
    "layer norm": (layer_norm, (ROWS,)),
    "its gradient": (polyax.grad(lambda x: (layer_norm(x) ** 3).sum()), (ROWS,)),
    "cumulative sum": (lambda x: jnp.cumsum(x, 1), (SHORT,)),
    "scatter add": (lambda x: x.at[jnp.array([0, 2, 0, 2, 2])].add(1.5), (ROWS,)),
    "gather": (lambda x: x[jnp.array([3, 1, 1])], (CUBE,)),
    "concatenate": (lambda x, y: jnp.concatenate([x, y[:5, :, 0]], 1), (ROWS, CUBE)),
    "sort": (lambda x: jnp.sort(x * 2, 1) + 1, (ROWS,)),
    "product of matrices": (lambda x, y: x[:, :7] @ y.T, (ROWS, SHORT)),
    "half": (lambda x: (x.astype(jnp.float16) * 3).sum(1), (ROWS,)),
    "brain": (lambda x: polyax.nn.softmax(x.astype(jnp.bfloat16)), (ROWS,)),
    "nothing": (lambda x: x[:, :0] * 2, (ROWS,)),
    "constants": (lambda x: jnp.ones((3, 40)) * jnp.inf, (ROWS,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("group", "eager"), [(8, True), (64, False)])
def test_programs(name: str, group: int, eager: bool) -> None:
    fun, args = PROGRAMS[name]
    backend = grouped_backend(group)
    closed = traced(fun, args)
    found = launched(backend, compiled(backend, closed, eager=eager), closed, args)
    for got, want in zip(found, evaluate(closed.jaxpr, [*map(np.asarray, closed.consts), *args]), strict=True):
        assert got.dtype == want.dtype
        exact, narrow = want.dtype.kind in "biu", want.dtype.itemsize == 2
        tolerance = 0 if exact else 2e-2 if narrow else 2e-5
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=tolerance)
