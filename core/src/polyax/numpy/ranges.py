"""Numbers at equal steps, or whose logarithms are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.ir.dims import dim_index, is_symbolic_dim, is_upwards, max_dim, steps_between
from polyax.ir.primitive import ambient
from polyax.lax import lenient as lax
from polyax.numpy.arrays import placed
from polyax.numpy.broadcast import broadcast_to
from polyax.numpy.creation import full, zeros
from polyax.numpy.promotion import (
    as_array,
    canonical_dtype,
    canonicalize_axis,
    check_arraylike,
    convert,
    in_range,
    promote_dtypes_inexact,
    refuse_traced,
    result_dtype,
    shape_of,
    to_inexact,
    unwrap,
)
from polyax.runtime.arrays.placing import from_host

__all__ = ["arange", "geomspace", "linspace", "logspace"]


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
    if start is None and stop is None:
        raise TypeError("jnp.arange: where it stops must be a real number, not NoneType")
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
        return placed(lax.iota(kind, max_dim(count, 0)), device, out_sharding)
    if any(map(is_symbolic_dim, given.values())):
        return placed(_symbolic_range(start, stop, 1 if step is None else step, kind), device, out_sharding)
    values: list[Any] = [None if v is None else np.asarray(v).item() for v in given.values()]
    first, last, by = (0, values[0], values[2]) if stop is None else values
    return placed(_numbers(first, last, by, kind), device, out_sharding)


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
    """Counted from dimensions and integers.

    Raises:
      ValueError: there is something else, or the step is zero.
      InconclusiveDimensionOperation: the sign of the step depends on the variables.
    """
    start, stop = (0, start) if stop is None else (start, stop)
    where = "arange with non-constant arguments"
    try:
        start, stop, step = map(dim_index, (start, stop, step))
    except TypeError:
        raise ValueError(
            f"In {where} all of start, stop, and step must be either dimension expressions or integers: {start=}, "
            f"{stop=}, {step=}"
        ) from None
    is_upwards(step, where, f"arange has step == 0: {start=}, {stop=}, {step=}")
    values = lax.iota(kind, steps_between(stop - start, step))
    return lax.add(lax.mul(values, convert(unwrap(step), kind)), convert(unwrap(start), kind))


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
    num = dim_index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    kind = to_inexact(result_dtype(unwrap(start), unwrap(stop))[0])
    target = kind if dtype is None else canonical_dtype(dtype)
    first, last = (convert(in_range(unwrap(x)), kind) for x in (start, stop))
    values, step = _spaced(first, last, num, endpoint, kind)
    if axis % max(values.ndim, 1):
        values = _move_first_axis(values, canonicalize_axis(axis, values.ndim))
    if dtypes.is_integer(target):
        values = lax.floor(values)
    values = placed(convert(values, target), device)
    return (values, step) if retstep else values


def _spaced(start: Any, stop: Any, num: int, endpoint: bool, kind: Any) -> tuple[Any, Any]:
    """Values along a new first axis as start (1 - t) + stop t, which is exact at both ends; and their distance."""
    shape = lax.broadcast_shapes(shape_of(start), shape_of(stop))
    start, stop = broadcast_to(start, shape), broadcast_to(stop, shape)
    parts = num - 1 if endpoint else num
    many = parts > 0
    length = convert(unwrap(parts), kind) if is_symbolic_dim(parts) else float(parts)
    step = lax.div(lax.sub(stop, start), length) if many else full(shape, np.nan, kind)
    if num < 2:
        first = [lax.expand_dims(start, (0,))] * num
        return (first[0] if num else zeros((0, *shape), kind)), step
    count = parts if endpoint else num
    real = dtypes.real_part(kind)
    t = convert(lax.div(lax.iota(real, count), length), kind)
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
