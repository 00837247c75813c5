"""Slices at computed positions: dynamic_slice, dynamic_update_slice, and their helpers along one dimension.

Starts are clamped, so that the slice never leaves the array.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.dims import SymbolicDim
from polyax.ir.dtypes import full_name
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.factors import Factors, Place, factors, fitted
from polyax.ops.basis import (
    add,
    canonical_axis,
    convert,
    expand_dims,
    full_like,
    match_axis,
    move_axis,
    reshape,
    select_n,
    shape_tuple,
    squeeze,
    sub,
    zeros,
)
from polyax.ops.compare import bitwise_and, ge, lt
from polyax.ops.define import check_same_dtype, linear, linear_jvp
from polyax.ops.gather import GatherDimensionNumbers, GatherScatterMode, gather
from polyax.ops.index_factors import Begins, begins_of, clamped, summable
from polyax.ops.joining import concatenate
from polyax.ops.scatter import ScatterDimensionNumbers, scatter
from polyax.ops.zeros import zero_cotangents
from polyax.trace.symbolic import Zero, is_undef

__all__ = [
    "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_slice_p", "dynamic_update_index_in_dim",
    "dynamic_update_slice", "dynamic_update_slice_in_dim", "dynamic_update_slice_p",
]  # fmt: skip

Sizes = tuple[int, ...]

dynamic_slice_p = Primitive("dynamic_slice")
dynamic_update_slice_p = Primitive("dynamic_update_slice")


def start_indices_of(name: str, operand: Any, start_indices: Any, allow_negative: bool = True) -> list[Any]:
    """One scalar integer per dimension, all of one dtype; negative ones, if allowed, count from the end."""
    starts = list(start_indices) if isinstance(start_indices, (tuple, list)) else _components(start_indices)
    shape = np.shape(operand)
    if len(starts) != len(shape):
        raise ValueError(f"Length of slice indices must match number of operand dimensions ({len(starts)} vs {shape})")
    dtype = _wide_enough(_index_dtype(name, starts), shape)
    return [_start(i, n if allow_negative else 0, dtype) for i, n in zip(starts, shape, strict=True)]


def _index_dtype(name: str, starts: Sequence[Any]) -> Any:
    """The one integer dtype that indices have; Python integers take that of the others, int32 if there are none."""
    given = {aval_of(i).dtype for i in starts if not isinstance(i, int) or isinstance(i, bool)}
    if len(given) > 1 or not all(map(dtypes.is_integer, given)):
        raise TypeError(_unequal_starts(name, map(aval_of, starts)))
    computed = {aval_of(i).dtype for i in starts if not isinstance(i, (int, np.integer))}
    return dtypes.canonicalize(computed.pop()) if computed else np.dtype("int32")


def _wide_enough(dtype: Any, shape: Sizes) -> Any:
    """``dtype``, or int32 where it can't hold the sizes that indices are compared with."""
    if dtype.itemsize < 4 and any(n > dtypes.iinfo(dtype).max for n in shape):
        return np.dtype("int32")
    return dtype


def _unequal_starts(name: str, starts: Iterable[ShapedArray]) -> str:
    names = ", ".join(full_name(i.dtype) for i in starts)
    return f"index arguments to {name} must be integers of the same type, got: {names}"


def _components(start_indices: Any) -> list[Any]:
    shape = np.shape(start_indices)
    if len(shape) != 1:
        raise ValueError(f"Slice indices must be a sequence of scalars or an array of one dimension, got shape {shape}")
    return [start_indices[i] for i in range(shape[0])]


def _start(i: Any, size: int, dtype: Any) -> Any:
    """``i``, plus ``size`` if it is negative."""
    if isinstance(i, (int, np.integer)):
        i = i + size if i < 0 else i
        return convert(i.__jax_array__(), dtype) if isinstance(i, SymbolicDim) else dtype.type(i)
    i = convert(i, dtype)
    if dtypes.is_unsigned(dtype) or not size:
        return i
    return select_n(lt(i, 0), i, add(i, size))


# --- dynamic_slice --------------------------------------------------------------------------------------------------


def dynamic_slice(
    operand: Any, start_indices: Any, slice_sizes: Sequence[int], *, allow_negative_indices: bool = True
) -> Any:
    """The slice of ``operand`` of size ``slice_sizes`` that begins at ``start_indices``, clamped into the array.

    Args:
      start_indices: one integer scalar per dimension, or an array of them.
      allow_negative_indices: whether negative ones count from the end; else they are clamped to 0.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.dynamic_slice(jnp.arange(5), (jnp.int32(4),), (2,)).tolist()
    [3, 4]
    """
    starts = start_indices_of("dynamic_slice", operand, start_indices, allow_negative_indices)
    return dynamic_slice_p.bind1(operand, *starts, slice_sizes=shape_tuple(slice_sizes))


def _check_starts(name: str, operand: ShapedArray, starts: Sequence[ShapedArray]) -> None:
    if any(i.shape for i in starts):
        raise TypeError(f"start_indices arguments to {name} must be scalars,  got indices {tuple(starts)}")
    if len({i.dtype for i in starts}) > 1 or not all(dtypes.is_integer(i.dtype) for i in starts):
        raise TypeError(_unequal_starts(name, starts))
    if len(starts) != operand.ndim:
        raise TypeError(
            f"{name} start_indices must have length equal to the number of dimensions of the operand, "
            f"got indices {tuple(starts)} for operand shape {operand.shape}."
        )


@def_rule(dynamic_slice_p, "abstract_eval")
def _slice_abstract(operand: ShapedArray, *starts: ShapedArray, slice_sizes: Sizes) -> list[ShapedArray]:
    _check_starts("dynamic_slice", operand, starts)
    if len(slice_sizes) != operand.ndim or any(n > m for n, m in zip(slice_sizes, operand.shape, strict=True)):
        raise TypeError(
            "slice slice_sizes must be less than or equal to operand shape, "
            f"got slice_sizes {slice_sizes} for operand shape {operand.shape}."
        )
    if any(n < 0 for n in slice_sizes):
        raise TypeError(f"slice slice_sizes must be greater than or equal to zero, got slice_sizes of {slice_sizes}.")
    return [ShapedArray(slice_sizes, operand.dtype, operand.weak_type)]


def _slice_transpose(ct: Any, operand: ShapedArray, *starts: Any, slice_sizes: Sizes) -> Any:
    return dynamic_update_slice_p.bind1(zeros(operand), ct, *starts)


linear(dynamic_slice_p, _slice_transpose)


@def_rule(dynamic_slice_p, "factors")
def _slice_factors(x: ShapedArray, *starts: ShapedArray, slice_sizes: Sizes) -> Factors:
    """Dimensions that are taken whole are free; of one element along a dimension, the device that has it knows."""
    full, pointed = _kinds(x.shape, slice_sizes)
    how: dict[str, Any] = {"reduced": dict.fromkeys(pointed, "sum")} if summable(x) else {"whole": pointed}

    def local(place: Place, block: Any, *starts: Any, **_: Any) -> list[Any]:
        sizes = fitted(slice_sizes, x.shape, np.shape(block))
        here, own = _own(begins_of(place, x.shape, block, pointed), x.shape, block, starts)
        y = dynamic_slice_p.bind1(block, *own, slice_sizes=sizes)
        return [y if here is None else select_n(here, full_like(y, 0), y)]

    of_x = [d if d in {*full, *pointed} else None for d in range(x.ndim)]
    of_y = [d if d in full else None for d in range(x.ndim)]
    return factors([of_x, *[[]] * len(starts)], [of_y], local=local, **how)


def _kinds(shape: Sizes, slice_sizes: Sizes) -> tuple[list[int], dict[int, int]]:
    """The dimensions that slices hold all of, and (as their own factors) those that they hold one element of."""
    sizes = list(enumerate(zip(slice_sizes, shape, strict=True)))
    return [d for d, (k, n) in sizes if k == n], {d: d for d, (k, n) in sizes if k == 1 != n}


def _own(begins: Begins, shape: Sizes, block: Any, starts: Sequence[Any]) -> tuple[Any | None, Sequence[Any]]:
    """The starts within a block, and whether it has the element that they point to."""
    if not begins:
        return None, starts
    starts = [clamped(i, n - 1) for i, n in zip(starts, shape, strict=True)]
    here: Any = None
    for d, begin in begins.items():
        starts[d] = sub(starts[d], convert(begin, aval_of(starts[d]).dtype))
        inside = bitwise_and(ge(starts[d], 0), lt(starts[d], np.shape(block)[d]))
        here = inside if here is None else bitwise_and(here, inside)
    return here, starts


@def_rule(dynamic_slice_p, "batch")
def _slice_batch(axis: Any, args: Any, dims: Any, *, slice_sizes: Sizes) -> Any:
    """Equal starts slice one more dimension; starts of their own make it a gather."""
    (operand, *starts), (dim, *start_dims) = args, dims
    if all(d is None for d in start_dims):
        starts.insert(dim, np.zeros((), aval_of(starts[0]).dtype)[()] if starts else np.int32(0))
        sizes = (*slice_sizes[:dim], axis.size, *slice_sizes[dim:])
        return dynamic_slice_p.bind_all(operand, *starts, slice_sizes=sizes), [dim]
    n = len(starts)
    operand_dims = tuple(range(n))
    batching: Sizes = ()
    if dim is not None:
        operand = move_axis(operand, dim, 0)
        operand_dims, batching = tuple(range(1, n + 1)), (0,)
        slice_sizes = (min(1, axis.size), *slice_sizes)
    numbers = GatherDimensionNumbers(tuple(range(1, n + 1)), (), operand_dims, batching, batching)
    indices = _index_vectors(axis, starts, start_dims)
    return [gather(operand, indices, numbers, slice_sizes, mode=GatherScatterMode.CLIP)], [0]


def _index_vectors(axis: Any, starts: Sequence[Any], dims: Sequence[int | None]) -> Any:
    """The starts of each example as a row."""
    columns = [reshape(match_axis(axis, d, 0, i), (axis.size, 1)) for i, d in zip(starts, dims, strict=True)]
    return concatenate(columns, 1)


def dynamic_slice_in_dim(
    operand: Any, start_index: Any, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Any:
    """``dynamic_slice`` along one dimension, whole in the others.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.dynamic_slice_in_dim(jnp.arange(6), 2, 3).tolist()
    [2, 3, 4]
    """
    sizes = list(np.shape(operand))
    axis = canonical_axis(axis, len(sizes))
    starts: list[Any] = [0] * len(sizes)
    starts[axis], sizes[axis] = start_index, slice_size
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: Any, index: Any, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Any:
    """The slice at a computed ``index`` along ``axis``.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.dynamic_index_in_dim(jnp.arange(6), 2, keepdims=False).item()
    2
    """
    result = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return result if keepdims else squeeze(result, (axis,))


# --- dynamic_update_slice -------------------------------------------------------------------------------------------


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any, *, allow_negative_indices: bool = True) -> Any:
    """``operand`` with the slice that begins at ``start_indices``, clamped into the array, replaced by ``update``.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.dynamic_update_slice(jnp.arange(5), jnp.array([8, 9]), (1,)).tolist()
    [0, 8, 9, 3, 4]
    """
    starts = start_indices_of("dynamic_update_slice", operand, start_indices, allow_negative_indices)
    return dynamic_update_slice_p.bind1(operand, update, *starts)


@def_rule(dynamic_update_slice_p, "abstract_eval")
def _update_abstract(operand: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> list[ShapedArray]:
    if operand.ndim != update.ndim:
        raise TypeError(
            "dynamic_update_slice update must have the same rank as operand, "
            f"got update shape {update.shape} for operand shape {operand.shape}."
        )
    _check_starts("dynamic_update_slice", operand, starts)
    if any(n > m for n, m in zip(update.shape, operand.shape, strict=True)):
        raise TypeError(
            "dynamic_update_slice update shape must be smaller than operand shape, "
            f"got update shape {update.shape} for operand shape {operand.shape}."
        )
    check_same_dtype("dynamic_update_slice", (operand, update))
    return [operand]


dynamic_update_slice_p.jvp = linear_jvp(dynamic_update_slice_p, slice(2))


@def_rule(dynamic_update_slice_p, "transpose")
def _update_transpose(cts: Any, operand: Any, update: Any, *starts: Any) -> list[Any]:
    """The operand gets nothing where it was overwritten; the update gets what is there."""
    (ct,) = cts
    if type(ct) is Zero:
        return zero_cotangents(operand, update, *starts)
    aval = update.aval if is_undef(update) else aval_of(update)
    to_operand = dynamic_update_slice_p.bind1(ct, zeros(aval), *starts) if is_undef(operand) else None
    to_update = dynamic_slice_p.bind1(ct, *starts, slice_sizes=aval.shape) if is_undef(update) else None
    return [to_operand, to_update, *(None for _ in starts)]


dynamic_update_slice_p.linear_in = (0, 1)


@def_rule(dynamic_update_slice_p, "factors")
def _update_factors(x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> Factors:
    """As of ``dynamic_slice``; devices that don't have the element write what is there already."""
    full, pointed = _kinds(x.shape, update.shape)

    def local(place: Place, block: Any, update: Any, *starts: Any) -> list[Any]:
        here, own = _own(begins_of(place, x.shape, block, pointed), x.shape, block, starts)
        if here is not None:
            kept = dynamic_slice_p.bind1(block, *own, slice_sizes=np.shape(update))
            update = select_n(here, kept, update)
        return dynamic_update_slice_p.bind_all(block, update, *own)

    of_x = [d if d in {*full, *pointed} else None for d in range(x.ndim)]
    of_update = [d if d in full else None for d in range(x.ndim)]
    return factors([of_x, of_update, *[[]] * len(starts)], [of_x], local=local)


@def_rule(dynamic_update_slice_p, "batch")
def _update_batch(axis: Any, args: Any, dims: Any) -> Any:
    (operand, update, *starts), start_dims = args, dims[2:]
    operand = match_axis(axis, dims[0], 0, operand)
    update = match_axis(axis, dims[1], 0, update)
    if all(d is None for d in start_dims):
        zero = np.zeros((), aval_of(starts[0]).dtype)[()] if starts else np.int32(0)
        return dynamic_update_slice_p.bind_all(operand, update, zero, *starts), [0]
    windows = tuple(range(1, len(starts) + 1))
    numbers = ScatterDimensionNumbers(windows, (), windows, (0,), (0,))
    indices = _index_vectors(axis, starts, start_dims)
    mode = GatherScatterMode.CLIP
    return [scatter(operand, indices, update, numbers, mode=mode, unique_indices=True, indices_are_sorted=True)], [0]


def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """``dynamic_update_slice`` along one dimension, at the beginning of the others.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.dynamic_update_slice_in_dim(jnp.arange(5), jnp.zeros(2, int), 3, 0).tolist()
    [0, 1, 2, 0, 0]
    """
    starts: list[Any] = [0] * np.ndim(operand)
    starts[canonical_axis(axis, len(starts))] = start_index
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """``operand`` with its slice at a computed ``index`` along ``axis`` replaced by ``update``."""
    axis = canonical_axis(axis, np.ndim(operand))
    if np.ndim(update) != np.ndim(operand):
        update = expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(operand, update, index, axis, allow_negative_indices=allow_negative_indices)
