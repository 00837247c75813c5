"""Exchanges between programs along a named axis: collectives that move parts from one to another.

Along several axes, those that can be are made of one for each axis. The others take them as one, the last varying
fastest, and so do those that ``axis_index_groups`` divides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import Primitive, ambient, def_rule
from polyax.ops.basis import batch_axis_at, move_axis, reduce_sum, reshape, zeros_like
from polyax.ops.collective import BY_HAND, Names, axis_index, axis_size, batch_groups, checked_groups, names_of
from polyax.ops.compare import select
from polyax.ops.define import linear
from polyax.ops.index import dynamic_index_in_dim
from polyax.ops.joining import stack
from polyax.ops.slicing import index_in_dim
from polyax.trace.tree import tree_map
from polyax.trace.varying import Vma, state_of

__all__ = [
    "all_gather", "all_gather_p", "all_to_all", "all_to_all_p", "pbroadcast", "ppermute", "ppermute_p",
    "pshuffle", "psum_scatter", "pswapaxes", "reduce_scatter_p",
]  # fmt: skip


def _exchange(name: str) -> Primitive:
    p = Primitive(name)
    p.axes = lambda axis_name, **_: names_of(axis_name)
    p.never("factors", BY_HAND)
    p.varies = _varies
    return p


def _varies(vmas: Sequence[Vma], *, axis_name: Any, **_: Any) -> tuple[list[Vma], list[Vma]]:
    """Each program has its own result, as it has its own part."""
    varying = [vmas[0] | ambient.varying.intersection(names_of(axis_name))]
    return varying, varying


all_gather_p = _exchange("all_gather")
reduce_scatter_p = _exchange("reduce_scatter")
all_to_all_p = _exchange("all_to_all")
all_gather_reduced_p = Primitive("all_gather_reduced")
"""Gathers what varies, to what is the same everywhere with cotangents that are sums."""
unreduced_reduce_scatter_p = Primitive("unreduced_reduce_scatter")
"""Of what types say is a sum still to be made, the program's own part."""
ppermute_p = _exchange("ppermute")


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
      to: ``"varying"``, or ``"reduced"``: the result is the same everywhere, and its cotangent a sum still to be made.

    Raises:
      ValueError: ``to`` is no such word.
      NotImplementedError: it is ``"invarying"``, or there are groups of what is to be reduced.
    """
    if to not in ("varying", "invarying", "reduced"):
        raise ValueError(
            f"Got unexpected `to` value {to!r} for `polyax.lax.all_gather`. Allowed `to` values are: "
            "{'varying', 'invarying', 'reduced'}"
        )
    size, groups = checked_groups("all_gather", axis_name, axis_index_groups)
    if to == "invarying" or (to == "reduced" and groups is not None):
        raise NotImplementedError(f"all_gather(..., to={to!r}, axis_index_groups={axis_index_groups}) isn't built")
    ways = _ways(axis_name, size, groups)

    def one(v: Any) -> Any:
        d = _dimension("all_gather", axis, aval_of(v).ndim + (not tiled))
        for n, (along, own) in enumerate(reversed(ways)):  # the last one varies fastest
            params = {"axis_name": along, "axis_size": own, "tiled": tiled}
            if to == "reduced" and ambient.varying.issuperset(along):
                v = all_gather_reduced_p.bind1(v, all_gather_dimension=d, **params)
            else:
                v = all_gather_p.bind1(v, all_gather_dimension=d, axis_index_groups=groups, **params)
            v = _joined(v, d) if n and not tiled else v
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
        _check_parts("psum_scatter", aval_of(v), d, size, tiled)
        for n, (along, own) in enumerate(ways):
            v = v if tiled or n == len(ways) - 1 else _parted(v, d, own)
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
        if len(ways) == 1:
            return _exchanged(v, *ways[0], groups, source, target, tiled)
        _check_parts("all_to_all", aval_of(v), source, size, tiled)
        parts = move_axis(_parted(v, source, size) if tiled else v, source, 0)
        rest = np.shape(parts)[1:]
        parts = reshape(parts, (*(own for _, own in ways), *rest))
        for d, (along, own) in enumerate(ways):
            parts = _exchanged(parts, along, own, None, d, d, False)
        moved = move_axis(reshape(parts, (size, *rest)), 0, target)
        return _joined(moved, target) if tiled else moved

    return tree_map(one, x)


def _exchanged(x: Any, along: Names, size: int, groups: Any, source: int, target: int, tiled: bool) -> Any:
    params = {"axis_name": along[0] if len(along) == 1 else along, "axis_size": size, "axis_index_groups": groups}
    return all_to_all_p.bind1(x, split_axis=source, concat_axis=target, tiled=tiled, **params)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Swaps the named axis with dimension ``axis`` of ``x``, which has its size."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Sends each part to another program: ``perm`` lists pairs of source and destination, which are numbers along the
    named axis (or axes, in row-major order). Who gets nothing has zeros.

    Raises:
      ValueError: a program sends or gets twice, or isn't on the axis.
    """
    pairs = tuple((int(s), int(d)) for s, d in perm)
    size = axis_size(axis_name)
    for what, ends in (("source", [s for s, _ in pairs]), ("destination", [d for _, d in pairs])):
        if len(set(ends)) != len(ends) or not all(0 <= e < size for e in ends):
            raise ValueError(f"ppermute: each {what} must occur once and be less than {size}, got perm={list(pairs)}")
    return tree_map(lambda v: ppermute_p.bind1(v, axis_name=names_of(axis_name), perm=pairs), x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """``ppermute`` with a permutation: program ``n`` gets the part of program ``perm[n]``."""
    if set(perm) != set(range(len(perm))):
        raise ValueError(f"`perm` does not represent a permutation: {list(perm)}")
    return ppermute(x, axis_name, [(source, n) for n, source in enumerate(perm)])


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


def _replaced(shape: tuple[int, ...], dim: int, size: int) -> tuple[int, ...]:
    return (*shape[:dim], size, *shape[dim + 1 :])


def _without(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return (*shape[:dim], *shape[dim + 1 :])


def _with(shape: tuple[int, ...], dim: int, size: int) -> tuple[int, ...]:
    return (*shape[:dim], size, *shape[dim:])


@def_rule(all_gather_p, "abstract_eval")
def _gather_abstract(
    x: ShapedArray, *, axis_size: int, all_gather_dimension: int, tiled: bool, **_: Any
) -> list[ShapedArray]:
    d = all_gather_dimension
    if tiled:
        return [x.update(shape=_replaced(x.shape, d, x.shape[d] * axis_size))]
    return [x.update(shape=_with(x.shape, d, axis_size))]


@def_rule(reduce_scatter_p, "abstract_eval")
def _scatter_abstract(
    x: ShapedArray, *, axis_size: int, scatter_dimension: int, tiled: bool, **_: Any
) -> list[ShapedArray]:
    d = scatter_dimension
    _check_parts("psum_scatter", x, d, axis_size, tiled)
    return [x.update(shape=_replaced(x.shape, d, x.shape[d] // axis_size) if tiled else _without(x.shape, d))]


@def_rule(all_to_all_p, "abstract_eval")
def _all_to_all_abstract(
    x: ShapedArray, *, axis_size: int, split_axis: int, concat_axis: int, tiled: bool, **_: Any
) -> list[ShapedArray]:
    _check_parts("all_to_all", x, split_axis, axis_size, tiled)
    if not tiled:
        return [x.update(shape=_with(_without(x.shape, split_axis), concat_axis, axis_size))]
    shape = _replaced(x.shape, split_axis, x.shape[split_axis] // axis_size)
    return [x.update(shape=_replaced(shape, concat_axis, shape[concat_axis] * axis_size))]


def _check_parts(what: str, x: ShapedArray, dim: int, size: int, tiled: bool) -> None:
    n = x.shape[dim]
    if n % size if tiled else n != size:
        wanted = "a multiple of" if tiled else "equal to"
        raise ValueError(f"{what}: the size of dimension {dim} of {x} must be {wanted} the size {size} of the axis")


@def_rule(ppermute_p, "abstract_eval")
def _permute_abstract(x: ShapedArray, **_: Any) -> list[ShapedArray]:
    return [x]


linear(
    all_gather_p,
    lambda ct, x, all_gather_dimension, **params: reduce_scatter_p.bind1(
        ct, scatter_dimension=all_gather_dimension, **params
    ),
)
linear(
    reduce_scatter_p,
    lambda ct, x, scatter_dimension, **params: all_gather_p.bind1(ct, all_gather_dimension=scatter_dimension, **params),
)
linear(
    all_to_all_p,
    lambda ct, x, split_axis, concat_axis, **params: all_to_all_p.bind1(
        ct, split_axis=concat_axis, concat_axis=split_axis, **params
    ),
)
linear(ppermute_p, lambda ct, x, perm, **params: ppermute_p.bind1(ct, perm=tuple((d, s) for s, d in perm), **params))

# --- batching: along another axis, a dimension more; along its own, an operation on that dimension ---------------


@def_rule(all_gather_p, "batch")
def _gather_batch(axis: Any, args: Any, dims: Any, *, all_gather_dimension: int, tiled: bool, **params: Any) -> Any:
    (x,), (dim,), d = args, dims, all_gather_dimension
    if axis.name not in names_of(params["axis_name"]):
        x = move_axis(x, dim, 0)
        return all_gather_p.bind(x, all_gather_dimension=d + 1, tiled=tiled, **params), [0]
    parts = move_axis(batch_axis_at(x, dim, 0, axis.size), 0, d)
    return [_joined(parts, d) if tiled else parts], [None]


def _joined(x: Any, dim: int) -> Any:
    """Dimensions ``dim`` and ``dim + 1`` as one."""
    shape = np.shape(x)
    return reshape(x, (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))


def _parted(x: Any, dim: int, size: int) -> Any:
    """Dimension ``dim`` as two, the first of ``size``."""
    shape = np.shape(x)
    return reshape(x, (*shape[:dim], size, shape[dim] // size, *shape[dim + 1 :]))


@def_rule(reduce_scatter_p, "batch")
def _scatter_batch(axis: Any, args: Any, dims: Any, *, scatter_dimension: int, tiled: bool, **params: Any) -> Any:
    (x,), (dim,), d = args, dims, scatter_dimension
    if axis.name not in names_of(params["axis_name"]):
        x = move_axis(x, dim, 0)
        return reduce_scatter_p.bind(x, scatter_dimension=d + 1, tiled=tiled, **params), [0]
    total = reduce_sum(batch_axis_at(x, dim, 0, axis.size), (0,))
    return [_parted(total, d, axis.size) if tiled else total], [d]


@def_rule(all_to_all_p, "batch")
def _all_to_all_batch(
    axis: Any, args: Any, dims: Any, *, split_axis: int, concat_axis: int, tiled: bool, **params: Any
) -> Any:
    (x,), (dim,) = args, dims
    if axis.name not in names_of(params["axis_name"]):
        x = move_axis(x, dim, 0)
        moved = {"split_axis": split_axis + 1, "concat_axis": concat_axis + 1, "tiled": tiled}
        return all_to_all_p.bind(x, **moved, **params), [0]
    x = batch_axis_at(x, dim, 0, axis.size)
    if tiled:
        x = _parted(x, split_axis + 1, axis.size)
    x = move_axis(x, split_axis + 1, 0)  # the destinations, then the sources, then the rest
    x = move_axis(x, 1, concat_axis + 1)
    return [_joined(x, concat_axis + 1) if tiled else x], [0]


@def_rule(ppermute_p, "batch")
def _permute_batch(axis: Any, args: Any, dims: Any, *, perm: Any, **params: Any) -> Any:
    (x,), (dim,) = args, dims
    if axis.name not in names_of(params["axis_name"]):
        return ppermute_p.bind(x, perm=perm, **params), [dim]
    x = batch_axis_at(x, dim, 0, axis.size)
    names = names_of(params["axis_name"])
    if len(names) > 1:
        return [_permuted_along_one(x, axis, names, perm)], [0]
    source = {d: s for s, d in perm}
    parts = [index_in_dim(x, n, keepdims=False) for n in range(axis.size)]
    nothing = zeros_like(parts[0])
    return [stack([parts[source[n]] if n in source else nothing for n in range(axis.size)])], [0]


def _permuted_along_one(x: Any, axis: Any, names: Names, perm: Any) -> Any:
    """Of several axes, the one that is mapped is dimension 0 of ``x``: its rows go from one to another, and each on its
    way along the other axes."""
    rest = tuple(n for n in names if n != axis.name)
    sizes = [axis.size if n == axis.name else axis_size(n) for n in names]
    at, others = names.index(axis.name), [n for k, n in enumerate(sizes) if names[k] != axis.name]
    routes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for pair in perm:
        ends = [[int(i) for i in np.unravel_index(end, sizes)] for end in pair]
        rows = ends[0].pop(at), ends[1].pop(at)
        source, target = (int(np.ravel_multi_index(e, others)) for e in ends)
        routes.setdefault(rows, []).append((source, target))
    here, count = axis_index(rest), math.prod(others)
    rows = [zeros_like(index_in_dim(x, 0, keepdims=False))] * axis.size
    for (start, end), pairs in routes.items():
        came = ppermute_p.bind1(index_in_dim(x, start, keepdims=False), axis_name=rest, perm=tuple(pairs))
        gets = dynamic_index_in_dim(np.isin(np.arange(count), [target for _, target in pairs]), here, keepdims=False)
        rows[end] = select(gets, came, rows[end])
    return stack(rows)


def _by_groups(p: Primitive) -> None:
    whole = p.rule("batch")

    def batch(axis: Any, args: Any, dims: Any, *, axis_index_groups: Any, **params: Any) -> Any:
        if axis_index_groups is None or axis.name not in names_of(params["axis_name"]):
            return whole(axis, args, dims, axis_index_groups=axis_index_groups, **params)
        if len(names_of(params["axis_name"])) > 1:
            raise NotImplementedError(
                f"{p}: axis_index_groups along several axes isn't built under vmap, got {params['axis_name']}"
            )
        return batch_groups(p, axis, args, dims, axis_index_groups, params)

    p.batch = batch


for _p in (all_gather_p, reduce_scatter_p, all_to_all_p):
    _by_groups(_p)
