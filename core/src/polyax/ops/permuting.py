"""``ppermute``: parts go from each program along named axes to another one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import def_rule
from polyax.ops.basis import batch_axis_at, zeros_like
from polyax.ops.collective import Names, axis_index, axis_size, names_of
from polyax.ops.compare import select
from polyax.ops.define import linear
from polyax.ops.index import dynamic_index_in_dim
from polyax.ops.joining import stack
from polyax.ops.parts import exchange
from polyax.ops.slicing import index_in_dim
from polyax.trace.tree import tree_map

__all__ = ["ppermute", "ppermute_p", "pshuffle"]

ppermute_p = exchange("ppermute")


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Sends each part to another program: ``perm`` lists pairs of source and destination, which are numbers along the
    named axis (or axes, in row-major order). Who gets nothing has zeros.

    Raises:
      ValueError: a program sends or gets twice, or isn't on the axis.

    >>> import polyax
    >>> import polyax.numpy as jnp
    >>> shift = lambda x: polyax.lax.ppermute(x, 'i', [(0, 1), (1, 0)])
    >>> polyax.vmap(shift, axis_name='i')(jnp.array([1, 3])).tolist()
    [3, 1]
    """
    pairs = tuple((int(s), int(d)) for s, d in perm)
    size = axis_size(axis_name)
    for ends in zip(*pairs, strict=True):
        if len(set(ends)) != len(ends):
            raise ValueError(f"ppermute sources and destinations must be unique, got {pairs}.")
        if not all(0 <= e < size for e in ends):
            raise ValueError(f"ppermute sources and destinations must be less than the size {size}, got {pairs}.")
    return tree_map(lambda v: ppermute_p.bind1(v, axis_name=names_of(axis_name), perm=pairs), x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """``ppermute`` with a permutation: program ``n`` gets the part of program ``perm[n]``."""
    if set(perm) != set(range(len(perm))):
        raise ValueError(f"`perm` does not represent a permutation: {list(perm)}")
    return ppermute(x, axis_name, [(source, n) for n, source in enumerate(perm)])


@def_rule(ppermute_p, "abstract_eval")
def _permute_abstract(x: ShapedArray, **_: Any) -> list[ShapedArray]:
    return [x]


linear(ppermute_p, lambda ct, x, perm, **params: ppermute_p.bind1(ct, perm=tuple((d, s) for s, d in perm), **params))


@def_rule(ppermute_p, "batch")
def _permute_batch(axis: Any, args: Any, dims: Any, *, perm: Any, **params: Any) -> Any:
    (x,), (dim,) = args, dims
    if axis.name not in names_of(params["axis_name"]):
        return ppermute_p.bind_all(x, perm=perm, **params), [dim]
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
