"""Functions along axes and over vectors: vectorize, apply_along_axis, unwrap; integer and floating-point parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from polyax.api import vmap
from polyax.control.calls.custom_jvp import custom_jvp
from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.lax import lenient as lax
from polyax.numpy.arrays import asarray
from polyax.numpy.broadcast import broadcast_to, choose
from polyax.numpy.differences import diff
from polyax.numpy.logic import copysign
from polyax.numpy.promotion import (
    as_array,
    canonicalize_axis,
    concrete_shape,
    convert,
    ensure_array,
    promote_args_inexact,
    shape_of,
)
from polyax.numpy.ranges import arange
from polyax.numpy.types import result_type
from polyax.trace.tree import tree_map

__all__ = ["apply_along_axis", "apply_over_axes", "frexp", "fromfunction", "spacing", "unwrap", "vectorize"]


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """``func1d`` of each line of ``arr`` along ``axis``; its results take the place of the lines.

    >>> import polyax.numpy as jnp
    >>> jnp.apply_along_axis(lambda row: row.sum(), 1, jnp.array([[1, 2], [3, 4]])).tolist()
    [3, 7]
    """
    arr = ensure_array("apply_along_axis", arr)
    axis = canonicalize_axis(axis, arr.ndim)

    def fun(line: Any) -> Any:
        return func1d(line, *args, **kwargs)

    for later in range(1, arr.ndim - axis):
        fun = vmap(fun, in_axes=later, out_axes=-1)
    for _ in range(axis):
        fun = vmap(fun, in_axes=0, out_axes=0)
    return fun(arr)


def apply_over_axes(func: Callable[..., Any], a: Any, axes: Sequence[int]) -> Any:
    """``func(a, axis)`` for one axis after another; a reduced axis is put back with size one."""
    a = ensure_array("apply_over_axes", a)
    for axis in axes:
        b = func(a, axis)
        if b.ndim == a.ndim - 1:
            b = lax.expand_dims(b, (canonicalize_axis(axis, a.ndim),))
        elif b.ndim != a.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        a = b
    return a


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """``function`` of the coordinates of each element of an array of ``shape``, mapped over them.

    >>> import polyax.numpy as jnp
    >>> jnp.fromfunction(lambda i, j: i + j, (2, 3), dtype=int).tolist()
    [[0, 1, 2], [1, 2, 3]]
    """
    shape = concrete_shape(shape)
    for axis in reversed(range(len(shape))):
        function = vmap(function, in_axes=tuple([0 if i == axis else None for i in range(len(shape))]))
    return function(*(arange(n, dtype=dtype) for n in shape), **kwargs)


# --- vectorize --------------------------------------------------------------------------------------------------------

_DIMS = re.compile(r"\(([\w\s,]*)\)")
_SIGNATURE = re.compile("{0}->{0}".format(r"(\((\w+(,\w+)*)?\)(,\((\w+(,\w+)*)?\))*)"))


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[object] = frozenset(), signature: str | None = None
) -> Callable[..., Any]:
    """A function that applies ``pyfunc`` over all leading dimensions of its arguments, which broadcast.

    Args:
      excluded: positions or names of arguments that are passed as they are; so is None, where scalars go.
      signature: core dimensions, such as ``'(n,m),(m)->(n)'``; scalars by default.

    Raises:
      TypeError: there are more or fewer arguments or results than the signature has.
      ValueError: shapes don't fit the signature, it is none, or ``excluded`` has negative numbers.

    >>> import polyax.numpy as jnp
    >>> jnp.vectorize(jnp.dot, signature='(n),(n)->()')(jnp.ones((3, 2)), jnp.ones(2)).tolist()
    [2.0, 2.0, 2.0]
    """
    if any(not isinstance(e, (int, str)) for e in excluded):
        raise TypeError(
            f"jax.numpy.vectorize can only exclude integer or string arguments, but excluded={set(excluded)!r}"
        )
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"excluded={set(excluded)!r} contains negative numbers")

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(enumerate(args)), **kwargs}
        mapped = {k: v for k, v in given.items() if k not in excluded}
        cores = dict(zip(mapped, _core_ranks(signature, len(mapped)), strict=True))
        mapped = {k: v for k, v in mapped.items() if not _absent(k, v, cores[k], signature)}

        def fun(*values: Any) -> Any:
            full = {**given, **dict(zip(mapped, values, strict=True))}
            return pyfunc(*(full[i] for i in range(len(args))), **{k: full[k] for k in kwargs})

        arrays = [asarray(x) for x in mapped.values()]
        return _mapped(fun, arrays, [cores[k] for k in mapped], signature)

    wrapped.__name__ = getattr(pyfunc, "__name__", "vectorized")
    wrapped.__doc__ = getattr(pyfunc, "__doc__", None)
    return wrapped


def _absent(place: int | str, value: Any, core: list[str], signature: str | None) -> bool:
    """Whether an argument is None, which stands for a scalar alone."""
    if value is None and core:
        raise ValueError(f"Cannot pass None at locations {{{place!r}}} with {signature=}")
    return value is None


def _core_ranks(signature: str | None, count: int) -> list[list[str]]:
    if signature is None:
        return [[] for _ in range(count)]
    inputs, _, _ = signature.replace(" ", "").partition("->")
    if not _SIGNATURE.fullmatch(signature.replace(" ", "")):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    cores = [[d for d in dims.split(",") if d] for dims in _DIMS.findall(inputs)]
    if len(cores) != count:
        raise TypeError(f"wrong number of positional arguments: expected {len(cores)}, got {count}")
    return cores


def _mapped(fun: Callable[..., Any], arrays: list[Any], cores: list[list[str]], signature: str | None) -> Any:
    """Leading dimensions broadcast; each becomes one vmap over the arguments that have it with its full size."""
    sizes: dict[str, int] = {}
    for x, dims in zip(arrays, cores, strict=True):
        if x.ndim < len(dims):
            raise ValueError(
                f"input with shape {x.shape} does not have enough dimensions for all core dimensions "
                f"{tuple(dims)} with signature={signature}"
            )
        _learn_sizes(sizes, dims, x.shape[x.ndim - len(dims) :], signature)
    leading = [x.shape[: x.ndim - len(dims)] for x, dims in zip(arrays, cores, strict=True)]
    shape = lax.broadcast_shapes(*leading)
    spread = [broadcast_to(x, (*shape, *x.shape[len(lead) :])) for x, lead in zip(arrays, leading, strict=True)]
    if signature is not None:
        fun = _with_results_checked(fun, sizes, signature)
    for _ in shape:
        fun = vmap(fun)
    return tree_map(as_array, fun(*spread))


def _learn_sizes(sizes: dict[str, int], dims: Sequence[str], shape: Sequence[int], signature: str | None) -> None:
    for name, n in zip(dims, shape, strict=True):
        if sizes.setdefault(name, n) != n:
            raise ValueError(
                f"inconsistent size for core dimension {name!r}: {n} vs {sizes[name]} with signature={signature}"
            )


def _with_results_checked(fun: Callable[..., Any], sizes: dict[str, int], signature: str) -> Callable[..., Any]:
    """``fun``, whose results have to be as many and of such shapes as the signature says."""
    cores = [[d for d in dims.split(",") if d] for dims in _DIMS.findall(signature.replace(" ", "").partition("->")[2])]

    def checked(*values: Any) -> Any:
        result = fun(*values)
        if len(cores) > 1 and not isinstance(result, tuple):
            raise TypeError(
                f"output must be a tuple when multiple outputs are expected, got: {result} with {signature=}"
            )
        outs = result if isinstance(result, tuple) else (result,)
        if len(outs) != len(cores):
            raise TypeError(
                f"wrong number of output arguments: expected {len(cores)}, got {len(outs)} with signature={signature}"
            )
        known = dict(sizes)
        for shape, dims in zip(map(shape_of, outs), cores, strict=True):
            if len(shape) != len(dims):
                raise ValueError(
                    f"output shape {shape} does not match core dimensions {tuple(dims)} with signature={signature}"
                )
            _learn_sizes(known, dims, shape, signature)
        return result

    return checked


# --- numbers ----------------------------------------------------------------------------------------------------------


def unwrap(p: Any, discont: Any = None, axis: int = -1, period: Any = 2 * np.pi) -> Any:
    """``p`` with multiples of ``period`` added, so that neighbours along ``axis`` differ by at most half a period.

    Integers with a period that is one stay integers.
    """
    p = ensure_array("unwrap", p)
    if dtypes.is_complex(p.dtype):
        raise ValueError(f"jnp.unwrap does not support complex inputs, got {p.aval.str_short()}.")
    p = convert(p, result_type(p, period))
    axis = canonicalize_axis(axis, p.ndim)
    if not p.shape[axis]:
        return p
    half, tied = (period // 2, period % 2 == 0) if dtypes.is_integer(p.dtype) else (period / 2, True)
    steps = diff(p, axis=axis)
    within = (steps + half) % period - half
    within = choose((within == -half) & (steps > 0) & tied, half, within)
    correction = choose(abs(steps) < max(period / 2, discont or 0), 0, within - steps)
    first = lax.slice_in_dim(p, 0, 1, axis=axis)
    rest = lax.slice_in_dim(p, 1, p.shape[axis], axis=axis)
    return lax.concatenate([first, rest + lax.cumsum(convert(correction, p.dtype), axis)], axis)


def frexp(x: Any, /) -> tuple[Any, Any]:
    """Mantissa in [0.5, 1) and exponent: ``x = mantissa * 2**exponent``. Elementwise, for real numbers.

    Raises:
      TypeError: ``x`` is complex.
    """
    (x,) = promote_args_inexact("frexp", x)
    x, dtype = as_array(x), aval_of(x).dtype
    if dtype not in dtypes.FLOATS:
        raise TypeError("frexp does not support complex-valued inputs")
    info = dtypes.finfo(dtype)
    integer = np.dtype(f"int{info.bits}")
    tiny = lax.lt(lax.abs(x), dtype.type(info.tiny))
    scaled = choose(tiny, x * dtype.type(2.0**info.nmant), x)  # subnormal numbers have no exponent bits
    bits = lax.bitcast_convert_type(scaled, integer)
    mask = integer.type(2 ** (info.bits - info.nmant - 1) - 1)
    bias = mask >> 1
    exponent = (lax.shift_right_logical(bits, info.nmant) & mask) - bias + 1
    mantissa_bits = (bits & ~(mask << info.nmant)) | ((bias - 1) << info.nmant)
    mantissa = lax.bitcast_convert_type(mantissa_bits, dtype)
    special = (x == 0) | lax.bitwise_not(lax.is_finite(x))
    exponent = convert(exponent, np.dtype("int32")) - choose(tiny, np.int32(info.nmant), np.int32(0))
    return _scaled(x, choose(special, x, mantissa), special), choose(special, np.int32(0), exponent)


@custom_jvp
def _scaled(x: Any, y: Any, same: Any) -> Any:
    """``y``, which is ``x`` times a power of two, or ``x`` where that is the ``same``: its derivative is the power."""
    return y


@_scaled.defjvp
def _scaled_jvp(primals: Any, tangents: Any) -> Any:
    x, y, same = primals
    return _scaled(x, y, same), lax.mul(tangents[0], choose(same, lax.full_like(x, 1), lax.div(y, x)))


def spacing(x: Any, /) -> Any:
    """The distance to the next number away from zero, with the sign of ``x``; of float16 to the next larger one.

    Elementwise.
    """
    (x,) = promote_args_inexact("spacing", x)
    x = lax.stop_gradient(as_array(convert(x, aval_of(x).dtype)))  # a staircase
    if dtypes.is_complex(x.dtype):
        raise ValueError("jnp.spacing is not defined for complex inputs.")
    infinity = lax.full_like(x, np.inf)
    if x.dtype == np.float16:  # as NumPy
        return lax.sub(lax.nextafter(x, infinity), x)
    return lax.sub(lax.nextafter(x, copysign(infinity, x)), x)
