"""Arrays that hold one value everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.lax import lenient as lax
from polyax.lax.filling import with_devices
from polyax.meshes.explicit import sharding_of
from polyax.meshes.resharding import retyped
from polyax.meshes.sharding import Sharding
from polyax.numpy.arrays import placed
from polyax.numpy.broadcast import broadcast_to
from polyax.numpy.promotion import canonical_dtype, check_arraylike, concrete_shape, convert, shape_of, strong, unwrap
from polyax.runtime.arrays.array import is_concrete
from polyax.runtime.arrays.placing import beside, device_put
from polyax.trace.varying import pvary

__all__ = ["empty", "empty_like", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like"]


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """An array of ``shape`` that holds ``fill_value``, which broadcasts to it, everywhere.

    Raises:
      TypeError: ``fill_value`` is a complex number of Python and ``dtype`` a real one.

    >>> import polyax.numpy as jnp
    >>> jnp.full((2,), 7).tolist()
    [7, 7]
    """
    check_arraylike("full", fill_value)
    kind = None if dtype is None else canonical_dtype(dtype)
    shape, value = concrete_shape(shape), unwrap(fill_value)
    if kind is not None:
        value = dtypes.wrapped(value, kind) if type(value) in dtypes.PYTHON_SCALARS else convert(value, kind)
    made = broadcast_to(value, shape) if shape_of(value) else lax.full(shape, value)
    return placed(made if device is None else strong(made), device, out_sharding)


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Zeros, float32 by default.

    >>> import polyax.numpy as jnp
    >>> jnp.zeros((2, 3)).shape
    (2, 3)
    """
    return _constant("zeros", shape, 0, dtype, device, out_sharding)


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Ones, float32 by default.

    >>> import polyax.numpy as jnp
    >>> jnp.ones((2, 2)).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _constant("ones", shape, 1, dtype, device, out_sharding)


def _constant(name: str, shape: Any, value: int, dtype: Any, device: Any, out_sharding: Any) -> Any:
    if isinstance(shape, int) and isinstance(dtype, int):
        raise TypeError(
            f"Cannot interpret '{dtype}' as a data type.\n\nDid you accidentally write `jax.numpy.{name}({shape}, "
            f"{dtype})` when you meant `jax.numpy.{name}(({shape}, {dtype}))`, i.e. with a single tuple argument for "
            "the shape?"
        )
    kind = canonical_dtype(dtype, np.float64)
    return placed(lax.full(concrete_shape(shape), value, kind), device, out_sharding)


def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Zeros: memory that isn't initialised would not be a pure function."""
    return _constant("empty", shape, 0, dtype, device, out_sharding)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """``full`` with the shape and dtype of ``a`` where they aren't given, cut as the type of ``a`` tells.

    >>> import polyax.numpy as jnp
    >>> jnp.full_like(jnp.arange(3), 7).tolist()
    [7, 7, 7]
    """
    like, kind = _like("full_like", a, dtype, shape)
    made = full(like, fill_value, kind, device=device, out_sharding=out_sharding)
    return _cut_as(a, _weak_as(a, made, dtype, device), shape, device, out_sharding)


def zeros_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """``zeros`` with the shape and dtype of ``a`` where they aren't given.

    >>> import polyax.numpy as jnp
    >>> jnp.zeros_like(jnp.arange(3)).tolist()
    [0, 0, 0]
    """
    made = zeros(*_like("zeros_like", a, dtype, shape), device=device, out_sharding=out_sharding)
    return _cut_as(a, _weak_as(a, made, dtype, device), shape, device, out_sharding)


def ones_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """``ones`` with the shape and dtype of ``a`` where they aren't given.

    >>> import polyax.numpy as jnp
    >>> jnp.ones_like(jnp.arange(3.0)).tolist()
    [1.0, 1.0, 1.0]
    """
    made = ones(*_like("ones_like", a, dtype, shape), device=device, out_sharding=out_sharding)
    return _cut_as(a, _weak_as(a, made, dtype, device), shape, device, out_sharding)


def empty_like(prototype: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """``zeros_like``."""
    made = zeros(*_like("empty_like", prototype, dtype, shape), device=device)
    return _cut_as(prototype, _weak_as(prototype, made, dtype, device), shape, device)


def _weak_as(a: Any, made: Any, *given: Any) -> Any:
    """``made`` with the weak type of ``a``, unless a dtype or a place was asked for."""
    weak = all(x is None for x in given) and (type(a) in (int, float, complex) or getattr(a, "weak_type", False))
    return convert(made, made.dtype, True) if weak else made


def _cut_as(a: Any, made: Any, shape: Any, *given: Any) -> Any:
    """``made``, which nobody else has, varies as ``a`` does, and lies as it was put or as its type tells, unless
    something else was said of it."""
    aval = getattr(a, "aval", None)
    if aval is None:
        told = sharding_of(a) if shape is None and all(x is None for x in given) else None
        told = with_devices(told)
        return device_put(made, told) if isinstance(told, Sharding) else made
    made = pvary(made, aval.vma) if aval.vma else made
    if not all(x is None for x in given):
        return made
    if is_concrete(a) and is_concrete(made):
        return beside(made, a)
    return made if shape is not None or aval.told is None else retyped(made, aval)


def _like(name: str, a: Any, dtype: Any, shape: Any) -> tuple[tuple[int, ...], Any]:
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        check_arraylike(name, a)
        a = aval_of(unwrap(a))
    kind = dtypes.canonicalize(a.dtype) if dtype is None else canonical_dtype(dtype)
    return (tuple(a.shape) if shape is None else concrete_shape(shape)), kind
