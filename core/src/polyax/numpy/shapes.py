"""Changing shapes: reshape, axes, flipping, rolling, splitting, tiling; and asking for them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir import errors
from polyax.ir.dims import dim_index, is_symbolic_dim, max_dim, min_dim, surely_differ
from polyax.lax import lenient as lax
from polyax.meshes.resharding import placed_as
from polyax.numpy.promotion import (
    canonicalize_axes,
    canonicalize_axis,
    concrete_shape,
    ensure_array,
    ensure_arrays,
    is_arraylike,
    is_traced,
    refuse_traced,
    shape_of,
    unwrap,
)
from polyax.runtime.contract.tracebacks import warn_user

__all__ = [
    "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "dsplit", "expand_dims", "flip", "fliplr", "flipud",
    "hsplit", "matrix_transpose", "moveaxis", "ndim", "permute_dims", "ravel", "reshape", "resize", "roll",
    "rollaxis", "rot90", "shape", "size", "split", "squeeze", "swapaxes", "tile", "transpose", "unstack", "vsplit",
]  # fmt: skip

# --- reshape ----------------------------------------------------------------------------------------------------------


def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None) -> Any:
    """The elements of ``a`` in another shape; one dimension may be -1. ``order`` is 'C' (rows) or 'F' (columns).

    Raises:
      TypeError: the sizes differ, or the shape is traced.

    >>> import polyax.numpy as jnp
    >>> jnp.reshape(jnp.arange(6), (2, -1)).shape
    (2, 3)
    """
    if out_sharding is not None:
        return placed_as(out_sharding, reshape, a, shape, order)
    a = ensure_array("reshape", a)
    new = _completed(a.shape, concrete_shape(shape))
    if order == "C":
        return lax.reshape(a, new)
    if order == "F":
        backwards = lax.reshape(lax.transpose(a, tuple(reversed(range(a.ndim)))), new[::-1])
        return lax.transpose(backwards, tuple(reversed(range(len(new)))))
    if order == "A":
        raise NotImplementedError("np.reshape order=A is not implemented.")
    raise ValueError(f"Unexpected value for 'order' argument: {order}.")


def _completed(have: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """``shape`` with -1 replaced by what makes the sizes equal."""
    unknown = [i for i, d in enumerate(shape) if d == -1]
    if not unknown:
        if surely_differ(math.prod(shape), math.prod(have)):
            raise TypeError(
                f"cannot reshape array of shape {have} (size {math.prod(have)}) into shape {shape} (size "
                f"{math.prod(shape)})"
            )
        return shape
    if len(unknown) > 1:
        raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {shape}")
    size, rest = math.prod(have), math.prod(d for d in shape if d != -1)
    missing, left = divmod(size, rest) if rest != 0 else (0, 1)
    if is_symbolic_dim(left):  # users' constraints may be of JAX's question, where the -1 is part of the product
        missing, left = divmod(size, -rest)
        missing = -missing
    if is_symbolic_dim(left):
        raise errors.InconclusiveDimensionOperation(
            f"Cannot divide evenly the sizes of shapes {have} and {shape}. The remainder {left} should be 0."
        )
    if left:
        raise TypeError(f"cannot reshape array of shape {have} (size {size}) into shape {shape}")
    return tuple(missing if d == -1 else d for d in shape)


def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """``a`` with one dimension.

    >>> import polyax.numpy as jnp
    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]])).tolist()
    [1, 2, 3, 4]
    """
    a = ensure_array("ravel", a)
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K'.")
    return reshape(a, (a.size,), order, out_sharding=out_sharding)


def along(a: Any, axis: Any) -> tuple[Any, int]:
    """``a`` and a non-negative axis of it; flattened if the axis is None."""
    return (ravel(a), 0) if axis is None else (a, canonicalize_axis(axis, a.ndim))


def resize(a: Any, new_shape: Any) -> Any:
    """The elements of ``a``, repeated or cut off as needed, in ``new_shape``."""
    shape = concrete_shape(new_shape)
    a = ravel(ensure_array("resize", a))
    size = math.prod(shape)
    if not size or not a.size:
        return lax.full_like(a, 0, shape=shape)
    copies = -(-size // a.size)
    return lax.reshape(lax.slice_in_dim(tile(a, copies), 0, size), shape)


def squeeze(a: Any, axis: Any = None) -> Any:
    """``a`` without its dimensions of size one, or without those of ``axis``.

    Raises:
      ValueError: a named dimension has another size.

    >>> import polyax.numpy as jnp
    >>> jnp.squeeze(jnp.ones((1, 3, 1))).shape
    (3,)
    """
    a = ensure_array("squeeze", a)
    axes = tuple(i for i, n in enumerate(a.shape) if n == 1) if axis is None else canonicalize_axes(_axes(axis), a.ndim)
    return lax.squeeze(a, axes) if axes else a


def _axes(axis: Any) -> tuple[Any, ...]:
    return tuple(axis) if isinstance(axis, Sequence) else (axis,)


def expand_dims(a: Any, axis: Any) -> Any:
    """``a`` with dimensions of size one at the positions ``axis`` of the result.

    >>> import polyax.numpy as jnp
    >>> jnp.expand_dims(jnp.ones(3), 0).shape
    (1, 3)
    """
    a = ensure_array("expand_dims", a)
    axes = _axes(axis)
    return lax.expand_dims(a, canonicalize_axes(axes, a.ndim + len(axes)))


def _atleast(name: str, arys: tuple[Any, ...], one: Any) -> Any:
    results = [one(a) for a in ensure_arrays(name, *arys)]
    return results[0] if len(results) == 1 else results


def atleast_1d(*arys: Any) -> Any:
    """Arrays with at least one dimension."""
    return _atleast("atleast_1d", arys, lambda a: a if a.ndim else lax.reshape(a, (1,)))


def atleast_2d(*arys: Any) -> Any:
    """Arrays with at least two dimensions; new ones lead.

    >>> import polyax.numpy as jnp
    >>> jnp.atleast_2d(jnp.arange(3)).shape
    (1, 3)
    """
    return _atleast("atleast_2d", arys, lambda a: lax.broadcast_to_rank(a, max(a.ndim, 2)))


def atleast_3d(*arys: Any) -> Any:
    """Arrays with at least three dimensions; vectors become (1, n, 1), matrices (n, m, 1)."""

    def at_least_3d(a: Any) -> Any:
        shapes = {0: (1, 1, 1), 1: (1, *a.shape, 1), 2: (*a.shape, 1)}
        return lax.reshape(a, shapes[a.ndim]) if a.ndim < 3 else a

    return _atleast("atleast_3d", arys, at_least_3d)


# --- axes -------------------------------------------------------------------------------------------------------------


def transpose(a: Any, axes: Any = None) -> Any:
    """``a`` with its dimensions in the order ``axes``; reversed by default.

    >>> import polyax.numpy as jnp
    >>> jnp.transpose(jnp.ones((2, 3, 4))).shape
    (4, 3, 2)
    """
    a = ensure_array("transpose", a)
    order = tuple(reversed(range(a.ndim))) if axes is None else tuple(canonicalize_axis(i, a.ndim) for i in axes)
    return lax.transpose(a, order)


def permute_dims(a: Any, /, axes: tuple[int, ...]) -> Any:
    """``transpose``, with the order required."""
    return transpose(a, axes)


def matrix_transpose(x: Any, /) -> Any:
    """``x`` with its last two dimensions exchanged.

    Raises:
      ValueError: there are fewer than two.
    """
    x = ensure_array("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose requires at least 2 dimensions; got ndim={x.ndim}")
    return swapaxes(x, -1, -2)


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """``a`` with two dimensions exchanged.

    >>> import polyax.numpy as jnp
    >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    a = ensure_array("swapaxes", a)
    order = list(range(a.ndim))
    i, j = canonicalize_axis(axis1, a.ndim), canonicalize_axis(axis2, a.ndim)
    order[i], order[j] = order[j], order[i]
    return lax.transpose(a, order)


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """``a`` with the dimensions ``source`` at the positions ``destination``; the others keep their order.

    >>> import polyax.numpy as jnp
    >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    a = ensure_array("moveaxis", a)
    froms, tos = canonicalize_axes(_axes(source), a.ndim), canonicalize_axes(_axes(destination), a.ndim)
    if len(froms) != len(tos):
        raise ValueError(f"Inconsistent number of elements: {len(froms)} vs {len(tos)}")
    order = [i for i in range(a.ndim) if i not in froms]
    for to, origin in sorted(zip(tos, froms, strict=True)):
        order.insert(to, origin)
    return lax.transpose(a, order)


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """``a`` with dimension ``axis`` moved before the dimension ``start``."""
    a = ensure_array("rollaxis", a)
    axis = canonicalize_axis(axis, a.ndim)
    if not -a.ndim <= start <= a.ndim:
        raise ValueError(f"start={start} must satisfy {-a.ndim}<=start<={a.ndim}")
    start = start + a.ndim if start < 0 else start
    return moveaxis(a, axis, start - 1 if start > axis else start)


# --- turning ----------------------------------------------------------------------------------------------------------


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The slices of ``x`` along ``axis``."""
    x = ensure_array("unstack", x)
    if x.ndim == 0:
        raise ValueError("Unstack requires arrays with rank > 0, however a scalar array was passed.")
    axis = canonicalize_axis(axis, x.ndim)
    return tuple(lax.index_in_dim(x, i, axis, keepdims=False) for i in range(x.shape[axis]))


def flip(m: Any, axis: Any = None) -> Any:
    """``m`` in reverse order along ``axis`` (all by default).

    >>> import polyax.numpy as jnp
    >>> jnp.flip(jnp.arange(3)).tolist()
    [2, 1, 0]
    """
    m = ensure_array("flip", m)
    return lax.rev(m, canonicalize_axes(None if axis is None else _axes(axis), m.ndim))


def fliplr(m: Any) -> Any:
    """``m`` in reverse order along its second dimension."""
    return flip(m, 1)


def flipud(m: Any) -> Any:
    """``m`` in reverse order along its first dimension."""
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """``m`` turned by ``k`` quarters in the plane of two axes, from the first towards the second.

    >>> import polyax.numpy as jnp
    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    m = ensure_array("rot90", m)
    if m.ndim < 2:
        raise ValueError(
            "rot90 requires its first argument to have ndim at least two, but got first argument of shape "
            f"{m.shape}, which has ndim {m.ndim}"
        )
    i, j = (canonicalize_axis(a, m.ndim) for a in axes)
    if i == j:
        raise ValueError("Axes must be different")
    turn = k % 4
    if turn == 2:
        return lax.rev(m, (i, j))
    if turn == 1:
        return swapaxes(lax.rev(m, (j,)), i, j)
    return lax.rev(swapaxes(m, i, j), (j,)) if turn == 3 else m


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """``a`` moved by ``shift`` places along ``axis`` (or flattened); what leaves at the end returns at the start.

    >>> import polyax.numpy as jnp
    >>> jnp.roll(jnp.arange(4), 1).tolist()
    [3, 0, 1, 2]
    """
    a = ensure_array("roll", a)
    if axis is None:
        return lax.reshape(roll(ravel(a), shift, 0), a.shape)
    axes = tuple(canonicalize_axis(d, a.ndim) for d in _axes(axis))  # one that occurs twice is rolled twice
    shifts = _per_axis_shifts(shift, len(axes))
    for d, s in zip(axes * (len(shifts) // (len(axes) or 1) or 1), shifts, strict=True):
        a = _rolled(a, s, d) if a.shape[d] else a
    return a


def _per_axis_shifts(shift: Any, count: int) -> list[Any]:
    shape = shape_of(shift)
    if shape == ():
        return [shift] * count
    shifts = [shift[i] for i in range(shape[0])]
    return shifts * count if len(shifts) == 1 else shifts


def _rolled(a: Any, shift: Any, axis: int) -> Any:
    n = a.shape[axis]
    if is_traced(shift):
        twice = lax.concatenate([a, a], axis)
        start = lax.rem(lax.add(lax.rem(lax.neg(shift), n), n), n)
        return lax.dynamic_slice_in_dim(twice, start, n, axis)
    by: Any = dim_index(shift)
    if not (is_symbolic_dim(n) and _is_between(by, n)):
        by = by % n
    if by == 0:
        return a
    return lax.concatenate([lax.slice_in_dim(a, n - by, n, axis=axis), lax.slice_in_dim(a, 0, n - by, axis=axis)], axis)


def _is_between(by: Any, n: Any) -> bool:
    """Whether it is known to need no remainder."""
    try:
        return 0 <= by <= n
    except errors.InconclusiveDimensionOperation:
        return False


# --- splitting --------------------------------------------------------------------------------------------------------


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """``ary`` in equal parts, or cut at the given indices, along ``axis``.

    Raises:
      ValueError: the size is not divisible.

    >>> import polyax.numpy as jnp
    >>> [x.tolist() for x in jnp.split(jnp.arange(6), [2, 5])]
    [[0, 1], [2, 3, 4], [5]]
    """
    return _split("split", ary, indices_or_sections, axis, equal=True)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """``split`` that also allows parts whose sizes differ by one.

    >>> import polyax.numpy as jnp
    >>> [x.tolist() for x in jnp.array_split(jnp.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    return _split("array_split", ary, indices_or_sections, axis, equal=False)


def _split(name: str, ary: Any, where: Any, axis: int, equal: bool) -> list[Any]:
    ary = ensure_array(name, ary)
    told = f"in jax.numpy.{name} argument indices_or_sections"
    if isinstance(where, (list, tuple)):
        where = [refuse_traced(i, told) for i in where]
    where = refuse_traced(where, told)
    axis = canonicalize_axis(axis, ary.ndim)
    cuts = _cuts(where, ary.shape[axis], equal)
    return [lax.slice_in_dim(ary, start, max_dim(start, stop), axis=axis) for start, stop in itertools.pairwise(cuts)]


def _cuts(where: Any, size: int, equal: bool) -> list[int]:
    if shape_of(where) != () or isinstance(where, (list, tuple)):
        inner = [min_dim(max_dim(i + size if i < 0 else i, 0), size) for i in map(dim_index, where)]
        return [0, *inner, size]
    if is_symbolic_dim(where):
        raise ValueError("jax.numpy.split with a symbolic number of sections is not supported")
    parts = int(where)
    if equal and size % parts:
        raise ValueError(f"array split does not result in an equal division: rest is {size % parts}")
    small, larger = divmod(size, parts)
    sizes = [small + 1] * larger + [small] * (parts - larger)
    return [0, *itertools.accumulate(sizes)]


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the second dimension, or the only one."""
    return _split("hsplit", ary, indices_or_sections, 1 if len(shape_of(ary)) > 1 else 0, equal=True)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the first dimension."""
    return _split("vsplit", ary, indices_or_sections, 0, equal=True)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the third dimension."""
    return _split("dsplit", ary, indices_or_sections, 2, equal=True)


# --- repeating --------------------------------------------------------------------------------------------------------


def tile(A: Any, reps: Any) -> Any:
    """``A`` put side by side ``reps`` times, along each of its (new, leading) dimensions.

    >>> import polyax.numpy as jnp
    >>> jnp.tile(jnp.array([1, 2]), 2).tolist()
    [1, 2, 1, 2]
    """
    x = ensure_array("tile", A)
    counts = concrete_shape(reps)
    rank = max(x.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    x = lax.broadcast_to_rank(x, rank)
    if not rank or all(c == 1 for c in counts):
        return x
    spread = tuple(n for c, d in zip(counts, x.shape, strict=True) for n in (c, d))
    copies = lax.broadcast_in_dim(x, spread, tuple(range(1, 2 * rank, 2)))
    return lax.reshape(copies, tuple(c * d for c, d in zip(counts, x.shape, strict=True)))


def shape(a: Any) -> tuple[int, ...]:
    """The sizes of the dimensions of ``a``."""
    return _shape("shape", a)


def _shape(name: str, a: Any) -> tuple[int, ...]:
    if hasattr(a, "shape") and hasattr(a, "dtype"):  # what only tells of an array, too
        return tuple(a.shape)
    if is_arraylike(a):
        return shape_of(unwrap(a))
    warn_user(
        f"{name} requires ndarray or scalar arguments, got {type(a)} at position 0. In a future release this will be "
        "an error.", DeprecationWarning,
    )  # fmt: skip
    return np.shape(a)


def ndim(a: Any) -> int:
    """The number of dimensions of ``a``."""
    return len(_shape("ndim", a))


def size(a: Any, axis: Any = None) -> int:
    """The number of elements of ``a``, or along ``axis``."""
    dims = _shape("size", a)
    places = range(len(dims)) if axis is None else tuple(canonicalize_axis(i, len(dims)) for i in _axes(axis))
    if len(set(places)) < len(places):
        raise ValueError(f"repeated axis: {places}")
    return math.prod(dims[i] for i in places)
