"""Joining arrays: concatenate, stack and what is made of them; repeating elements; padding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import index
from typing import Any

import numpy as np

from polyax.ir import errors
from polyax.ir.aval import Typed
from polyax.ir.dims import is_symbolic_dim
from polyax.lax import lenient as lax
from polyax.meshes.resharding import with_out_sharding
from polyax.numpy.arrays import asarray
from polyax.numpy.indexing import take
from polyax.numpy.promotion import (
    as_array,
    canonical_dtype,
    canonicalize_axis,
    check_arraylike,
    convert,
    ensure_arrays,
    is_traced,
    promote_dtypes,
    shape_of,
    unwrap,
)
from polyax.numpy.shapes import along, atleast_1d, atleast_2d, atleast_3d, ravel
from polyax.ops.joining import refuse_unequal

__all__ = ["append", "block", "column_stack", "concat", "concatenate", "dstack", "hstack", "repeat", "stack", "vstack"]


def _several(name: str, arrays: Any) -> list[Any]:
    """The arrays of a sequence, of an array along its first dimension, or of whatever else can be gone through again.

    Raises:
      TypeError: it can't.
    """
    if isinstance(arrays, (Typed, np.ndarray)):
        return list(as_array(arrays)) if shape_of(arrays) else [arrays]
    try:
        if not isinstance(arrays, Iterator):
            return list(arrays)
    except TypeError:
        pass
    raise TypeError(f"jnp.{name}: expected a sequence of arrays, got {type(arrays)}")


def _operands(name: str, arrays: Any, dtype: Any) -> list[Any]:
    """The arrays to join, of one dtype.

    Raises:
      ValueError: there are none.
    """
    arrays = _several(name, arrays)
    if not arrays:
        raise ValueError(f"Need at least one array to {name}.")
    arrays = ensure_arrays(name, *arrays)
    if dtype is None:
        return promote_dtypes(*arrays)
    kind = canonical_dtype(dtype)
    return [convert(a, kind) for a in arrays]


def concatenate(arrays: Any, axis: Any = 0, dtype: Any = None) -> Any:
    """The arrays one after another along ``axis``; flattened first if it is None.

    Raises:
      ValueError: there are no arrays, or they have no dimensions.

    >>> import polyax.numpy as jnp
    >>> jnp.concatenate([jnp.array([1]), jnp.array([2, 3])]).tolist()
    [1, 2, 3]
    """
    operands = _operands("concatenate", arrays, dtype)
    if axis is None:
        return lax.concatenate([ravel(a) for a in operands], 0)
    if operands[0].ndim == 0:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    return lax.concatenate(operands, canonicalize_axis(axis, operands[0].ndim))


def concat(arrays: Any, /, *, axis: Any = 0) -> Any:
    """``concatenate``, as the array API standard names it."""
    return concatenate(arrays, axis)


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Any:
    """The arrays, all of one shape, along a new dimension ``axis``.

    Raises:
      ValueError: the shapes differ.

    >>> import polyax.numpy as jnp
    >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.stack is not supported.")
    operands = _operands("stack", arrays, dtype)
    refuse_unequal([a.shape for a in operands])
    axis = canonicalize_axis(axis, operands[0].ndim + 1)
    return lax.concatenate([lax.expand_dims(a, (axis,)) for a in operands], axis)


def _stacked(name: str, arrays: Any, axis: Callable[[int], int], at_least: Callable[..., Any], dtype: Any) -> Any:
    parts = [at_least(a) for a in _several(name, arrays)]
    return concatenate(parts, axis(parts[0].ndim) if parts else 0, dtype)


def vstack(tup: Any, dtype: Any = None) -> Any:
    """The arrays below each other: along the first dimension, vectors as rows.

    >>> import polyax.numpy as jnp
    >>> jnp.vstack([jnp.arange(2), jnp.ones(2, int)]).tolist()
    [[0, 1], [1, 1]]
    """
    return _stacked("vstack", tup, lambda _: 0, atleast_2d, dtype)


def hstack(tup: Any, dtype: Any = None) -> Any:
    """The arrays beside each other: along the second dimension, or the only one.

    >>> import polyax.numpy as jnp
    >>> jnp.hstack([jnp.arange(2), jnp.ones(2, int)]).tolist()
    [0, 1, 1, 1]
    """
    return _stacked("hstack", tup, lambda ndim: 0 if ndim == 1 else 1, atleast_1d, dtype)


def dstack(tup: Any, dtype: Any = None) -> Any:
    """The arrays behind each other: along the third dimension."""
    return _stacked("dstack", tup, lambda _: 2, atleast_3d, dtype)


def column_stack(tup: Any) -> Any:
    """Vectors as columns of a matrix; matrices beside each other."""

    def column(a: Any) -> Any:
        a = atleast_1d(a)
        return lax.reshape(a, (a.size, 1)) if a.ndim == 1 else a

    return _stacked("column_stack", tup, lambda _: 1, column, None)


def block(arrays: Any) -> Any:
    """An array from nested lists of blocks: innermost lists join along the last dimension.

    >>> import polyax.numpy as jnp
    >>> jnp.block([[jnp.eye(1), jnp.zeros((1, 1))], [jnp.zeros((1, 1)), jnp.eye(1)]]).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    depth = _depth(arrays)
    rank = max(depth, *(len(shape_of(leaf)) for leaf in _blocks(arrays)))
    return _joined(arrays, depth, rank)


def _depth(x: Any) -> int:
    if isinstance(x, tuple):
        raise ValueError("jax.numpy.block does not allow tuples, got one: use lists")
    if not isinstance(x, list):
        return 0
    if not x:
        raise ValueError("jax.numpy.block does not allow empty list arguments")
    depths = {_depth(item) for item in x}
    if len(depths) > 1:
        raise ValueError(f"Mismatched list depths in jax.numpy.block: {sorted(depths)} in one list")
    return 1 + depths.pop()


def _blocks(x: Any) -> list[Any]:
    return [leaf for item in x for leaf in _blocks(item)] if isinstance(x, list) else [x]


def _joined(x: Any, depth: int, rank: int) -> Any:
    if not isinstance(x, list):
        return lax.broadcast_to_rank(as_array(unwrap(x)), rank)
    return concatenate([_joined(item, depth - 1, rank) for item in x], axis=-depth)


def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """``values`` after ``arr`` along ``axis``; both flattened if it is None.

    >>> import polyax.numpy as jnp
    >>> jnp.append(jnp.arange(2), 7).tolist()
    [0, 1, 7]
    """
    check_arraylike("append", arr, values)
    return concatenate([asarray(arr), asarray(values)], axis)


# --- repeating elements -----------------------------------------------------------------------------------------------


@with_out_sharding
def repeat(
    a: Any, repeats: Any, axis: Any = None, *, total_repeat_length: int | None = None, out_sharding: Any = None
) -> Any:
    """Each element (or slice along ``axis``) of ``a`` repeated ``repeats`` times.

    Args:
      repeats: one number, or one for each slice, in an array of any shape.
      total_repeat_length: size of the result, needed if ``repeats`` is traced; longer results are cut, shorter ones
        are filled with the last slice.

    Raises:
      ConcretizationTypeError: ``repeats`` is traced and no length is given.

    >>> import polyax.numpy as jnp
    >>> jnp.repeat(jnp.array([1, 2]), jnp.array([2, 1]), total_repeat_length=3).tolist()
    [1, 1, 2]
    """
    check_arraylike("repeat", a, repeats)
    a, axis = along(atleast_1d(unwrap(a)), axis)
    if is_symbolic_dim(repeats):
        if total_repeat_length is not None:
            raise ValueError(
                "jnp.repeat with a non-constant `repeats` is supported only when `total_repeat_length` is None. "
                f"({repeats=} {total_repeat_length=})"
            )
        return _each_repeated(a, repeats, axis)
    if total_repeat_length is None and is_traced(repeats):
        raise errors.ConcretizationTypeError(
            "When jit-compiling jnp.repeat, the total number of repeats must be static. To fix this, either specify a "
            "static value for `repeats`, or pass a static value to `total_repeat_length`."
        )
    if shape_of(repeats) in ((), (1,)) and total_repeat_length is None:
        return _each_repeated(a, index(np.asarray(repeats).item()), axis)
    if a.shape[axis] == 0:
        return a  # whatever its length was to be: there is nothing to repeat
    if is_traced(repeats):
        repeats = ravel(repeats)
        return take(a, _sources_of_traced(repeats, a.shape[axis], total_repeat_length), axis, mode="clip")
    return take(a, _sources(np.ravel(np.asarray(repeats)), a.shape[axis], total_repeat_length), axis, mode="clip")


def _each_repeated(a: Any, count: int, axis: int) -> Any:
    shape = a.shape
    spread = (*shape[: axis + 1], count, *shape[axis + 1 :])
    kept = [i for i in range(len(spread)) if i != axis + 1]
    return lax.reshape(lax.broadcast_in_dim(a, spread, kept), (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))


def _sources(repeats: np.ndarray, size: int, length: int | None) -> np.ndarray:
    repeats = np.broadcast_to(repeats, (size,))
    sources = np.repeat(np.arange(size, dtype=np.int32), repeats)
    if length is None:
        return sources
    missing = max(length - len(sources), 0)
    return np.concatenate([sources, np.full(missing, size - 1, np.int32)])[:length]


def _sources_of_traced(repeats: Any, size: int, length: int | None) -> Any:
    """Element ``i`` of the result comes from the first slice whose repeats, summed up to it, exceed ``i``."""
    repeats = lax.broadcast_in_dim(repeats, (size,), (0,))
    ends = lax.cumsum(convert(repeats, np.dtype("int32")), 0)
    position = lax.broadcasted_iota(np.int32, (length or 0, size), 0)
    passed = lax.ge(position, lax.broadcast_in_dim(ends, (length or 0, size), (1,)))
    return lax.min(lax.reduce_sum(convert(passed, np.dtype("int32")), (1,)), size - 1)
