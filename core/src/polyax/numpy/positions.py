"""Flat positions in an array, and those along each of its dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy.promotion import (
    as_array,
    canonical_dtype,
    concrete_shape,
    convert,
    ensure_array,
    ensure_arrays,
    promote_dtypes,
    refuse_traced,
)

__all__ = ["ravel_multi_index", "unravel_index"]


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """The multidimensional positions of flat ones, in their dtype; out of range they are clipped.

    >>> import polyax.numpy as jnp
    >>> [x.tolist() for x in jnp.unravel_index(jnp.array([1, 5, -1]), (2, 3))]
    [[0, 1, 1], [1, 2, 2]]
    """
    indices = ensure_array("unravel_index", indices)
    indices = convert(indices, np.dtype(np.int32)) if indices.dtype in dtypes.BOOL else indices
    kind, sizes = indices.dtype, concrete_shape(shape)
    flat = _clipped(indices, math.prod(sizes))
    parts = []
    for n in reversed(sizes):
        parts.append(convert(lax.rem(flat, lax.full_like(flat, n)), kind, indices.weak_type))
        flat = lax.div(flat, lax.full_like(flat, n))
    return tuple(reversed(parts))


def _clipped(indices: Any, total: int) -> Any:
    """Positions from 0 on, in a dtype that holds all of them; negative ones count from the end."""
    if dtypes.is_float(indices.dtype):
        indices = lax.floor(indices)
    if not dtypes.is_integer(indices.dtype) or indices.dtype.itemsize < 4:
        indices = convert(indices, np.dtype(np.int32))
    kind, signed = indices.dtype, dtypes.is_signed(indices.dtype)
    flat = lax.clamp(kind.type(-total if signed else 0), indices, kind.type(max(total - 1, 0)))
    return lax.select(lax.lt(flat, lax.full_like(flat, 0)), lax.add(flat, lax.full_like(flat, total)), flat)


def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "raise", order: str = "C", *, dtype: Any = None) -> Any:
    """The flat positions of multidimensional ones.

    Args:
      mode: positions out of range are an error ('raise', not under transformations), 'clip', 'wrap', or taken as they
        are ('ignore').
      dtype: of the result, by default that of the positions.

    Raises:
      AssertionError: there are more or fewer positions than ``dims``.
      ValueError: no such mode or order, positions out of range or no integers, or a dtype that can't hold the last one.

    >>> import polyax.numpy as jnp
    >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([2, 1])), (2, 3)).tolist()
    [2, 4]
    """
    sizes = concrete_shape(dims)
    parts = ensure_arrays("ravel_multi_index", *multi_index)
    if len(parts) != len(sizes):
        raise AssertionError(f"len(multi_index)={len(parts)} != len(dims)={len(sizes)}")
    if mode not in ("raise", "clip", "wrap", "ignore"):
        raise ValueError(f"invalid mode={mode!r}. Expected 'raise', 'wrap', 'clip' or 'ignore'")
    if order not in ("C", "F"):
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")
    kind = _kind(parts, sizes, dtype)
    parts = [convert(_in_range(p, n, mode), kind) for p, n in zip(parts, sizes, strict=True)]
    pairs = list(zip(parts, sizes, strict=True))
    flat: Any = as_array(kind.type(0))
    for p, n in pairs if order == "C" else pairs[::-1]:
        flat = flat * n + p
    return flat


def _kind(parts: Any, sizes: tuple[int, ...], dtype: Any) -> Any:
    for p in parts:
        if not dtypes.is_integer(p.dtype):
            raise ValueError(f"ravel_multi_index: only int indices permitted, got {p.aval.str_short()}")
    own = promote_dtypes(*parts)[0].dtype if parts else dtypes.default_int()
    kind = own if dtype is None else canonical_dtype(dtype)
    if not dtypes.is_integer(kind):
        raise ValueError(f"ravel_multi_index: {dtype=} is not an integer type.")
    if math.prod(sizes) - 1 > dtypes.iinfo(kind).max:
        raise ValueError(
            f"jnp.ravel_multi_index: dtype={kind.name} not large enough to hold flattened index for dims={sizes}. Use "
            "the dtype argument to pass a suitable dtype."
        )
    return kind


def _in_range(p: Any, size: int, mode: str) -> Any:
    if mode == "ignore":
        return p
    if mode == "raise":
        refuse_traced(
            p,
            "The error occurred because ravel_multi_index was jit-compiled with mode='raise'. Use "
            "mode='wrap' or mode='clip' instead.",
        )
        if ((host := np.asarray(p)) < 0).any() or (host >= size).any():
            raise ValueError("invalid entry in coordinates array")
        return p
    p = convert(p, np.dtype(np.int32)) if p.dtype.itemsize < 4 else p
    return lax.clamp(p.dtype.type(0), p, p.dtype.type(size - 1)) if mode == "clip" else p % size
