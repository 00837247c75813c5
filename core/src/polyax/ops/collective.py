"""Collectives: what programs that run side by side along a named axis compute together.

``vmap`` with an axis name turns them into operations on its dimension; on devices, the runtime runs them. Each operand
is one program's part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.basis import batch_axis_at, div, iota, move_axis, reduce_sum, reshape, zeros_like
from polyax.ops.joining import stack
from polyax.ops.reduce import reduce_max, reduce_min
from polyax.ops.slicing import index_in_dim
from polyax.trace.context import axis_env
from polyax.trace.symbolic import Zero
from polyax.trace.tree import tree_flatten, tree_map, tree_unflatten

Names = tuple[Any, ...]


def axis_size(axis_name: Any) -> int:
    """The number of programs along a named axis; of a tuple of names, the product.

    Raises:
      NameError: no surrounding ``vmap`` or ``pmap`` binds the name.
    """
    return math.prod(_size(name) for name in _names(axis_name))


def _size(name: Any) -> int:
    found = axis_env().get(name)
    if found is None:
        raise NameError(
            f"Found an unbound axis name: {name}. Collectives need a surrounding vmap or pmap with "
            f"axis_name={name!r}; bound here: {sorted(map(str, axis_env())) or 'none'}."
        )
    return found


def _names(axis_name: Any) -> Names:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def _no_groups(what: str, groups: Any) -> None:
    if groups is not None:
        raise NotImplementedError(f"{what}: axis_index_groups isn't built; use two named axes instead of groups of one")


# --- reductions -----------------------------------------------------------------------------------------------------


def _reduction(name: str) -> Primitive:
    p = Primitive(name)
    p.axes = lambda axes, **_: axes
    p.abstract_eval = lambda *avals, axes: list(avals)
    return p


psum_p = _reduction("psum")
pmax_p = _reduction("pmax")
pmin_p = _reduction("pmin")
_LOCAL = {psum_p: reduce_sum, pmax_p: reduce_max, pmin_p: reduce_min}


def _reduce(p: Primitive, x: Any, axis_name: Any, groups: Any) -> Any:
    _no_groups(p.name, groups)
    axes = _names(axis_name)
    axis_size(axes)
    leaves, tree = tree_flatten(x)
    return tree_unflatten(tree, p.bind(*leaves, axes=axes) if leaves else [])


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum of ``x``, a pytree, over all programs along the named axis (or axes).

    >>> import polyax
    >>> print(polyax.vmap(lambda x: x / psum(x, "i"), axis_name="i")(np.array([1.0, 3.0], np.float32)))
    [0.25 0.75]
    """
    _no_groups("psum", axis_index_groups)
    size = axis_size(axis_name)
    leaves, tree = tree_flatten(x)
    if all(isinstance(v, (bool, int, float, complex, np.generic)) for v in leaves):  # known without communication
        return tree_unflatten(tree, [size * v for v in leaves])
    return _reduce(psum_p, x, axis_name, None)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean of ``x``, a pytree, over all programs along the named axis (or axes)."""
    size = axis_size(axis_name)
    return tree_map(
        lambda v: div(v, np.asarray(size, aval_of(v).dtype)[()]), _reduce(psum_p, x, axis_name, axis_index_groups)
    )


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The elementwise maximum of ``x``, a pytree, over all programs along the named axis (or axes)."""
    return _reduce(pmax_p, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The elementwise minimum of ``x``, a pytree, over all programs along the named axis (or axes)."""
    return _reduce(pmin_p, x, axis_name, axis_index_groups)


@def_rule(psum_p, "jvp")
def _psum_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axes: Names) -> Any:
    nonzero = [t for t in tangents if type(t) is not Zero]
    outs, dots = psum_p.bind(*primals, axes=axes), iter(psum_p.bind(*nonzero, axes=axes))
    return outs, [t if type(t) is Zero else next(dots) for t in tangents]


@def_rule(psum_p, "transpose")
def _psum_transpose(cts: Sequence[Any], *args: Any, axes: Names) -> list[Any]:
    """Every program's result depends on every program's operand: cotangents are summed as well."""
    sums = iter(psum_p.bind(*(ct for ct in cts if type(ct) is not Zero), axes=axes))
    return [ct if type(ct) is Zero else next(sums) for ct in cts]


for _p in (pmax_p, pmin_p):
    _p.never("jvp", "JAX has no derivative of it either: which program holds the extremum isn't known locally")
    _p.never("transpose", "extrema aren't linear")


def _reduction_batch(p: Primitive) -> Any:
    def batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, axes: Names) -> Any:
        if axis.name not in axes:
            return p.bind(*args, axes=axes), list(dims)
        rest = tuple(a for a in axes if a != axis.name)
        outs = [_reduced(p, x, d, axis.size) for x, d in zip(args, dims, strict=True)]
        return p.bind(*outs, axes=rest) if rest else outs, [None] * len(outs)

    return batch


def _reduced(p: Primitive, x: Any, dim: int | None, size: int) -> Any:
    if dim is not None:
        return _LOCAL[p](x, (dim,))
    return x * np.asarray(size, aval_of(x).dtype)[()] if p is psum_p else x


for _p in _LOCAL:
    _p.batch = _reduction_batch(_p)


# --- exchanges: each along one axis ---------------------------------------------------------------------------------


def _exchange(name: str) -> Primitive:
    p = Primitive(name)
    p.axes = lambda axis_name, **_: (axis_name,)
    p.linear_in = (0,)

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        outs = p.bind(*primals, **params)
        return outs, [Zero.of(outs[0])] if type(tangents[0]) is Zero else p.bind(*tangents, **params)

    p.jvp = jvp
    return p


def _one_name(axis_name: Any) -> Any:
    names = _names(axis_name)
    if len(names) != 1:
        raise NotImplementedError(f"this collective works along one axis, got {axis_name}")
    return names[0]


def _each(p: Primitive, x: Any, axis_name: Any, **params: Any) -> Any:
    name = _one_name(axis_name)
    size = axis_size(name)
    return tree_map(lambda v: p.bind1(v, axis_name=name, axis_size=size, **params), x)


all_gather_p = _exchange("all_gather")
reduce_scatter_p = _exchange("reduce_scatter")
all_to_all_p = _exchange("all_to_all")
ppermute_p = _exchange("ppermute")
axis_index_p = Primitive("axis_index")


def all_gather(
    x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False, to: str = "varying"
) -> Any:
    """The parts ``x`` of all programs along the named axis, stacked along a new dimension ``axis``; if ``tiled``,
    joined along the existing one.

    >>> import polyax
    >>> print(polyax.vmap(lambda x: all_gather(x, "i"), axis_name="i")(np.arange(2)))
    [[0 1]
     [0 1]]
    """
    _no_groups("all_gather", axis_index_groups)

    def one(v: Any) -> Any:
        ndim = aval_of(v).ndim + (not tiled)
        return _each(all_gather_p, v, axis_name, all_gather_dimension=_dimension("all_gather", axis, ndim), tiled=tiled)

    return tree_map(one, x)


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """The program's own part of ``psum(x)``: number ``axis_index`` along ``scatter_dimension``, whose size is that of
    the axis; if ``tiled``, a multiple of it, and the parts are blocks."""
    _no_groups("psum_scatter", axis_index_groups)

    def one(v: Any) -> Any:
        dimension = _dimension("psum_scatter", scatter_dimension, aval_of(v).ndim)
        return _each(reduce_scatter_p, v, axis_name, scatter_dimension=dimension, tiled=tiled)

    return tree_map(one, x)


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
    _no_groups("all_to_all", axis_index_groups)

    def one(v: Any) -> Any:
        ndim = aval_of(v).ndim
        split, concat = _dimension("all_to_all", split_axis, ndim), _dimension("all_to_all", concat_axis, ndim)
        return _each(all_to_all_p, v, axis_name, split_axis=split, concat_axis=concat, tiled=tiled)

    return tree_map(one, x)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Swaps the named axis with dimension ``axis`` of ``x``, which has its size."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Sends each part to another program: ``perm`` lists pairs of source and destination. Who gets nothing has zeros.

    Raises:
      ValueError: a program sends or gets twice, or isn't on the axis.
    """
    pairs = tuple((int(s), int(d)) for s, d in perm)
    size = axis_size(_one_name(axis_name))
    for what, ends in (("source", [s for s, _ in pairs]), ("destination", [d for _, d in pairs])):
        if len(set(ends)) != len(ends) or not all(0 <= e < size for e in ends):
            raise ValueError(f"ppermute: each {what} must occur once and be less than {size}, got perm={list(pairs)}")
    return _each(ppermute_p, x, axis_name, perm=pairs)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """``ppermute`` with a permutation: program ``n`` gets the part of program ``perm[n]``."""
    if set(perm) != set(range(len(perm))):
        raise ValueError(f"`perm` does not represent a permutation: {list(perm)}")
    return ppermute(x, axis_name, [(source, n) for n, source in enumerate(perm)])


def axis_index(axis_name: Any) -> Any:
    """The program's number along the named axis; of several names, in row-major order.

    >>> import polyax
    >>> print(polyax.vmap(lambda x: axis_index("i"), axis_name="i")(np.zeros(3)))
    [0 1 2]
    """
    total: Any = None
    for name in _names(axis_name):
        own = axis_index_p.bind1(axis_name=name, axis_size=_size(name))
        total = own if total is None else total * np.int32(_size(name)) + own
    return total


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


@def_rule(all_gather_p, "transpose")
def _gather_transpose(cts: Sequence[Any], x: Any, *, all_gather_dimension: int, **params: Any) -> list[Any]:
    (ct,) = cts
    if type(ct) is Zero:
        return [Zero(x.aval)]
    return reduce_scatter_p.bind(ct, scatter_dimension=all_gather_dimension, **params)


@def_rule(reduce_scatter_p, "transpose")
def _scatter_transpose(cts: Sequence[Any], x: Any, *, scatter_dimension: int, **params: Any) -> list[Any]:
    (ct,) = cts
    return (
        [Zero(x.aval)] if type(ct) is Zero else all_gather_p.bind(ct, all_gather_dimension=scatter_dimension, **params)
    )


@def_rule(all_to_all_p, "transpose")
def _all_to_all_transpose(cts: Sequence[Any], x: Any, *, split_axis: int, concat_axis: int, **params: Any) -> list[Any]:
    (ct,) = cts
    if type(ct) is Zero:
        return [Zero(x.aval)]
    return all_to_all_p.bind(ct, split_axis=concat_axis, concat_axis=split_axis, **params)


@def_rule(ppermute_p, "transpose")
def _permute_transpose(cts: Sequence[Any], x: Any, *, perm: Any, **params: Any) -> list[Any]:
    (ct,) = cts
    back = tuple((d, s) for s, d in perm)
    return [Zero(x.aval)] if type(ct) is Zero else ppermute_p.bind(ct, perm=back, **params)


# --- batching: along another axis, a dimension more; along its own, an operation on that dimension ---------------


@def_rule(all_gather_p, "batch")
def _gather_batch(axis: Any, args: Any, dims: Any, *, all_gather_dimension: int, tiled: bool, **params: Any) -> Any:
    (x,), (dim,), d = args, dims, all_gather_dimension
    if axis.name != params["axis_name"]:
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
    if axis.name != params["axis_name"]:
        x = move_axis(x, dim, 0)
        return reduce_scatter_p.bind(x, scatter_dimension=d + 1, tiled=tiled, **params), [0]
    total = _reduced(psum_p, x, dim, axis.size)
    return [_parted(total, d, axis.size) if tiled else total], [d]


@def_rule(all_to_all_p, "batch")
def _all_to_all_batch(
    axis: Any, args: Any, dims: Any, *, split_axis: int, concat_axis: int, tiled: bool, **params: Any
) -> Any:
    (x,), (dim,) = args, dims
    if axis.name != params["axis_name"]:
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
    if axis.name != params["axis_name"]:
        return ppermute_p.bind(x, perm=perm, **params), [dim]
    x = batch_axis_at(x, dim, 0, axis.size)
    source = {d: s for s, d in perm}
    parts = [index_in_dim(x, n, keepdims=False) for n in range(axis.size)]
    nothing = zeros_like(parts[0])
    return [stack([parts[source[n]] if n in source else nothing for n in range(axis.size)])], [0]


axis_index_p.axes = lambda axis_name, **_: (axis_name,)
axis_index_p.never("jvp", "it has no operands")
axis_index_p.never("transpose", "it has no operands")


@def_rule(axis_index_p, "abstract_eval")
def _index_abstract(**_: Any) -> list[ShapedArray]:
    return [ShapedArray((), np.dtype("int32"))]


@def_rule(axis_index_p, "batch")
def _index_batch(axis: Any, args: Any, dims: Any, *, axis_name: Any, axis_size: int) -> Any:
    if axis.name != axis_name:
        return axis_index_p.bind(axis_name=axis_name, axis_size=axis_size), [None]
    return [iota(np.int32, axis.size)], [0]
