"""Collectives: what programs that run side by side along a named axis compute together; here, sums and extrema.

``vmap`` with an axis name turns them into operations on its dimension; on devices, the runtime runs them. Each operand
is one program's part. ``axis_index_groups`` lists the programs, by their place on the axis, that work together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import Primitive, ambient, def_rule
from polyax.ops.basis import batch_axis_at, convert, div, full, iota, mul, reduce_sum
from polyax.ops.joining import stack
from polyax.ops.reduce import reduce_max, reduce_min
from polyax.ops.slicing import index_in_dim
from polyax.trace.context import axis_env
from polyax.trace.symbolic import Zero
from polyax.trace.tree import tree_flatten, tree_map, tree_unflatten
from polyax.trace.varying import Vma, state_of

__all__ = [
    "axis_index", "axis_index_p", "axis_size", "pmax", "pmax_p", "pmean", "pmin", "pmin_p", "psum", "psum_invariant_p",
    "psum_p",
]  # fmt: skip

Names = tuple[Any, ...]
Groups = tuple[tuple[int, ...], ...]
BY_HAND = "programs with collectives are on blocks already: they were cut by hand"


def axis_size(axis_name: Any) -> int:
    """The number of programs along a named axis; of a tuple of names, the product.

    Raises:
      NameError: no surrounding ``vmap`` or ``pmap`` binds the name.
    """
    return math.prod(_size(name) for name in names_of(axis_name))


def _size(name: Any) -> int:
    found = axis_env().get(name)
    if found is None:
        names: list[Any] = list(axis_env())
        bound = [a for a in names if isinstance(a, str)]
        raise NameError(
            f"Found an unbound axis name: {name}. Collectives need a surrounding vmap or pmap with "
            f"axis_name={name!r}, or a shard_map over a mesh that has it; bound here: {', '.join(bound) or 'none'}."
        )
    return found


def names_of(axis_name: Any) -> Names:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


# --- groups ---------------------------------------------------------------------------------------------------------


def checked_groups(what: str, axis_name: Any, groups: Any, *, equal: bool = True) -> tuple[int, Groups | None]:
    """How many programs work together along the axis (or axes), and the groups in canonical form.

    Raises:
      ValueError: a program is in no group or in two, or the sizes of groups differ and must be equal.
    """
    size = axis_size(axis_name)
    if groups is None:
        return size, None
    found = tuple(tuple(int(n) for n in g) for g in groups)
    if sorted(n for g in found for n in g) != list(range(size)):
        raise ValueError(
            f"{what}: axis_index_groups must cover all indices exactly once, 0 to {size - 1}, got {groups}"
        )
    if equal and len({len(g) for g in found}) > 1:
        raise ValueError(f"{what}: axis_index_groups must all be the same size, got {groups}")
    return len(found[0]), found


def batch_groups(
    p: Primitive, axis: Any, args: Sequence[Any], dims: Sequence[int | None], groups: Groups, params: dict[str, Any]
) -> tuple[list[Any], list[int]]:
    """Batching along the axis itself: each group is an axis of its own, of which the results are put in order."""
    args = [batch_axis_at(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]
    rows: list[Any] = [None] * axis.size
    for group in groups:
        own = replace(axis, size=len(group))
        parts = [stack([index_in_dim(x, n, keepdims=False) for n in group]) for x in args]
        outs, out_dims = p.rule("batch")(own, parts, [0] * len(parts), axis_index_groups=None, **params)
        placed = [batch_axis_at(x, d, 0, own.size) for x, d in zip(outs, out_dims, strict=True)]
        for k, n in enumerate(group):
            rows[n] = [index_in_dim(x, k, keepdims=False) for x in placed]
    return [stack(column) for column in zip(*rows, strict=True)], [0] * len(rows[0])


# --- reductions -----------------------------------------------------------------------------------------------------


def _reduction(name: str) -> Primitive:
    p = Primitive(name, multiple_results=True)
    p.axes = lambda axes, **_: axes
    p.abstract_eval = lambda *avals, **_: list(avals)
    p.never("factors", BY_HAND)
    p.varies = _sums
    return p


def _sums(vmas: Sequence[Vma], *, axes: Names, **_: Any) -> tuple[list[Vma], list[Vma]]:
    """What is put together varies along the axes, and doesn't afterwards."""
    along = ambient.varying.intersection(axes)
    return [v | along for v in vmas], [v - along for v in vmas]


psum_invariant_p = _reduction("psum_invariant")
"""The sum of what varies along axes, where types tell: its transpose is ``pvary``, as a result has one cotangent."""
unreduced_psum_p = Primitive("unreduced_psum", multiple_results=True)
"""That of what types say is a sum still to be made."""
psum_p = _reduction("psum")
pmax_p = _reduction("pmax")
pmin_p = _reduction("pmin")
_LOCAL: dict[Primitive, Callable[..., Any]] = {psum_p: reduce_sum, pmax_p: reduce_max, pmin_p: reduce_min}


def _apart(axis_name: Any) -> tuple[Names, tuple[int, ...]]:
    """Axes by names, and dimensions of the operands themselves: integers that name no axis."""
    names = names_of(axis_name)
    dims = tuple(n for n in names if isinstance(n, int) and n not in axis_env())
    return tuple(n for n in names if n not in dims), dims


def _locally(p: Primitive, x: Any, dims: Sequence[int]) -> Any:
    """``x`` reduced along dimensions of its own.

    Raises:
      ValueError: it doesn't have them.
    """
    aval = aval_of(x)
    if any(not -aval.ndim <= d < aval.ndim for d in dims):
        raise ValueError(f"reduction axes {tuple(dims)} contains out-of-bounds indices for {aval.str_short()}.")
    return _LOCAL[p](x, tuple(sorted(d % aval.ndim for d in dims)))


def _reduce(p: Primitive, x: Any, axis_name: Any, groups: Any) -> Any:
    axis_name, dims = _apart(axis_name)
    if dims and groups is not None:
        raise ValueError("axis_index_groups only supported for sums over just named axes")
    x = tree_map(lambda leaf: _locally(p, leaf, dims), x) if dims else x
    if not axis_name:
        return x
    _, groups = checked_groups(p.name, axis_name, groups, equal=False)
    names = names_of(axis_name)
    if len(set(names)) < len(names):
        raise ValueError(f"{p.name}: duplicate value in 'axes' of reduction: {names}")
    typed = tuple(n for n in names if n in ambient.varying)
    if typed and groups:
        raise NotImplementedError(
            f"{p.name}: axis_index_groups={groups} along {', '.join(map(str, names))}, of which types tell whether "
            "values vary along them: they would be the same in a group alone. Use shard_map(..., check_vma=False)."
        )
    leaves, tree = tree_flatten(x)
    others = tuple(n for n in names if n not in typed)
    if leaves and (others or not typed):
        leaves = p.bind_all(*leaves, axes=others, axis_index_groups=groups)
    return tree_unflatten(tree, [_same_everywhere(p, v, typed) for v in leaves] if typed else leaves)


def _same_everywhere(p: Primitive, x: Any, axes: Names) -> Any:
    if p is psum_p:
        aval = aval_of(x)
        summed = aval.sums[0].intersection(axes) and state_of(aval, axes, "polyax.lax.psum")
        return (unreduced_psum_p if summed else psum_invariant_p).bind1(x, axes=axes)
    return p.bind1(x, axes=axes, axis_index_groups=None)


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum of ``x``, a pytree, over all programs along the named axis (or axes), or over those of the own group.

    >>> import polyax
    >>> print(polyax.vmap(lambda x: x / psum(x, "i"), axis_name="i")(np.array([1.0, 3.0], np.float32)))
    [0.25 0.75]
    """
    named, dims = _apart(axis_name)
    size, _ = checked_groups("psum", named, axis_index_groups, equal=False)
    leaves, tree = tree_flatten(x)
    if not dims and all(
        isinstance(v, (bool, int, float, complex, np.generic)) for v in leaves
    ):  # known without communication
        return tree_unflatten(tree, [np.int32(size * v) if _is_truth(v) else size * v for v in leaves])
    return _reduce(psum_p, tree_map(_as_number, x) if dims or named else x, axis_name, axis_index_groups)


def _as_number(x: Any) -> Any:
    """Of truth values, how many hold is counted."""
    return convert(x, np.dtype("int32")) if _is_truth(x) else x


def _is_truth(x: Any) -> bool:
    return aval_of(x).dtype == np.bool_


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean of ``x``, a pytree, over all programs along the named axis (or axes); of integers a float.

    >>> import polyax
    >>> import polyax.numpy as jnp
    >>> polyax.vmap(lambda x: polyax.lax.pmean(x, 'i'), axis_name='i')(jnp.array([1.0, 3.0])).tolist()
    [2.0, 2.0]
    """
    named, dims = _apart(axis_name)
    programs, groups = checked_groups("pmean", named, axis_index_groups)

    def mean(total: Any, x: Any) -> Any:
        size = programs * math.prod(np.shape(x)[d] for d in dims)
        aval = aval_of(total)
        dtype = aval.dtype if dtypes.is_inexact(aval.dtype) else dtypes.canonicalize(np.dtype(float))
        return div(convert(total, dtype, aval.weak_type), float(size))

    return tree_map(mean, _reduce(psum_p, tree_map(_as_number, x), axis_name, groups), x)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The elementwise maximum of ``x``, a pytree, over all programs along the named axis (or axes).

    >>> import polyax
    >>> import polyax.numpy as jnp
    >>> polyax.vmap(lambda x: polyax.lax.pmax(x, 'i'), axis_name='i')(jnp.array([1, 3])).tolist()
    [3, 3]
    """
    return _reduce(pmax_p, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The elementwise minimum of ``x``, a pytree, over all programs along the named axis (or axes)."""
    return _reduce(pmin_p, x, axis_name, axis_index_groups)


@def_rule(psum_p, "jvp")
def _psum_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    nonzero = [t for t in tangents if type(t) is not Zero]
    outs, dots = psum_p.bind_all(*primals, **params), iter(psum_p.bind_all(*nonzero, **params))
    return outs, [t if type(t) is Zero else next(dots) for t in tangents]


@def_rule(psum_p, "transpose")
def _psum_transpose(cts: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
    """Every program's result depends on every program's operand: cotangents are summed as well."""
    sums = iter(psum_p.bind_all(*(ct for ct in cts if type(ct) is not Zero), **params))
    return [ct if type(ct) is Zero else next(sums) for ct in cts]


for _p in (pmax_p, pmin_p):
    _p.never("jvp", "JAX has no derivative of it either: which program holds the extremum isn't known locally")
    _p.never("transpose", "extrema aren't linear")


def _reduction_batch(p: Primitive) -> Any:
    def batch(
        axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, axes: Names, axis_index_groups: Groups | None
    ) -> Any:
        if axis.name not in axes:
            return p.bind_all(*args, axes=axes, axis_index_groups=axis_index_groups), list(dims)
        rest = tuple(a for a in axes if a != axis.name)
        if axis_index_groups is None:
            outs = [_reduced(p, x, d, axis.size) for x, d in zip(args, dims, strict=True)]
            return p.bind_all(*outs, axes=rest, axis_index_groups=None) if rest else outs, [None] * len(outs)
        if rest:
            raise NotImplementedError(f"{p}: axis_index_groups along several axes isn't built under vmap, got {axes}")
        return batch_groups(p, axis, args, dims, axis_index_groups, {"axes": axes})

    return batch


def _reduced(p: Primitive, x: Any, dim: int | None, size: int) -> Any:
    if dim is not None:
        return _LOCAL[p](x, (dim,))
    return mul(x, size) if p is psum_p else x


for _p in _LOCAL:
    _p.batch = _reduction_batch(_p)


@def_rule(psum_invariant_p, "decompose")
def _as_sum(*args: Any, axes: Names) -> list[Any]:
    return psum_p.bind_all(*args, axes=axes, axis_index_groups=None)


# --- axis_index

axis_index_p = Primitive("axis_index")


def axis_index(axis_name: Any) -> Any:
    """The program's number along the named axis; of several names, in row-major order.

    >>> import polyax
    >>> print(polyax.vmap(lambda x: axis_index("i"), axis_name="i")(np.zeros(3)))
    [0 1 2]
    """
    total: Any = None
    for name in names_of(axis_name):
        own = axis_index_p.bind1(axis_name=name, axis_size=_size(name))
        total = own if total is None else total * np.int32(_size(name)) + own
    return full((), 0, np.dtype("int32")) if total is None else total


axis_index_p.axes = lambda axis_name, **_: (axis_name,)
axis_index_p.never("factors", "it has no operands")
axis_index_p.varies = lambda vmas, axis_name, **_: (vmas, [ambient.varying & {axis_name}])
axis_index_p.never("jvp", "it has no operands")
axis_index_p.never("transpose", "it has no operands")


@def_rule(axis_index_p, "abstract_eval")
def _index_abstract(**_: Any) -> list[ShapedArray]:
    return [ShapedArray((), np.dtype("int32"))]


@def_rule(axis_index_p, "batch")
def _index_batch(axis: Any, args: Any, dims: Any, *, axis_name: Any, axis_size: int) -> Any:
    if axis.name != axis_name:
        return axis_index_p.bind_all(axis_name=axis_name, axis_size=axis_size), [None]
    return [iota(np.int32, axis.size)], [0]
