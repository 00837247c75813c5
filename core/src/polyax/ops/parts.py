"""The primitives of exchanges between programs along named axes that gather parts, scatter sums, and swap them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive, ambient, def_rule
from polyax.ops.basis import batch_axis_at, move_axis, reduce_sum, reshape
from polyax.ops.collective import BY_HAND, batch_groups, names_of
from polyax.ops.define import linear
from polyax.trace.varying import Vma


def exchange(name: str) -> Primitive:
    p = Primitive(name)
    p.axes = lambda axis_name, **_: names_of(axis_name)
    p.never("factors", BY_HAND)
    p.varies = _varies
    return p


def _varies(vmas: Sequence[Vma], *, axis_name: Any, **_: Any) -> tuple[list[Vma], list[Vma]]:
    """Each program has its own result, as it has its own part."""
    varying = [vmas[0] | ambient.varying.intersection(names_of(axis_name))]
    return varying, varying


all_gather_p = exchange("all_gather")
reduce_scatter_p = exchange("reduce_scatter")
all_to_all_p = exchange("all_to_all")
all_gather_reduced_p = Primitive("all_gather_reduced")
"""Gathers what varies, to what is the same everywhere with cotangents that are sums."""
all_gather_invariant_p = Primitive("all_gather_invariant")
"""Gathers what varies, to what is the same everywhere: a program's part has its part of the cotangent."""
unreduced_reduce_scatter_p = Primitive("unreduced_reduce_scatter")
"""Of what types say is a sum still to be made, the program's own part."""


# --- shapes


def _replaced(shape: tuple[int, ...], dim: int, size: int) -> tuple[int, ...]:
    return (*shape[:dim], size, *shape[dim + 1 :])


def _without(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return (*shape[:dim], *shape[dim + 1 :])


def _with(shape: tuple[int, ...], dim: int, size: int) -> tuple[int, ...]:
    return (*shape[:dim], size, *shape[dim:])


_UNFIT = {
    (
        "psum_scatter",
        True,
    ): "tiled reduce_scatter operand scatter dimension size {0} must be divisible by shard_count {1}",
    ("psum_scatter", False): "reduce_scatter operand scatter dimension size {0} must match shard_count {1}",
    (
        "all_to_all",
        True,
    ): "The size of all_to_all split_axis ({0}) has to be divisible by the size of the named axis {2} ({1})",
    (
        "all_to_all",
        False,
    ): "all_to_all requires the size of the mapped axis axis_name to equal x.shape[split_axis], but "
    "they are {1} and {0} respectively",
}


def check_parts(what: str, x: ShapedArray, dim: int, size: int, tiled: bool, name: Any) -> None:
    """Raises ValueError unless dimension ``dim`` has a part for each of ``size`` programs along the axis ``name``."""
    n = x.shape[dim]
    if n % size if tiled else n != size:
        name = name[0] if isinstance(name, tuple) and len(name) == 1 else name
        raise ValueError(f"{_UNFIT[what, tiled].format(n, size, name)}: dimension {dim} of {x}")


def joined(x: Any, dim: int) -> Any:
    """Dimensions ``dim`` and ``dim + 1`` as one."""
    shape = np.shape(x)
    return reshape(x, (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))


def parted(x: Any, dim: int, size: int) -> Any:
    """Dimension ``dim`` as two, the first of ``size``."""
    shape = np.shape(x)
    return reshape(x, (*shape[:dim], size, shape[dim] // size, *shape[dim + 1 :]))


# --- rules


@def_rule(all_gather_p, "abstract_eval")
def _gather_abstract(
    x: ShapedArray, *, axis_size: int, all_gather_dimension: int, tiled: bool, **_: Any
) -> list[ShapedArray]:
    d = all_gather_dimension
    if tiled:
        return [x.with_shape(_replaced(x.shape, d, x.shape[d] * axis_size))]
    return [x.with_shape(_with(x.shape, d, axis_size))]


@def_rule(reduce_scatter_p, "abstract_eval")
def _scatter_abstract(
    x: ShapedArray, *, axis_name: Any, axis_size: int, scatter_dimension: int, tiled: bool, **_: Any
) -> list[ShapedArray]:
    d = scatter_dimension
    check_parts("psum_scatter", x, d, axis_size, tiled, axis_name)
    return [x.with_shape(_replaced(x.shape, d, x.shape[d] // axis_size) if tiled else _without(x.shape, d))]


@def_rule(all_to_all_p, "abstract_eval")
def _all_to_all_abstract(
    x: ShapedArray, *, axis_name: Any, axis_size: int, split_axis: int, concat_axis: int, tiled: bool, **_: Any
) -> list[ShapedArray]:
    check_parts("all_to_all", x, split_axis, axis_size, tiled, axis_name)
    if not tiled:
        return [x.with_shape(_with(_without(x.shape, split_axis), concat_axis, axis_size))]
    shape = _replaced(x.shape, split_axis, x.shape[split_axis] // axis_size)
    return [x.with_shape(_replaced(shape, concat_axis, shape[concat_axis] * axis_size))]


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

# --- batching: along another axis, a dimension more; along its own, an operation on that dimension ---------------


@def_rule(all_gather_p, "batch")
def _gather_batch(axis: Any, args: Any, dims: Any, *, all_gather_dimension: int, tiled: bool, **params: Any) -> Any:
    (x,), (dim,), d = args, dims, all_gather_dimension
    if axis.name not in names_of(params["axis_name"]):
        x = move_axis(x, dim, 0)
        return all_gather_p.bind_all(x, all_gather_dimension=d + 1, tiled=tiled, **params), [0]
    parts = move_axis(batch_axis_at(x, dim, 0, axis.size), 0, d)
    return [joined(parts, d) if tiled else parts], [None]


@def_rule(reduce_scatter_p, "batch")
def _scatter_batch(axis: Any, args: Any, dims: Any, *, scatter_dimension: int, tiled: bool, **params: Any) -> Any:
    (x,), (dim,), d = args, dims, scatter_dimension
    if axis.name not in names_of(params["axis_name"]):
        x = move_axis(x, dim, 0)
        return reduce_scatter_p.bind_all(x, scatter_dimension=d + 1, tiled=tiled, **params), [0]
    total = reduce_sum(batch_axis_at(x, dim, 0, axis.size), (0,))
    return [parted(total, d, axis.size) if tiled else total], [d]


@def_rule(all_to_all_p, "batch")
def _all_to_all_batch(
    axis: Any, args: Any, dims: Any, *, split_axis: int, concat_axis: int, tiled: bool, **params: Any
) -> Any:
    (x,), (dim,) = args, dims
    if axis.name not in names_of(params["axis_name"]):
        x = move_axis(x, dim, 0)
        moved = {"split_axis": split_axis + 1, "concat_axis": concat_axis + 1, "tiled": tiled}
        return all_to_all_p.bind_all(x, **moved, **params), [0]
    x = batch_axis_at(x, dim, 0, axis.size)
    if tiled:
        x = parted(x, split_axis + 1, axis.size)
    x = move_axis(x, split_axis + 1, 0)  # the destinations, then the sources, then the rest
    x = move_axis(x, 1, concat_axis + 1)
    return [joined(x, concat_axis + 1) if tiled else x], [0]


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
