"""Collectives along any dimension as the same along the leading one, and transposes around it.

The leading dimension is whole blocks of memory, all that communication libraries know of; transposes are kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive
from polyax.ops.basis import move_axis, reshape
from polyax.ops.parts import all_gather_p, all_to_all_p, reduce_scatter_p
from polyax.trace.recording import trace_to_jaxpr
from polyax_kernels.lower.lowering import LoweringKind, Replace

DIMENSIONS = ("all_gather_dimension", "scatter_dimension", "split_axis", "concat_axis")
"""The parameters that name dimensions."""


def why_not_leading(params: Mapping[str, Any]) -> str | None:
    """Why a collective isn't one of whole blocks of memory, if so."""
    odd = [f"{name}={params[name]}" for name in DIMENSIONS if params.get(name)]
    return f"blocks of memory are along dimension 0, not {', '.join(odd)}" if odd else None


def _split(x: Any, dim: int, size: int) -> Any:
    """``x`` with ``dim``, a multiple of ``size``, as two dimensions."""
    return reshape(x, (*x.shape[:dim], size, x.shape[dim] // size, *x.shape[dim + 1 :]))


def _joined(x: Any, dim: int) -> Any:
    """``x`` with ``dim`` and the one after it as one."""
    return reshape(x, (*x.shape[:dim], x.shape[dim] * x.shape[dim + 1], *x.shape[dim + 2 :]))


def _in_front(x: Any, dim: int, size: int, tiled: bool) -> Any:
    """The ``size`` parts of ``x`` along ``dim``, stacked."""
    return move_axis(_split(x, dim, size) if tiled else x, dim, 0)


def _put_back(x: Any, dim: int, tiled: bool) -> Any:
    """Stacked parts, along ``dim``."""
    moved = move_axis(x, 0, dim)
    return _joined(moved, dim) if tiled else moved


def _all_gather(x: Any, *, all_gather_dimension: int, tiled: bool, **params: Any) -> Any:
    return _put_back(all_gather_p.bind1(x, all_gather_dimension=0, tiled=False, **params), all_gather_dimension, tiled)


def _reduce_scatter(x: Any, *, scatter_dimension: int, tiled: bool, **params: Any) -> Any:
    parts = _in_front(x, scatter_dimension, params["axis_size"], tiled)
    return reduce_scatter_p.bind1(parts, scatter_dimension=0, tiled=False, **params)


def _all_to_all(x: Any, *, split_axis: int, concat_axis: int, tiled: bool, **params: Any) -> Any:
    parts = _in_front(x, split_axis, params["axis_size"], tiled)
    return _put_back(all_to_all_p.bind1(parts, split_axis=0, concat_axis=0, tiled=False, **params), concat_axis, tiled)


def _replaced(function: Callable[..., Any]) -> Replace:
    @lru_cache(256)
    def traced(aval: ShapedArray, params: tuple[tuple[str, Any], ...]) -> ClosedJaxpr:
        return trace_to_jaxpr(lambda x: [function(x, **dict(params))], [aval])

    def program(avals: Sequence[ShapedArray], **params: Any) -> ClosedJaxpr:
        return traced(avals[0], tuple(params.items()))

    def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
        return None if why_not_leading(params) else "it is along the leading dimension already"

    return Replace(program, why_not)


LOWERINGS: dict[Primitive, LoweringKind] = {
    all_gather_p: _replaced(_all_gather),
    reduce_scatter_p: _replaced(_reduce_scatter),
    all_to_all_p: _replaced(_all_to_all),
}
