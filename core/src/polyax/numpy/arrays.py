"""Arrays from data: from sequences, arrays of others, buffers, files and text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import Typed, aval_of
from polyax.ir.config import config
from polyax.ir.refs import met
from polyax.lax import lenient as lax
from polyax.meshes.resharding import check_placed, resharded, sharding_for
from polyax.numpy.promotion import (
    as_array,
    canonical_dtype,
    check_arraylike,
    convert,
    exact,
    from_data,
    in_range,
    is_arraylike,
    is_traced,
    result_dtype,
    unwrap,
)
from polyax.runtime.arrays.array import is_concrete
from polyax.runtime.arrays.placing import check_stays, device_put, from_host, on_mesh_in_force
from polyax.runtime.contract.tracebacks import warn_user
from polyax.runtime.running import nonfinite

__all__ = ["array", "asarray", "astype", "copy", "frombuffer", "fromfile", "fromiter", "fromstring"]


def placed(x: Any, device: Any, out_sharding: Any = None) -> Any:
    """A new array where ``device`` or ``out_sharding`` says; where it is, if neither does."""
    if out_sharding is not None:
        sharding = sharding_for(out_sharding)
        check_placed(sharding, "polyax.numpy")
        return resharded(x, sharding)
    return x if device is None else device_put(x, device)


def array(
    object: Any,
    dtype: Any = None,
    *args: Any,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """An array of numbers, nested sequences of them, or anything that NumPy can convert.

    Python scalars give weakly typed arrays; 64-bit data becomes 32-bit unless ``enable_x64`` is set.

    Args:
      args: ``copy``, ``order`` and ``ndmin`` by position, which is deprecated.

    Raises:
      TypeError: the data are not numeric.
      NotImplementedError: a memory order other than 'K'.

    >>> import polyax.numpy as jnp
    >>> jnp.array([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    if args:
        return array(object, dtype, device=device, out_sharding=out_sharding, **_by_position(args, copy, order, ndmin))
    if order is not None and order != "K":
        raise NotImplementedError("Only implemented for order='K'")
    wanted = None if dtype is None else canonical_dtype(dtype)
    result = _from_object(unwrap(object), wanted, copy)
    if (config.debug_nans or config.debug_infs) and is_concrete(result):
        nonfinite.check_data(result, "array")
    if result.ndim < ndmin:
        result = lax.expand_dims(result, tuple(range(ndmin - result.ndim)))
    if device is None and out_sharding is None:
        return result if result is object else on_mesh_in_force(result)
    check_stays("array", object, device)
    return placed(result, device, out_sharding)


def _by_position(args: tuple[Any, ...], *given: Any) -> dict[str, Any]:
    names = ("copy", "order", "ndmin")
    if len(args) > len(names):
        raise TypeError(f"array() takes from 1 to 5 positional arguments but {len(args) + 2} were given")
    text = "jnp.array: passing copy, order and ndmin by position is deprecated; pass them by name."
    warn_user(text, DeprecationWarning)
    return dict(zip(names, (*args, *given[len(args) :]), strict=True))


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """``a`` as an array; an array of this dtype is returned as it is.

    >>> import polyax.numpy as jnp
    >>> jnp.asarray([1.5, 2.5]).dtype
    dtype('float32')
    """
    return array(a, dtype, copy=bool(copy), order=order or "K", device=device, out_sharding=out_sharding)


def _from_object(x: Any, dtype: Any, copy: bool) -> Any:
    if isinstance(x, Typed):
        return _from_array(x, dtype, copy)
    if isinstance(x, (list, tuple)):
        return _from_sequence(x, dtype)
    if copy and isinstance(x, np.ma.MaskedArray):
        x = x.data
    if x is None:
        raise ValueError("None is not a valid value for jnp.array")
    if dtypes.is_python_scalar(x):
        return from_data(in_range(x) if dtype is None else exact(x, dtype))
    if is_arraylike(x):
        return from_data(x if dtype is None else convert(_numeric(x), dtype))
    if dtype is not None and isinstance(x, (str, bytes)):
        return from_host(np.asarray(x, dtype))
    return from_host(_narrow(_numeric(np.asarray(x)), dtype))


def _from_array(x: Any, dtype: Any, copy: bool) -> Any:
    if met.any:
        check_arraylike("array", x)  # no reference
    if dtype is not None and (x.aval.dtype != dtype or x.aval.weak_type):
        return convert(x, dtype)
    return lax.copy(x) if copy else x


def _numeric(x: Any) -> Any:
    kind = getattr(x, "dtype", None)
    if kind is not None and kind not in dtypes.KNOWN and not dtypes.is_extended(kind):
        raise TypeError(
            f"Value '{x}' with dtype {kind} is not a valid JAX array type. Only arrays of numeric types are "
            "supported by JAX."
        )
    return x


def _narrow(x: np.ndarray, dtype: Any) -> np.ndarray:
    return x.astype(dtypes.canonicalize(x.dtype) if dtype is None else dtype)


def _leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, (list, tuple)):
        for item in x:
            yield from _leaves(item)
    else:
        yield unwrap(x)


def _from_sequence(x: Any, dtype: Any) -> Any:
    """Sequences with leaves that are traced or were put somewhere are stacked; others are put together on the host."""
    leaves = list(_leaves(x))
    if any(leaf is None for leaf in leaves):
        raise ValueError("None is not a valid value for jnp.array")
    if dtype is None:
        arrays = [leaf if is_arraylike(leaf) else np.asarray(leaf) for leaf in leaves]
        dtype = result_dtype(*map(_numeric, arrays))[0] if leaves else dtypes.default_float()
    if any(map(is_traced, leaves)) or dtypes.is_extended(dtype) or any(getattr(v, "committed", False) for v in leaves):
        return _stacked(x, dtype)
    if not any(isinstance(leaf, Typed) for leaf in leaves):
        return from_host(_checked_host_array(x, dtype))
    try:
        return from_host(_checked_host_array(_to_host(x), dtype))
    except ValueError:
        return _stacked(x, dtype)  # which tells whose shapes differ


def _checked_host_array(x: Any, dtype: Any) -> np.ndarray:
    if dtypes.is_integer(dtype):
        return np.asarray(x).astype(dtype) if _holds_arrays(x) else np.array(x, dtype=dtype)
    return np.array(x, dtype=dtype)


def _holds_arrays(x: Any) -> bool:
    return any(isinstance(leaf, (np.ndarray, np.generic)) for leaf in _leaves(x))


def _to_host(x: Any) -> Any:
    return [_to_host(item) for item in x] if isinstance(x, (list, tuple)) else np.asarray(unwrap(x))


def _stacked(x: Any, dtype: Any) -> Any:
    if not isinstance(x, (list, tuple)):
        return convert(x, dtype)
    if not x:
        return from_host(np.zeros((0,), dtype))
    rows = [_stacked(unwrap(item), dtype) for item in x]
    return lax.concatenate([lax.expand_dims(r, (0,)) for r in rows], 0)


def copy(a: Any, order: str | None = None) -> Any:
    """A copy of ``a``."""
    check_arraylike("copy", a)
    return array(a, copy=True, order=order)


def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Any:
    """``x`` converted to ``dtype``; complex numbers lose their imaginary part, everything but zero is ``True``.

    >>> import polyax.numpy as jnp
    >>> jnp.astype(jnp.array([1.7, -1.7]), int).tolist()
    [1, -1]
    """
    check_arraylike("astype", x)
    x, target = unwrap(x), canonical_dtype(dtype, np.float64)
    check_stays("astype", x, device)
    have = aval_of(x).dtype
    if dtypes.is_complex(have) and target in dtypes.BOOL:
        return placed(convert(lax.ne(x, 0), target), device)
    if dtypes.is_complex(have) and not dtypes.is_complex(target):
        warn_user(
            "Casting from complex to real dtypes will soon raise a ValueError. Please first use jnp.real or jnp.imag "
            "to take the real/imaginary component of your input.",
            DeprecationWarning,
        )
        x = lax.real(x)
    converted = as_array(convert(as_array(x), target))
    return placed(array(converted) if copy and converted is x else converted, device)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Any:
    """An array of the bytes of ``buffer``, which may be an array itself, read as ``dtype``."""
    buffer = np.asarray(buffer) if is_concrete(buffer) else buffer
    return asarray(np.frombuffer(buffer, dtype=dtype, count=count, offset=offset))


def fromfile(*args: Any, **kwargs: Any) -> Any:
    """Not implemented, since reading a file is not pure: use ``jnp.asarray(np.fromfile(...))``."""
    raise NotImplementedError(
        "jnp.fromfile() is not implemented because it may be non-pure and thus unsafe for use with JIT and other JAX "
        "transformations. Consider using jnp.asarray(np.fromfile(...)) instead."
    )


def fromiter(*args: Any, **kwargs: Any) -> Any:
    """Not implemented, since an iterator can be read only once: use ``jnp.asarray(np.fromiter(...))``."""
    raise NotImplementedError(
        "jnp.fromiter() is not implemented because it may be non-pure and thus unsafe for use with JIT and other JAX "
        "transformations. Consider using jnp.asarray(np.fromiter(...)) instead."
    )


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Any:
    """An array of the numbers in a text."""
    return asarray(np.fromstring(string, dtype=dtype, count=count, sep=sep))
