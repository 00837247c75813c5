"""Exchanges between programs along a named axis: collectives that move parts from one to another.

Along several axes, those that can be are made of one for each axis. The others take them as one, the last varying
fastest, and so do those that ``axis_index_groups`` divides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir.aval import aval_of
from polyax.ir.primitive import ambient
from polyax.ops.basis import move_axis, reshape
from polyax.ops.collective import Names, axis_size, checked_groups, names_of
from polyax.ops.parts import (
    all_gather_invariant_p,
    all_gather_p,
    all_gather_reduced_p,
    all_to_all_p,
    check_parts,
    joined,
    parted,
    reduce_scatter_p,
    unreduced_reduce_scatter_p,
)
from polyax.ops.slicing import index_in_dim
from polyax.trace.tree import tree_map
from polyax.trace.varying import pvary, state_of

__all__ = ["all_gather", "all_to_all", "pbroadcast", "psum_scatter", "pswapaxes"]


_SAME = {"reduced": all_gather_reduced_p, "invarying": all_gather_invariant_p}


def all_gather(
    x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False, to: str = "varying"
) -> Any:
    """The parts ``x`` of all programs along the named axis (or axes), stacked along a new dimension ``axis``; if
    ``tiled``, joined along the existing one.

    >>> import polyax
    >>> print(polyax.vmap(lambda x: all_gather(x, "i"), axis_name="i")(np.arange(2)))
    [[0 1]
     [0 1]]

    Args:
      to: ``"varying"``; ``"invarying"``: types tell that the result is the same everywhere; ``"reduced"``: that its
        cotangent, besides, is a sum still to be made.

    Raises:
      ValueError: ``to`` is no such word.
      NotImplementedError: there are groups, of which results are the same in each alone.
    """
    if to not in ("varying", "invarying", "reduced"):
        raise ValueError(
            f"Got unexpected `to` value {to!r} for `polyax.lax.all_gather`. Allowed `to` values are: "
            "{'varying', 'invarying', 'reduced'}"
        )
    size, groups = checked_groups("all_gather", axis_name, axis_index_groups)
    if to != "varying" and groups is not None:
        raise NotImplementedError(f"all_gather(..., to={to!r}, axis_index_groups={axis_index_groups}) isn't built")
    ways = _ways(axis_name, size, groups)

    def one(v: Any) -> Any:
        d = _dimension("all_gather", axis, aval_of(v).ndim + (not tiled))
        for n, (along, own) in enumerate(reversed(ways)):  # the last one varies fastest
            params = {"axis_name": along, "axis_size": own, "tiled": tiled}
            if to != "varying" and ambient.varying.issuperset(along):
                v = _SAME[to].bind1(pvary(v, along), all_gather_dimension=d, **params)
            else:
                v = all_gather_p.bind1(v, all_gather_dimension=d, axis_index_groups=groups, **params)
            v = joined(v, d) if n and not tiled else v
        return v

    return tree_map(one, x)


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """The program's own part of ``psum(x)``: number ``axis_index`` along ``scatter_dimension``, whose size is that of
    the axis (or axes); if ``tiled``, a multiple of it, and the parts are blocks."""
    size, groups = checked_groups("psum_scatter", axis_name, axis_index_groups)
    ways = _ways(axis_name, size, groups)

    def one(v: Any) -> Any:
        d = _dimension("psum_scatter", scatter_dimension, aval_of(v).ndim)
        check_parts("psum_scatter", aval_of(v), d, size, tiled, axis_name)
        for n, (along, own) in enumerate(ways):
            v = v if tiled or n == len(ways) - 1 else parted(v, d, own)
            params = {"axis_name": along, "axis_size": own, "axis_index_groups": groups, "tiled": tiled}
            v = _scatter(v, d, params)
        return v

    return tree_map(one, x)


def _scatter(x: Any, dim: int, params: dict[str, Any]) -> Any:
    axes, groups = params["axis_name"], params["axis_index_groups"]
    summed = aval_of(x).sums[0].intersection(axes)
    if summed and state_of(aval_of(x), axes, "polyax.lax.psum_scatter"):
        if groups is not None:
            raise NotImplementedError(f"psum_scatter of {aval_of(x)} with axis_index_groups={groups} isn't built")
        rest = {name: value for name, value in params.items() if name != "axis_index_groups"}
        return unreduced_reduce_scatter_p.bind1(x, scatter_dimension=dim, **rest)
    return reduce_scatter_p.bind1(x, scatter_dimension=dim, **params)


def all_to_all(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Part number ``k`` of ``x`` along ``split_axis`` goes to program ``k``; what comes is stacked along
    ``concat_axis``, or joined if ``tiled``."""
    size, groups = checked_groups("all_to_all", axis_name, axis_index_groups)
    ways = _ways(axis_name, size, groups)

    def one(v: Any) -> Any:
        ndim = aval_of(v).ndim
        source, target = (_dimension("all_to_all", d, ndim) for d in (split_axis, concat_axis))
        check_parts("all_to_all", aval_of(v), source, size, tiled, axis_name)
        if len(ways) == 1:
            return _exchanged(v, *ways[0], groups, source, target, tiled)
        parts = move_axis(parted(v, source, size) if tiled else v, source, 0)
        rest = np.shape(parts)[1:]
        parts = reshape(parts, (*(own for _, own in ways), *rest))
        for d, (along, own) in enumerate(ways):
            parts = _exchanged(parts, along, own, None, d, d, False)
        moved = move_axis(reshape(parts, (size, *rest)), 0, target)
        return joined(moved, target) if tiled else moved

    return tree_map(one, x)


def _exchanged(x: Any, along: Names, size: int, groups: Any, source: int, target: int, tiled: bool) -> Any:
    params = {"axis_name": along[0] if len(along) == 1 else along, "axis_size": size, "axis_index_groups": groups}
    return all_to_all_p.bind1(x, split_axis=source, concat_axis=target, tiled=tiled, **params)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Swaps the named axis with dimension ``axis`` of ``x``, which has its size."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """The part ``x`` of program ``source``, for all programs along the named axis."""
    size = axis_size(axis_name)
    if not 0 <= source < size:
        raise ValueError(
            f"pbroadcast: source must be at least 0 and less than the size {size} of the axis, not {source}"
        )
    return tree_map(lambda v: index_in_dim(all_gather(v, axis_name), source, keepdims=False), x)


def _ways(axis_name: Any, size: int, groups: Any) -> list[tuple[Names, int]]:
    """The axes, and how many programs meet, of each step: one for each axis, or all at once if they are in groups."""
    names = names_of(axis_name)
    return [(names, size)] if groups is not None else [((name,), axis_size(name)) for name in names]


def _dimension(what: str, axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"{what}: dimension {axis} is out of range for an array of {ndim} dimensions")
    return axis % ndim
