"""Reductions by elementary reflections, column by column, with LAPACK's signs and storage."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ops import reflections
from polyax.reference.table import rules


def reflection(x: Any) -> tuple[Any, Any, Any]:
    """``beta, v, tau`` such that (I - tau v v^H)^H x = beta e1 with real beta and v[0] = 1."""
    rest = np.linalg.norm(x[1:])
    v = np.zeros_like(x)
    v[:1] = 1
    if rest == 0 and x[0].imag == 0:
        return x[0], v, x.dtype.type(0)
    size = np.hypot(abs(x[0]), rest)
    beta = -size if x[0].real >= 0 else size
    v[1:] = x[1:] / (x[0] - beta)
    return x.dtype.type(beta), v, (beta - x[0]) / beta


def from_left(a: Any, v: Any, tau: Any) -> None:
    """Applies (I - tau v v^H)^H in place."""
    a -= np.conj(tau) * np.outer(v, np.conj(v) @ a)


def from_right(a: Any, v: Any, tau: Any) -> None:
    """Applies I - tau v v^H in place."""
    a -= tau * np.outer(a @ v, np.conj(v))


def each(fun: Any, x: Any, outs: list[Any]) -> list[Any]:
    """``fun`` of each matrix of a stack, into these arrays."""
    for i in np.ndindex(x.shape[:-2]):
        for out, value in zip(outs, fun(np.array(x[i])), strict=True):
            out[i] = value
    return outs


def _space(x: Any, *lengths: int) -> list[Any]:
    return [np.zeros_like(x), *(np.zeros((*x.shape[:-2], n), x.dtype) for n in lengths)]


@rules(reflections.geqrf_p)
def geqrf(x: Any) -> Any:
    return each(_geqrf, x, _space(x, min(x.shape[-2:])))


def _geqrf(a: Any) -> tuple[Any, Any]:
    taus = np.zeros(min(a.shape), a.dtype)
    for j in range(len(taus)):
        eliminate(a, taus, j, j)
    return a, taus


def eliminate(a: Any, taus: Any, j: int, row: int) -> Any:
    """Makes column ``j`` zero below ``row`` by a reflection from the left, which is stored there and returned."""
    beta, v, taus[j] = reflection(a[row:, j])
    from_left(a[row:, j + 1 :], v, taus[j])
    a[row, j], a[row + 1 :, j] = beta, v[1:]
    return v


@rules(reflections.hessenberg_p)
def hessenberg(x: Any) -> Any:
    return each(_hessenberg, x, _space(x, max(x.shape[-1] - 1, 0)))


def _hessenberg(a: Any) -> tuple[Any, Any]:
    taus = np.zeros(max(len(a) - 1, 0), a.dtype)
    for j in range(len(taus)):
        v = eliminate(a, taus, j, j + 1)
        from_right(a[:, j + 1 :], v, taus[j])
    return a, taus


@rules(reflections.tridiagonal_p)
def tridiagonal(x: Any, *, lower: bool) -> Any:
    below = np.tril(x, -1)
    diagonal = np.einsum("...ii->...i", x).real
    whole = below + np.conj(np.swapaxes(below, -1, -2)) + diagonal[..., None] * np.eye(x.shape[-1], dtype=x.dtype)
    packed, taus = hessenberg(whole)
    packed = np.tril(packed) + np.triu(x, 1)
    return [
        packed,
        np.einsum("...ii->...i", packed).real.copy(),
        np.einsum("...ii->...i", packed[..., 1:, :-1]).real.copy(),
        taus,
    ]
