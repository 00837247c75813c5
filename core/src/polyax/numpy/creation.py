"""Arrays from data, shapes and ranges."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.ir.config import config
from polyax.ir.dims import dim_index, is_symbolic_dim, max_dim, slice_indices
from polyax.ir.primitive import ambient
from polyax.ir.refs import met
from polyax.lax import lenient as lax
from polyax.lax.filling import with_devices
from polyax.meshes.current import mesh_in_force
from polyax.meshes.resharding import check_placed, resharded, retyped, sharding_for
from polyax.meshes.sharding import NamedSharding, Sharding
from polyax.meshes.spec import PartitionSpec
from polyax.numpy.broadcast import broadcast_to
from polyax.numpy.offsets import check_scalar_integer, diagonal_offset, refuse_too_far
from polyax.numpy.promotion import (
    as_array,
    canonical_dtype,
    canonicalize_axis,
    check_arraylike,
    concrete_shape,
    convert,
    ensure_array,
    exact,
    is_arraylike,
    is_traced,
    promote_dtypes_inexact,
    refuse_traced,
    result_dtype,
    shape_of,
    strong,
    to_inexact,
    unwrap,
)
from polyax.runtime.arrays.array import is_concrete
from polyax.runtime.arrays.placing import beside, check_stays, device_put, from_host
from polyax.runtime.contract.tracebacks import warn_user
from polyax.runtime.running import nonfinite
from polyax.trace.varying import pvary

__all__ = [
    "arange", "array", "asarray", "astype", "copy", "empty", "empty_like", "eye", "frombuffer", "fromfile",
    "fromiter", "fromstring", "full", "full_like", "geomspace", "identity", "linspace", "logspace",
    "ones", "ones_like", "tri", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip


def _placed(x: Any, device: Any, out_sharding: Any = None) -> Any:
    if out_sharding is not None:
        sharding = sharding_for(out_sharding, [])
        check_placed(sharding, "polyax.numpy")
        return resharded(x, sharding)
    return x if device is None else device_put(x, device)


# --- from data --------------------------------------------------------------------------------------------------------


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
        return result if result is object else _on_mesh_in_force(result)
    check_stays("array", object, device)
    return _placed(result, device, out_sharding)


def _on_mesh_in_force(x: Any) -> Any:
    """What lies nowhere in particular, on all devices of the mesh in force, as what is computed there."""
    mesh = mesh_in_force()
    if mesh is None or ambient.trace is not None or not is_concrete(x) or x.committed:
        return x
    return device_put(x, NamedSharding(mesh, PartitionSpec()))


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
    if hasattr(x, "aval"):
        return _from_array(x, dtype, copy)
    if isinstance(x, (list, tuple)):
        return _from_sequence(x, dtype)
    if copy and isinstance(x, np.ma.MaskedArray):
        x = x.data
    if x is None:
        raise ValueError("None is not a valid value for jnp.array")
    if dtypes.is_python_scalar(x):
        return from_host(x if dtype is None else exact(x, dtype))
    if is_arraylike(x):
        return from_host(x if dtype is None else convert(_numeric(x), dtype))
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
    if any(hasattr(leaf, "aval") for leaf in leaves):
        x = _to_host(x)
    return from_host(_checked_host_array(x, dtype))


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
    shapes = {shape_of(r) for r in rows}
    if len(shapes) > 1:
        raise ValueError(f"All input arrays must have the same shape, got {sorted(shapes)}")
    return lax.concatenate([lax.expand_dims(r, (0,)) for r in rows], 0)


def copy(a: Any, order: str | None = None) -> Any:
    """A copy of ``a``."""
    check_arraylike("copy", a)
    return array(a, copy=True, order=order)


def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Any:
    """``x`` converted to ``dtype``; complex numbers lose their imaginary part, everything but zero is ``True``."""
    check_arraylike("astype", x)
    x, target = unwrap(x), canonical_dtype(dtype, np.float64)
    check_stays("astype", x, device)
    have = aval_of(x).dtype
    if target == np.dtype(bool) and have != target:
        return _placed(convert(lax.ne(x, lax.full_like(x, 0)), target), device)
    if dtypes.is_complex(have) and not dtypes.is_complex(target):
        warn_user(
            "Casting from complex to real dtypes will soon raise a ValueError. Please first use jnp.real or jnp.imag "
            "to take the real/imaginary component of your input.",
            DeprecationWarning,
        )
        x = lax.real(x)
    converted = as_array(convert(as_array(x), target))
    return _placed(array(converted) if copy and converted is x else converted, device)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Any:
    """An array of the bytes of ``buffer``, read as ``dtype``."""
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


# --- constant arrays --------------------------------------------------------------------------------------------------


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """An array of ``shape`` that holds ``fill_value``, which broadcasts to it, everywhere.

    Raises:
      TypeError: ``fill_value`` is a complex number of Python and ``dtype`` a real one.
    """
    check_arraylike("full", fill_value)
    kind = None if dtype is None else canonical_dtype(dtype)
    shape, value = concrete_shape(shape), unwrap(fill_value)
    if kind is not None:
        value = dtypes.wrapped(value, kind) if type(value) in dtypes.PYTHON_SCALARS else convert(value, kind)
    made = broadcast_to(value, shape) if shape_of(value) else lax.full(shape, value)
    return _placed(made if device is None else strong(made), device, out_sharding)


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Zeros, float32 by default.

    >>> import polyax.numpy as jnp
    >>> jnp.zeros((2, 3)).shape
    (2, 3)
    """
    return _constant("zeros", shape, 0, dtype, device, out_sharding)


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Ones, float32 by default."""
    return _constant("ones", shape, 1, dtype, device, out_sharding)


def _constant(name: str, shape: Any, value: int, dtype: Any, device: Any, out_sharding: Any) -> Any:
    if isinstance(shape, int) and isinstance(dtype, int):
        raise TypeError(
            f"Cannot interpret '{dtype}' as a data type.\n\nDid you accidentally write `jax.numpy.{name}({shape}, "
            f"{dtype})` when you meant `jax.numpy.{name}(({shape}, {dtype}))`, i.e. with a single tuple argument for "
            "the shape?"
        )
    kind = canonical_dtype(dtype, np.float64)
    return _placed(lax.full(concrete_shape(shape), value, kind), device, out_sharding)


def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Zeros: memory that isn't initialised would not be a pure function."""
    return _constant("empty", shape, 0, dtype, device, out_sharding)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """``full`` with the shape and dtype of ``a`` where they aren't given, cut as the type of ``a`` tells."""
    like, kind = _like("full_like", a, dtype, shape)
    made = full(like, fill_value, kind, device=device, out_sharding=out_sharding)
    return _cut_as(a, _weak_as(a, made, dtype, device), shape, device, out_sharding)


def zeros_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """``zeros`` with the shape and dtype of ``a`` where they aren't given."""
    made = zeros(*_like("zeros_like", a, dtype, shape), device=device, out_sharding=out_sharding)
    return _cut_as(a, _weak_as(a, made, dtype, device), shape, device, out_sharding)


def ones_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """``ones`` with the shape and dtype of ``a`` where they aren't given."""
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
        told = getattr(a, "sharding", None) if shape is None and all(x is None for x in given) else None
        told = with_devices(told)
        return device_put(made, told) if isinstance(told, Sharding) else made
    made = pvary(made, aval.vma) if aval.vma else made
    if not all(x is None for x in given):
        return made
    if is_concrete(a) and is_concrete(made):
        return beside(made, a)
    return made if shape is not None or aval.sharding is None else retyped(made, aval)


def _like(name: str, a: Any, dtype: Any, shape: Any) -> tuple[tuple[int, ...], Any]:
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        check_arraylike(name, a)
        a = aval_of(unwrap(a))
    kind = dtypes.canonicalize(a.dtype) if dtype is None else canonical_dtype(dtype)
    return (tuple(a.shape) if shape is None else concrete_shape(shape)), kind


# --- ranges -----------------------------------------------------------------------------------------------------------


def arange(
    start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Numbers from ``start`` (0 if only one argument is given) up to, but without, ``stop``.

    Raises:
      ConcretizationTypeError: an argument is traced, so that the size would be unknown.
      ValueError: an argument is complex, or no scalar.
      TypeError: the numbers would be booleans.

    >>> import polyax.numpy as jnp
    >>> jnp.arange(5).tolist()
    [0, 1, 2, 3, 4]
    """
    given = {"start": start, "stop": stop, "step": step}
    for name, value in given.items():
        given[name] = refuse_traced(value, f"It arose in the jnp.arange argument '{_as_called(name, stop)}'")
    start, stop, step = given.values()
    scalars = [unwrap(v) for v in given.values() if v is not None]
    if any(aval_of(v).dtype in dtypes.COMPLEX for v in scalars):
        raise ValueError(
            "Passing complex start/stop/step to jnp.arange is no longer supported: complex numbers have no order."
        )
    kind = result_dtype(*scalars)[0] if dtype is None else canonical_dtype(dtype)
    if kind in dtypes.BOOL:
        raise TypeError("jnp.arange does not make booleans: give numbers, or another dtype.")
    for name, value in given.items():
        if value is not None and shape_of(value) != ():
            raise ValueError(f"jax.numpy.arange: arguments must be scalars; got {_as_called(name, stop)}={value}")
    if stop is None and step is None:
        counted = dtypes.is_integer(aval_of(unwrap(start)).dtype)
        count = dim_index(start) if counted else math.ceil(np.asarray(start).item())
        return _placed(lax.iota(kind, max_dim(count, 0)), device, out_sharding)
    if any(map(is_symbolic_dim, given.values())):
        return _placed(_symbolic_range(start, stop, 1 if step is None else step, kind), device, out_sharding)
    values: list[Any] = [None if v is None else np.asarray(v).item() for v in given.values()]
    first, last, by = (0, values[0], values[2]) if stop is None else values
    return _placed(_numbers(first, last, by, kind), device, out_sharding)


def _as_called(name: str, stop: Any) -> str:
    """The name of an argument of ``arange``, of which one alone is where it stops."""
    return "stop" if name == "start" and stop is None else name


def _numbers(start: Any, stop: Any, step: Any, kind: Any) -> Any:
    """Counted in programs wherever that gives the same numbers, so that they hold no table; elsewhere on the host."""
    table = np.arange(start, stop, 1 if step is None else step)
    if step is not None and not (table.dtype.kind == "i" and kind.kind in "iu"):
        return from_host(table.astype(kind))
    numbers = np.arange(len(table)).astype(kind) if ambient.trace is None else lax.iota(kind, len(table))
    if step is not None:
        numbers = numbers * np.asarray(step).astype(kind)
    if start:
        numbers = numbers + np.asarray(start).astype(kind)
    return from_host(numbers) if isinstance(numbers, np.ndarray) else numbers


def counted(size: Any) -> Any:
    """The integers below a dimension: by NumPy, where it is known."""
    return lax.iota(np.int32, size) if is_symbolic_dim(size) else np.arange(size, dtype=np.int32)


def _symbolic_range(start: Any, stop: Any, step: Any, kind: Any) -> Any:
    start, stop = (0, start) if stop is None else (start, stop)
    first, by, count = slice_indices(slice(None, None, step), stop - start)
    values = lax.iota(kind, count)
    return lax.add(lax.mul(values, convert(by, kind)), convert(unwrap(start + first), kind))


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """``num`` numbers at equal distances from ``start`` to ``stop``, which is left out unless ``endpoint``.

    >>> import polyax.numpy as jnp
    >>> jnp.linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    check_arraylike("linspace", start, stop)
    refuse_traced(num, "It arose in the jnp.linspace argument 'num'")
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    kind = to_inexact(result_dtype(unwrap(start), unwrap(stop))[0])
    target = kind if dtype is None else canonical_dtype(dtype)
    first, last = (convert(unwrap(x), kind) for x in (start, stop))
    values, step = _spaced(first, last, num, endpoint, kind)
    if axis % max(values.ndim, 1):
        values = _move_first_axis(values, canonicalize_axis(axis, values.ndim))
    if dtypes.is_integer(target):
        values = lax.floor(values)
    values = _placed(convert(values, target), device)
    return (values, step) if retstep else values


def _spaced(start: Any, stop: Any, num: int, endpoint: bool, kind: Any) -> tuple[Any, Any]:
    """Values along a new first axis as start (1 - t) + stop t, which is exact at both ends; and their distance."""
    shape = lax.broadcast_shapes(shape_of(start), shape_of(stop))
    start, stop = broadcast_to(start, shape), broadcast_to(stop, shape)
    parts = num - 1 if endpoint else num
    step = lax.div(lax.sub(stop, start), float(parts)) if parts > 0 else full(shape, np.nan, kind)
    if num < 2:
        first = [lax.expand_dims(start, (0,))] * num
        return (first[0] if num else zeros((0, *shape), kind)), step
    count = parts if endpoint else num
    real = dtypes.real_part(kind)
    t = convert(lax.div(lax.iota(real, count), float(parts)), kind)
    t = lax.reshape(t, (count,) + (1,) * len(shape))
    a, b = (lax.expand_dims(x, (0,)) for x in (start, stop))
    values = lax.add(lax.mul(a, lax.sub(1.0, t)), lax.mul(b, t))
    return (lax.concatenate([values, b], 0) if endpoint else values), step


def _move_first_axis(x: Any, to: int) -> Any:
    rest = list(range(1, x.ndim))
    return lax.transpose(x, (*rest[:to], 0, *rest[to:]))


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """``base`` to the power of ``linspace(start, stop, ...)``."""
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    kind = exponents.dtype if dtype is None else canonical_dtype(dtype)
    return convert(lax.pow(broadcast_to(convert(unwrap(base), exponents.dtype), exponents.shape), exponents), kind)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """``num`` numbers at equal ratios from ``start`` to ``stop``."""
    check_arraylike("geomspace", start, stop)
    first, last = promote_dtypes_inexact(unwrap(start), unwrap(stop))
    kind = aval_of(first).dtype if dtype is None else canonical_dtype(dtype)
    first, last = as_array(first), as_array(last)
    first, last = (broadcast_to(x, lax.broadcast_shapes(first.shape, last.shape)) for x in (first, last))
    sign = lax.sign(first)
    logs = linspace(lax.log(lax.div(first, sign)), lax.log(lax.div(last, sign)), num, endpoint, axis=axis)
    along = canonicalize_axis(axis, logs.ndim)
    signs = lax.broadcast_in_dim(sign, logs.shape, [i for i in range(logs.ndim) if i != along])
    return convert(lax.mul(lax.exp(logs), signs), kind)


# --- patterns ---------------------------------------------------------------------------------------------------------


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = None, *, device: Any = None) -> Any:
    """A matrix of shape (N, M) with ones on the ``k``-th diagonal.

    Raises:
      ValueError: ``k`` is no scalar integer, or a dimension is negative.

    >>> import polyax.numpy as jnp
    >>> jnp.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    kind = canonical_dtype(dtype, np.float64)
    shape = concrete_shape((N, N if M is None else M))
    if any(n < 0 for n in shape):
        raise ValueError(f"negative dimensions are not allowed, got {N} and {M}")
    if not isinstance(k, int) and not is_symbolic_dim(k):
        check_scalar_integer(k)
    return _placed(convert(lax.eq(*_row_and_column(shape, k)), kind), device)


def identity(n: Any, dtype: Any = None) -> Any:
    """The identity matrix of size ``n``."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """Ones at and below the ``k``-th diagonal, zeros above."""
    kind = canonical_dtype(dtype, np.float32)
    refuse_too_far(k)
    return convert(lax.ge(*_row_and_column(concrete_shape((N, N if M is None else M)), k)), kind)


def _row_and_column(shape: tuple[int, ...], k: Any) -> tuple[Any, Any]:
    """Row index plus ``k``, and column index, of each element."""
    row, column = (lax.broadcasted_iota(np.int32, shape, n) for n in (0, 1))
    offset = diagonal_offset(k)
    return (lax.add(row, offset) if is_traced(k) or k else row), column


def tril(m: Any, k: int = 0) -> Any:
    """``m`` with zeros above its ``k``-th diagonal."""
    return _triangle("tril", m, k, lower=True)


def triu(m: Any, k: int = 0) -> Any:
    """``m`` with zeros below its ``k``-th diagonal."""
    return _triangle("triu", m, k, lower=False)


def _triangle(name: str, m: Any, k: int, lower: bool) -> Any:
    m = ensure_array(name, m)
    if m.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D")
    keep = lax.ge(*_row_and_column(m.shape[-2:], k if lower else k - 1))
    keep = broadcast_to(keep if lower else lax.bitwise_not(keep), m.shape)
    return lax.select(keep, m, lax.full_like(m, 0))
