"""The basic distributions: bits, uniform, normal and what is made of one uniform number by a formula.

Bit for bit those of JAX: a uniform float has random mantissa bits and the exponent of [1, 2), minus one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.api import jit
from polyax.ir import dtypes
from polyax.ir.aval import Typed, aval_of
from polyax.lax import lenient as lax
from polyax.meshes.resharding import with_out_sharding
from polyax.numpy.promotion import (
    as_array,
    canonical_dtype,
    check_arraylike,
    concrete_shape,
    convert,
    shape_of,
    unwrap,
)
from polyax.random import generators
from polyax.random.generators import random_bits
from polyax.random.keys import check_key
from polyax.random.threefry import UINTS


def float_dtype(name: str, dtype: Any) -> Any:
    """The dtype argument of a sampler of real numbers.

    Raises:
      ValueError: it is no floating-point type.
    """
    kind = canonical_dtype(dtype, np.float64)
    if not dtypes.is_float(kind):
        raise ValueError(f"dtype argument to `{name}` must be a float dtype, got {kind}")
    return kind


def inexact_dtype(name: str, dtype: Any) -> Any:
    """The dtype argument of a sampler of real or complex numbers.

    Raises:
      ValueError: it is neither a floating-point nor a complex type.
    """
    kind = canonical_dtype(dtype, np.float64)
    if not dtypes.is_inexact(kind):
        raise ValueError(f"dtype argument to `{name}` must be a float or complex dtype, got {kind}")
    return kind


def int_dtype(name: str, dtype: Any) -> Any:
    kind = canonical_dtype(dtype, np.int64)
    if not dtypes.is_integer(kind):
        raise ValueError(f"dtype argument to `{name}` must be an int dtype, got {kind}")
    return kind


def sample_shape(name: str, shape: Any, *params: Any) -> tuple[int, ...]:
    """The shape argument, or that of the parameters if it is None.

    Raises:
      ValueError: the parameters don't broadcast to it.
    """
    check_arraylike(name, *params)
    own = [shape_of(unwrap(p)) for p in params]
    if shape is None:
        return lax.broadcast_shapes(*own)
    shape = concrete_shape(shape)
    together = lax.broadcast_shapes(shape, *own)
    if together != shape:
        raise ValueError(
            f"{name} parameter shapes must be broadcast-compatible with shape argument, and the result of broadcasting "
            f"the shapes must equal the shape argument, but got result {together} for shape argument {shape}."
        )
    return shape


def refuse_complex(name: str, *params: Any) -> None:
    """Numbers of events, their rates and chances are real.

    Raises:
      TypeError: one is complex.
    """
    for p in params:
        if dtypes.is_complex(aval_of(unwrap(p)).dtype):
            raise TypeError(f"{name} takes real parameters, got {aval_of(unwrap(p)).str_short()}.")


def spread(x: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """A parameter of a distribution, for each number of the sample."""
    return jnp.broadcast_to(convert(unwrap(x), dtype), shape)


def two_keys(key: Any) -> tuple[Any, Any]:
    keys = generators.split(key, (2,))
    return lax.index_in_dim(keys, 0, 0, keepdims=False), lax.index_in_dim(keys, 1, 0, keepdims=False)


# --- bits and uniform numbers -----------------------------------------------------------------------------------------


@with_out_sharding
def bits(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Uniform random bits, uint32 by default.

    Raises:
      ValueError: the dtype is no unsigned integer.

    >>> from polyax import random
    >>> random.bits(random.key(0), (2,)).dtype
    dtype('uint32')
    """
    kind = canonical_dtype(dtype, np.uint64)
    if not dtypes.is_unsigned(kind):
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {kind}")
    return _bits(check_key("bits", key), concrete_shape(shape), kind)


@jit(static_argnames=("shape", "dtype"), inline=True)
def _bits(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return random_bits(key, dtype.itemsize * 8, shape)


@with_out_sharding
def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0, *, out_sharding: Any = None
) -> Any:
    """Floats in [minval, maxval), which broadcast to ``shape``. Between arrays of one element it is such an array.

    Raises:
      ValueError: the dtype is no floating-point type.

    >>> from polyax import random
    >>> x = random.uniform(random.key(0), (1000,), minval=2.0, maxval=3.0)
    >>> bool((x >= 2).all() and (x < 3).all()), x.dtype
    (True, dtype('float32'))
    """
    kind = float_dtype("uniform", dtype)
    shape = concrete_shape(shape)
    if not shape and np.shape(minval) and np.size(minval) == np.size(maxval) == 1:  # so has JAX it
        bounds = (lax.reshape(convert(unwrap(x), kind), ()) for x in (minval, maxval))
        return lax.reshape(uniform(key, (), kind, *bounds), np.shape(minval))
    sample_shape("uniform", shape, minval, maxval)
    return _uniform(check_key("uniform", key), minval, maxval, shape, kind)


def uniform_between(key: Any, low: Any, high: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """unit * (high - low) + low, never below ``low``."""
    low, high = (lax.broadcast_to_rank(convert(unwrap(x), dtype), len(shape)) for x in (low, high))
    scaled = lax.add(lax.mul(unit(key, shape, dtype), lax.sub(high, low)), low)
    return lax.max(low, scaled)


_uniform = jit(uniform_between, static_argnames=("shape", "dtype"), inline=True)


def unit(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform floats in [0, 1): random mantissas with the exponent of one, less one."""
    info = dtypes.finfo(dtype)
    width = info.bits if info.nmant >= 8 else 8
    unsigned = UINTS[info.bits]
    mantissa = lax.convert_element_type(random_bits(key, width, shape), unsigned)
    mantissa = lax.shift_right_logical(mantissa, unsigned.type(width - info.nmant))
    one = np.ones((), dtype).view(unsigned)[()]
    return lax.sub(lax.bitcast_convert_type(lax.bitwise_or(mantissa, one), dtype), dtype.type(1))


@with_out_sharding
def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Integers in [minval, maxval), which broadcast to ``shape``.

    Raises:
      TypeError: the dtype is no integer type.
      OverflowError: a bound is a Python number that the usual integer type doesn't hold; write such ones as arrays.

    >>> from polyax import random
    >>> x = random.randint(random.key(0), (1000,), 0, 3)
    >>> sorted({*x.tolist()})
    [0, 1, 2]
    """
    kind = canonical_dtype(dtype, np.int64)
    if not dtypes.is_integer(kind):
        raise TypeError(f"randint only accepts integer dtypes, got {kind}")
    for name, bound in (("minval", minval), ("maxval", maxval)):
        _refuse_beyond(name, bound)
    shape = sample_shape("randint", concrete_shape(shape), minval, maxval)
    key = check_key("randint", key)
    if kind.itemsize >= 4:
        return _randint(key, *_integer_bounds(minval, maxval, kind), shape, kind)
    info, wide = dtypes.iinfo(kind), np.dtype(np.int32)  # few bits would be biased
    low, high, _ = _integer_bounds(minval, maxval, wide)
    low, high = jnp.clip(low, int(info.min), int(info.max)), jnp.clip(high, int(info.min), int(info.max) + 1)
    return convert(_randint(key, low, high, np.bool_(False), shape, wide), kind)


def _refuse_beyond(name: str, bound: Any) -> None:
    """A Python integer that would be cut where it becomes an array."""
    info = dtypes.iinfo(dtypes.default_int())
    if type(bound) is int and not int(info.min) <= bound <= int(info.max):
        raise OverflowError(
            "An overflow was encountered while parsing an argument to a jitted computation, whose argument path is "
            f"{name}. Got <class 'int'> with value {bound}"
        )


def _integer_bounds(minval: Any, maxval: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """Both bounds clipped to the dtype, and whether the upper one lay beyond its largest number."""
    info = dtypes.iinfo(dtype)
    if not any(isinstance(unwrap(x), Typed) for x in (minval, maxval)):
        low, high = (np.trunc(np.asarray(x)).astype(object) for x in (minval, maxval))
        clipped = [np.clip(x, int(info.min), int(info.max)).astype(dtype) for x in (low, high)]
        return clipped[0], clipped[1], np.asarray(high > int(info.max), bool)
    low, high = (as_array(unwrap(x)) for x in (minval, maxval))
    low, high = (x if dtypes.is_integer(x.dtype) else convert(x, dtypes.default_int()) for x in (low, high))
    beyond = lax.gt(high, _clipped(info.max, high.dtype))
    return *(_narrowed(x, dtype) for x in (low, high)), beyond


def _clipped(value: Any, dtype: Any) -> Any:
    info = dtypes.iinfo(dtype)
    return dtype.type(min(max(int(value), int(info.min)), int(info.max)))


def _narrowed(x: Any, dtype: Any) -> Any:
    info = dtypes.iinfo(dtype)
    return convert(lax.clamp(_clipped(info.min, x.dtype), x, _clipped(info.max, x.dtype)), dtype)


@jit(static_argnames=("shape", "dtype"), inline=True)
def _randint(key: Any, low: Any, high: Any, beyond: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Twice as many bits as the dtype has, modulo the span: (upper * 2**n + lower) mod span, each factor reduced."""
    width = dtype.itemsize * 8
    unsigned = UINTS[width]
    upper, lower = (random_bits(k, width, shape) for k in two_keys(key))
    low, high, beyond = (
        lax.broadcast_to_rank(convert(x, d), len(shape))
        for x, d in ((low, dtype), (high, dtype), (beyond, np.dtype(bool)))
    )
    low, high, beyond = jnp.broadcast_arrays(low, high, beyond)
    empty = lax.le(high, low)
    span = convert(lax.sub(high, low), unsigned)
    span = lax.select(empty, lax.full_like(span, 1), span)
    span = lax.select(lax.bitwise_and(beyond, lax.bitwise_not(empty)), lax.add(span, unsigned.type(1)), span)
    multiplier = lax.rem(lax.full_like(span, 2 ** (width // 2)), span)
    multiplier = lax.rem(lax.mul(multiplier, multiplier), span)
    span, multiplier, low = (jnp.broadcast_to(x, shape) for x in (span, multiplier, low))
    offset = lax.add(lax.mul(lax.rem(upper, span), multiplier), lax.rem(lower, span))
    return lax.add(low, convert(lax.rem(offset, span), dtype))


@with_out_sharding
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low", *, out_sharding: Any = None) -> Any:
    """True with probability ``p``; 'high' mode resolves very small probabilities better.

    >>> from polyax import random
    >>> random.bernoulli(random.key(0), 1.0, (3,)).tolist()
    [True, True, True]
    """
    if mode not in ("high", "low"):
        raise ValueError(f"got mode={mode!r}, expected 'high' or 'low'")
    shape = sample_shape("bernoulli", shape, p)
    p = as_array(unwrap(p))
    kind = p.dtype
    if not dtypes.is_float(kind):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {kind}.")
    return _bernoulli(check_key("bernoulli", key), p, shape, kind, mode)


@jit(static_argnames=("shape", "dtype", "mode"), inline=True)
def _bernoulli(key: Any, p: Any, shape: tuple[int, ...], dtype: Any, mode: str) -> Any:
    p = jnp.broadcast_to(convert(p, dtype), shape)
    if mode == "low":
        return lax.lt(uniform_between(key, 0.0, 1.0, shape, dtype), p)
    both = uniform_between(key, 0.0, 1.0, (2, *shape), dtype)
    coarse, fine = (lax.index_in_dim(both, i, 0, keepdims=False) for i in (0, 1))
    return lax.lt(lax.mul(fine, float(2.0 ** -dtypes.finfo(dtype).nmant)), lax.sub(p, coarse))


@with_out_sharding
def rademacher(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """-1 or 1 with equal probability.

    >>> from polyax import random
    >>> sorted({*random.rademacher(random.key(0), (100,)).tolist()})
    [-1, 1]
    """
    kind = canonical_dtype(dtype, np.int64)
    heads = convert(bernoulli(check_key("rademacher", key), 0.5, concrete_shape(shape)), np.dtype("int32"))
    return convert(lax.sub(lax.mul(heads, 2), 1), kind)


# --- one uniform number through a formula -----------------------------------------------------------------------------


@with_out_sharding
def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Numbers of the standard normal distribution; complex ones have variance one in total.

    >>> from polyax import random
    >>> import polyax.numpy as jnp
    >>> random.normal(jnp.array([0, 18], jnp.uint32), (2, 3)).shape
    (2, 3)
    """
    return _normal(check_key("normal", key), concrete_shape(shape), inexact_dtype("normal", dtype))


@jit(static_argnames=("shape", "dtype"), inline=True)
def _normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    if dtype not in dtypes.COMPLEX:
        return real_normal(key, shape, dtype)
    real = dtypes.real_part(dtype)
    parts = [lax.div(real_normal(k, shape, real), float(np.sqrt(2))) for k in two_keys(key)]
    return lax.complex(*parts)


def real_normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """sqrt(2) erfinv(u) for u uniform in (-1, 1)."""
    low = np.nextafter(dtype.type(-1), dtype.type(0), dtype=dtype)
    u = uniform_between(key, low, dtype.type(1), shape, dtype)
    return lax.mul(dtype.type(np.sqrt(2)), lax.erf_inv(u))


@with_out_sharding
def truncated_normal(
    key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Numbers of the standard normal distribution between ``lower`` and ``upper``."""
    kind = float_dtype("truncated_normal", dtype)
    shape = sample_shape("truncated_normal", shape, lower, upper)
    return _truncated_normal(check_key("truncated_normal", key), lower, upper, shape, kind)


@jit(static_argnames=("shape", "dtype"), inline=True)
def _truncated_normal(key: Any, lower: Any, upper: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    sqrt2 = dtype.type(np.sqrt(2))
    lower, upper = (lax.broadcast_to_rank(convert(unwrap(x), dtype), len(shape)) for x in (lower, upper))
    u = uniform_between(key, lax.erf(lax.div(lower, sqrt2)), lax.erf(lax.div(upper, sqrt2)), shape, dtype)
    x = lax.mul(sqrt2, lax.erf_inv(u))
    least = lax.nextafter(lax.stop_gradient(lower), dtype.type(np.inf))
    most = lax.nextafter(lax.stop_gradient(upper), dtype.type(-np.inf))
    return jnp.clip(x, least, most)


@with_out_sharding
def exponential(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Numbers of the exponential distribution with rate one."""
    return _exponential(check_key("exponential", key), concrete_shape(shape), float_dtype("exponential", dtype))


@jit(static_argnames=("shape", "dtype"), inline=True)
def _exponential(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return lax.neg(lax.log1p(lax.neg(uniform_between(key, 0.0, 1.0, shape, dtype))))


@with_out_sharding
def cauchy(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Numbers of the standard Cauchy distribution."""
    return _cauchy(check_key("cauchy", key), concrete_shape(shape), float_dtype("cauchy", dtype))


@jit(static_argnames=("shape", "dtype"), inline=True)
def _cauchy(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    u = uniform_between(key, dtype.type(dtypes.finfo(dtype).eps), 1.0, shape, dtype)
    return lax.tan(lax.mul(dtype.type(np.pi), lax.sub(u, 0.5)))


@with_out_sharding
def laplace(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Numbers of the standard Laplace distribution."""
    return _laplace(check_key("laplace", key), concrete_shape(shape), float_dtype("laplace", dtype))


@jit(static_argnames=("shape", "dtype"), inline=True)
def _laplace(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    low = dtype.type(-1.0 + float(dtypes.finfo(dtype).epsneg))
    u = uniform_between(key, low, 1.0, shape, dtype)
    return lax.mul(lax.sign(u), lax.log1p(lax.neg(lax.abs(u))))


@with_out_sharding
def logistic(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Numbers of the standard logistic distribution."""
    return _logistic(check_key("logistic", key), concrete_shape(shape), float_dtype("logistic", dtype))


@jit(static_argnames=("shape", "dtype"), inline=True)
def _logistic(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    u = uniform_between(key, dtype.type(dtypes.finfo(dtype).tiny), 1.0, shape, dtype)
    return lax.sub(lax.log(u), lax.log1p(lax.neg(u)))
