"""What is stacked to be folded is one kernel, which chooses nothing; what is stacked for others is written piece by
piece."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax_kernels.lower.folded import folded_by, readers_of
from polyax_kernels.lower.rules.shape import STACKED

X = np.random.default_rng(0).uniform(1, 2, (40, 40))


def windows(count: int, axis: int, x: Any) -> Any:
    return jnp.stack([x[:, n : 40 - count + n] for n in range(count)], axis)


FOLDS: dict[str, Callable[[Any, int], Any]] = {
    "sum": lambda x, axis: x.sum(axis),
    "mean": lambda x, axis: x.mean(axis),
    "max": lambda x, axis: x.max(axis),
    "prod": lambda x, axis: x.prod(axis),
}


@pytest.mark.parametrize("fold", FOLDS.values(), ids=FOLDS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("count, axis", [(9, 0), (9, 1), (9, 2), (STACKED, 0)])
def test_folds_of_stacks_are_one_kernel(fold: Any, dtype: str, count: int, axis: int) -> None:
    x = jnp.asarray(X).astype(dtype)
    f = lambda x: fold(windows(count, axis, x), axis)
    assert len(polyax.explain(f)(x).report.kernels) == 1
    exact = np.stack([np.asarray(x, np.float64)[:, n : 40 - count + n] for n in range(count)], axis)
    want = FOLDS["mean"](exact, axis) if fold is FOLDS["mean"] else fold(exact, axis)
    np.testing.assert_allclose(
        np.asarray(polyax.jit(f)(x), np.float64), want, rtol=0.05 if dtype == "bfloat16" else 1e-5
    )


OTHERS: dict[str, Callable[[Any], Any]] = {
    "the stack itself": lambda x: windows(9, 0, x),
    "along another axis": lambda x: windows(9, 0, x).sum(1),
    "twice": lambda x: (lambda y: y.sum(0) + y[0])(windows(9, 0, x)),
    "too many": lambda x: windows(STACKED + 1, 0, x).sum(0),
}


@pytest.mark.parametrize("f", OTHERS.values(), ids=OTHERS)
def test_other_stacks_are_written_piece_by_piece(f: Callable[[Any], Any]) -> None:
    assert len(polyax.explain(f)(jnp.asarray(X, "float32")).report.kernels) >= 9


def test_readers_are_told() -> None:
    jaxpr = polyax.make_jaxpr(lambda x: (x.astype("float32").sum(1), x.T, x))(np.ones((2, 3), "float16")).jaxpr
    readers = readers_of(jaxpr)
    (x,) = jaxpr.invars
    names = [None if eqn is None else eqn.primitive.name for eqn in readers[x]]
    assert names == ["convert_element_type", "transpose", None]
    assert folded_by(lambda: readers, x) == ()
    assert folded_by(lambda: readers, jaxpr.eqns[0].outvars[0]) == (1,)
