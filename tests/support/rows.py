"""Functions against an oracle: each row is run in float64 and float32, compiled, mapped, and differentiated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import polyax
from polyax.tree_util import tree_leaves

STEP = 1e-4
"""Of the finite differences, relative to the size of an argument; errors go with its fourth power."""


@dataclass(frozen=True)
class Row:
    """A function, what it should equal, and arguments; ``wrt`` says by which it is differentiated."""

    fun: Callable[..., Any]
    oracle: Callable[..., Any]
    args: tuple[Any, ...]
    wrt: tuple[int, ...] = ()
    rtol: float = 1e-12
    coarse: float = 2e-5
    slope: float = 1e-6


def of_dtype(args: Sequence[Any], dtype: Any) -> list[Any]:
    """Arrays and floats in this precision; integers and what isn't numeric stay."""
    return [_in_dtype(x, np.dtype(dtype)) for x in args]


def _in_dtype(x: Any, dtype: np.dtype) -> Any:
    if isinstance(x, (float, np.ndarray)) and np.asarray(x).dtype.kind in "fc":
        x = np.asarray(x)
        return x.astype(np.result_type(dtype, np.complex64) if x.dtype.kind == "c" else dtype)
    return x


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in tree_leaves(tree)]


def agree(got: Any, want: Any, rtol: float) -> None:
    """Each result is close for its own size, and has the shape of the oracle's."""
    got, want = leaves(got), leaves(want)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape, f"shape {g.shape}, expected {w.shape}"
        scale = np.max(np.abs(w[np.isfinite(w)]), initial=0.0)
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol * min(float(scale), 1.0) * 0.1)


def check_values(row: Row) -> None:
    """In both precisions; arguments are rounded for the oracle too."""
    for dtype, rtol in ((np.float64, row.rtol), (np.float32, row.coarse)):
        args = of_dtype(row.args, dtype)
        with polyax.enable_x64(dtype is np.float64):
            got = row.fun(*args)
        for x in leaves(got):
            assert x.dtype.kind not in "fc" or np.finfo(x.dtype).dtype == dtype, f"{x.dtype} of {dtype.__name__}"
        agree(got, row.oracle(*of_dtype(args, np.float64)), rtol)


def split(row: Row) -> tuple[list[int], Callable[..., Any]]:
    """The places of its arrays, and the function of these alone."""
    places = [i for i, x in enumerate(row.args) if isinstance(x, (np.ndarray, float))]

    def fun(*arrays: Any) -> Any:
        args = list(row.args)
        for i, x in zip(places, arrays, strict=True):
            args[i] = x
        return row.fun(*args)

    return places, fun


def check_jit(row: Row) -> None:
    places, fun = split(row)
    args = [row.args[i] for i in places]
    with polyax.enable_x64(True):
        agree(polyax.jit(fun)(*args), fun(*args), 1e-9)


def check_vmap(row: Row) -> None:
    """Mapping over two slightly different examples is a loop over them."""
    places, fun = split(row)
    args = [np.asarray(row.args[i]) for i in places]
    others = [x * (1 + 1e-3) if x.dtype.kind in "fc" else x for x in args]
    with polyax.enable_x64(True):
        got = polyax.vmap(fun)(*map(np.stack, zip(args, others, strict=True)))
        want = [np.stack(pair) for pair in zip(leaves(fun(*args)), leaves(fun(*others)), strict=True)]
    agree(tree_leaves(got), want, 1e-9)


def check_derivatives(row: Row) -> None:
    """Reverse mode, of a weighted sum of the results, against finite differences of the oracle."""
    args = of_dtype(row.args, np.float64)
    weights = [np.cos(1.0 + np.arange(x.size)).reshape(x.shape) for x in leaves(row.oracle(*args))]

    def total(results: Sequence[Any]) -> Any:
        return sum((x * w).real.sum() for x, w in zip(results, weights, strict=True))

    for i in row.wrt:
        assert isinstance(args[i], np.ndarray), "finite differences need arrays and floats"
        with polyax.enable_x64(True):
            f = lambda x, i=i: total(tree_leaves(row.fun(*args[:i], x, *args[i + 1 :])))
            got = np.asarray(polyax.grad(f)(args[i]))
        oracle = lambda x, i=i: total(leaves(row.oracle(*args[:i], x, *args[i + 1 :])))
        want = differences(oracle, np.asarray(args[i]))
        np.testing.assert_allclose(got, want, rtol=row.slope, atol=row.slope * max(1e-3, np.max(np.abs(want))))


def differences(fun: Callable[[np.ndarray], Any], x: np.ndarray) -> np.ndarray:
    """The gradient, by a formula of fourth order."""
    slopes = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        h = STEP * max(abs(x[i]), 0.1)
        moved = [x.copy() for _ in range(4)]
        for y, k in zip(moved, (-2, -1, 1, 2), strict=True):
            y[i] += k * h
        a, b, c, d = map(fun, moved)
        slopes[i] = (a - 8 * b + 8 * c - d) / (12 * h)
    return slopes
