"""Extracting, choosing and putting elements; partitions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy.at import AtIndexer
from polyax.numpy.broadcast import as_mask, broadcast_arrays
from polyax.numpy.broadcast import choose as _choose
from polyax.numpy.indexing import along_axis, take, wrapped
from polyax.numpy.promotion import (
    as_array,
    canonicalize_axis,
    check_arraylike,
    convert,
    ensure_array,
    ensure_arrays,
    is_traced,
    promote_dtypes,
    refuse_traced,
    shape_of,
    to_complex,
    unwrap,
)
from polyax.numpy.reductions import refuse_out
from polyax.numpy.selection import nonzero
from polyax.numpy.shapes import along, ravel

__all__ = [
    "argpartition", "choose", "compress", "extract", "partition", "place", "put",
    "put_along_axis", "sort_complex",
]  # fmt: skip


def compress(
    condition: Any, a: Any, axis: Any = None, *, size: int | None = None, fill_value: Any = 0, out: None = None
) -> Any:
    """The elements (slices along ``axis``) of ``a`` where the condition holds.

    Args:
      size: number of results, needed if the condition is traced; missing ones are ``fill_value``.
    """
    refuse_out("compress", out)
    condition, a = ensure_arrays("compress", condition, a)
    if condition.ndim != 1:
        raise ValueError(f"condition must be a 1D array, got {condition.aval}")
    condition, (a, axis) = as_mask(condition), along(a, axis)
    _refuse_beyond(condition, a.shape[axis])
    if size is None:
        refuse_traced(condition, "jnp.compress inside transformations needs a static `size`.")
        return take(a, np.flatnonzero(np.asarray(condition)).astype(np.int32), axis, mode="clip")
    if not 0 <= size <= a.shape[axis]:
        raise ValueError(
            "size must be positive and not greater than the size of the array axis; got "
            f"size={size} for a.shape[axis]={a.shape[axis]}"
        )
    condition = lax.slice_in_dim(condition, 0, min(condition.shape[0], a.shape[axis]))
    (places,) = nonzero(condition, size=size, fill_value=0)
    count = lax.reduce_sum(convert(condition, np.dtype("int32")), (0,))
    chosen = take(a, places, axis, mode="clip")
    position = lax.broadcasted_iota(np.int32, chosen.shape, axis)
    return _choose(lax.lt(position, count), chosen, convert(unwrap(fill_value), a.dtype))


def _refuse_beyond(condition: Any, size: int) -> None:
    if condition.shape[0] > size and not is_traced(condition) and np.asarray(condition)[size:].any():
        raise ValueError(
            f"condition contains entries that are out of bounds: {condition.aval} holds after the first {size}"
        )


def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Any:
    """The elements of the flattened array where the condition holds."""
    return compress(ravel(unwrap(condition)), ravel(unwrap(arr)), size=size, fill_value=fill_value)


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """For each element of ``a`` the element of that choice.

    Args:
      mode: numbers out of range are an error ('raise', not under transformations), 'wrap' or 'clip'.
    """
    refuse_out("choose", out)
    choices = list(choices) if isinstance(choices, Sequence) else [choices[i] for i in range(shape_of(choices)[0])]
    check_arraylike("choose", a, *choices)
    if not dtypes.is_integer(as_array(unwrap(a)).dtype):
        raise ValueError("jnp.choose: `a` array must be integer typed")
    number, *options = broadcast_arrays(a, *promote_dtypes(*map(unwrap, choices)))
    count = len(options)
    if mode == "raise":
        refuse_traced(
            number,
            "The error occurred because jnp.choose was jit-compiled with mode='raise'. Use "
            "mode='wrap' or mode='clip' instead.",
        )
        if ((host := np.asarray(number)) < 0).any() or (host >= count).any():
            raise ValueError("invalid entry in choice array")
    elif mode not in ("wrap", "clip"):
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    number = convert(number, np.dtype("int32"))
    number = (
        lax.rem(lax.add(lax.rem(number, count), count), count) if mode == "wrap" else lax.clamp(0, number, count - 1)
    )
    return convert(lax.select_n(number, *options), options[0].dtype, False)


def put(a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Any:
    """A copy of ``a`` with the elements at the flat positions ``ind`` set to ``v``; needs ``inplace=False``."""
    _refuse_inplace("put", inplace)
    a, places, values = ensure_arrays("put", a, ind, v)
    places, values = ravel(places), ravel(values)
    if not (a.size and places.size and values.size):
        return a
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.put is not supported.")
    if mode not in (None, "clip", "wrap"):
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got {mode=}")
    if mode == "wrap":
        places = wrapped(places, a.size)
    values = take(values, np.arange(places.size, dtype=np.int32) % max(values.size, 1), mode="clip")
    return lax.reshape(AtIndexer(ravel(a))[places].set(values, mode="clip"), a.shape)


def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Any:
    """A copy of ``arr`` with the elements where the mask holds set to ``vals`` in turn; needs ``inplace=False``."""
    _refuse_inplace("place", inplace)
    arr, mask, values = ensure_arrays("place", arr, mask, vals)
    mask, values = ravel(as_mask(mask)), ravel(values)
    if mask.size != arr.size or not values.size:
        raise ValueError("place: arr and mask must be the same size, and vals must not be empty")
    order = lax.sub(lax.cumsum(convert(mask, np.dtype("int32")), 0), 1)
    chosen = take(values, lax.rem(lax.max(order, 0), values.size), mode="clip")
    return lax.reshape(_choose(mask, convert(chosen, arr.dtype), ravel(arr)), arr.shape)


def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: Any, inplace: bool = True, *, mode: str | None = None
) -> Any:
    """A copy of ``arr`` with ``values`` at ``indices`` along ``axis``; needs ``inplace=False``."""
    _refuse_inplace("put_along_axis", inplace)
    arr, indices, values = ensure_arrays("put_along_axis", arr, indices, values)
    shape = arr.shape
    if axis is None:
        arr, axis = ravel(arr), 0
    if arr.ndim != indices.ndim:
        raise ValueError(
            f"put_along_axis arguments 'arr' and 'indices' must have same ndim. Got {arr.ndim} and {indices.ndim}."
        )
    index = along_axis(arr.shape, indices, canonicalize_axis(axis, arr.ndim))
    return lax.reshape(AtIndexer(arr)[index].set(values, mode=mode), shape)


def _refuse_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(
            f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are immutable. Pass inplace=False "
            "to instead return an updated array."
        )


# --- partitions -------------------------------------------------------------------------------------------------------


def argpartition(a: Any, kth: int, axis: int = -1) -> Any:
    """Positions that bring the ``kth`` smallest element to its place: up to it in the order of the elements, then in
    that of the array."""
    a, kth, axis = _around("argpartition", a, kth, axis)
    order = lax.sort((a, lax.broadcasted_iota(np.int32, a.shape, axis)), dimension=axis, num_keys=1)[1]
    low, high = _at(order, kth, axis)
    return lax.concatenate([low, lax.sort(high, dimension=axis)], axis)


def partition(a: Any, kth: int, axis: int = -1) -> Any:
    """``a`` with the ``kth`` smallest element in its place: up to it in increasing order, then in decreasing."""
    a, kth, axis = _around("partition", a, kth, axis)
    low, high = _at(lax.sort(a, dimension=axis), kth, axis)
    return lax.concatenate([low, lax.rev(high, (axis,))], axis)


def _around(name: str, a: Any, kth: int, axis: int) -> tuple[Any, int, int]:
    a = ensure_array(name, a)
    if dtypes.is_complex(a.dtype):
        raise NotImplementedError(f"jnp.{name} for complex dtype is not implemented.")
    axis = canonicalize_axis(axis, a.ndim)
    size = a.shape[axis]
    if not -size <= operator.index(kth) < size:
        raise ValueError(f"{name}: kth={kth} is out of bounds for axis {axis} with size {size}")
    return a, operator.index(kth) % size, axis


def _at(x: Any, kth: int, axis: int) -> tuple[Any, Any]:
    """What is up to ``kth``, and what is behind it."""
    size = x.shape[axis]
    return lax.slice_in_dim(x, 0, kth + 1, axis=axis), lax.slice_in_dim(x, kth + 1, size, axis=axis)


def sort_complex(a: Any) -> Any:
    """``a`` as complex numbers, sorted by real part, then by imaginary part."""
    a = ensure_array("sort_complex", a)
    a = convert(a, to_complex(a.dtype))
    re, im = lax.sort((lax.real(a), lax.imag(a)), dimension=a.ndim - 1, num_keys=2)
    return lax.complex(re, im)
