"""Initial weights: functions that make functions ``(key, shape, dtype) -> array``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from polyax import numpy as jnp
from polyax import random
from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.meshes.resharding import with_out_sharding
from polyax.numpy.promotion import canonical_dtype, concrete_shape
from polyax.ops.basis import named

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform",
    "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal",
    "truncated_normal", "uniform", "variance_scaling", "xavier_normal", "xavier_uniform", "zeros",
]  # fmt: skip


class Initializer(Protocol):
    """What every initializer is: a function of a key, a shape and a dtype."""

    def __call__(self, key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any: ...


@with_out_sharding
def zeros(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Zeros; the key is not used."""
    return jnp.zeros(shape, canonical_dtype(dtype, np.float64))


@with_out_sharding
def ones(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Ones; the key is not used."""
    return jnp.ones(shape, canonical_dtype(dtype, np.float64))


def constant(value: Any, dtype: Any = None) -> Initializer:
    """``value`` everywhere."""

    @with_out_sharding
    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        return jnp.full(shape, value, canonical_dtype(dtype, np.float64))

    return init


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Uniform in [0, scale)."""

    @with_out_sharding
    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        kind = canonical_dtype(dtype, np.float64)
        return random.uniform(key, shape, kind) * jnp.array(scale, kind)

    return init


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Normal with mean zero and this standard deviation."""

    @with_out_sharding
    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        kind = canonical_dtype(dtype, np.float64)
        return random.normal(key, shape, kind) * jnp.array(stddev, kind)

    return init


def truncated_normal(stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0) -> Initializer:
    """Standard normal numbers between ``lower`` and ``upper``, times ``stddev``."""

    @with_out_sharding
    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        kind = canonical_dtype(dtype, np.float64)
        return random.truncated_normal(key, lower, upper, shape, kind) * jnp.array(stddev, kind)

    return init


# --- scaled by the number of connections ------------------------------------------------------------------------------


def _product(shape: Sequence[int], axes: int | Sequence[int]) -> int:
    return shape[axes] if isinstance(axes, int) else math.prod(shape[i] for i in axes)


def _fans(shape: tuple[int, ...], in_axis: Any, out_axis: Any, batch_axis: Any) -> tuple[float, float]:
    """Connections into and out of a unit; all other axes are the receptive field."""
    if isinstance(in_axis, int) and in_axis == -2 and len(shape) <= 1:
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor with default in_axis. "
            "Must be at least 2D or specify in_axis explicitly."
        )
    inputs, outputs = _product(shape, in_axis), _product(shape, out_axis)
    field = math.prod(shape) / inputs / outputs / _product(shape, batch_axis)
    return inputs * field, outputs * field


_MODES = {
    "fan_in": lambda i, o: i,
    "fan_out": lambda i, o: o,
    "fan_avg": lambda i, o: (i + o) / 2,
    "fan_geo_avg": lambda i, o: (i * o) ** 0.5,
}

_TRUNCATED_DEVIATION = 0.87962566103423978  # standard deviation of a standard normal number between -2 and 2


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: Any = -2,
    out_axis: Any = -1,
    batch_axis: Any = (),
    dtype: Any = None,
) -> Initializer:
    """Variance ``scale / n``, where ``n`` is the number of connections into or out of a unit, or a mean of both.

    Args:
      mode: 'fan_in', 'fan_out', 'fan_avg' or 'fan_geo_avg'.
      distribution: 'truncated_normal', 'normal' or 'uniform'; of complex numbers, the modulus is truncated, and uniform
        ones fill a disk.

    Raises:
      ValueError: an unknown mode or distribution (when called), or a shape with fewer than two axes.

    >>> from polyax import nn, random
    >>> init = nn.initializers.variance_scaling(2.0, 'fan_in', 'truncated_normal')
    >>> init(random.key(0), (3, 5)).shape
    (3, 5)
    """

    @with_out_sharding
    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        shape, kind = concrete_shape(shape), canonical_dtype(dtype, np.float64)
        if mode not in _MODES:
            raise ValueError(f"invalid mode for variance scaling initializer: {mode}")
        variance = jnp.array(scale / _MODES[mode](*_fans(shape, in_axis, out_axis, batch_axis)), kind)
        return _scaled_sample(distribution, key, shape, kind, variance)

    return init


def _scaled_sample(distribution: str, key: Any, shape: tuple[int, ...], dtype: Any, variance: Any) -> Any:
    if distribution == "normal":
        return random.normal(key, shape, dtype) * jnp.sqrt(variance)
    if distribution not in ("truncated_normal", "uniform"):
        raise ValueError(f"invalid distribution for variance scaling initializer: {distribution}")
    if dtype in dtypes.COMPLEX:
        return _complex_sample(distribution, key, shape, dtype, variance)
    if distribution == "uniform":
        return random.uniform(key, shape, dtype, -1) * jnp.sqrt(3 * variance)
    deviation = jnp.sqrt(variance) / jnp.array(_TRUNCATED_DEVIATION, dtype)
    return random.truncated_normal(key, -2, 2, shape, dtype) * deviation


_TRUNCATED_COMPLEX_DEVIATION = 0.95311164380491208  # that of a complex standard normal number of modulus up to 2


def _complex_sample(distribution: str, key: Any, shape: tuple[int, ...], dtype: Any, variance: Any) -> Any:
    if distribution == "uniform":
        return _complex_uniform(key, shape, dtype) * jnp.sqrt(variance)
    deviation = jnp.sqrt(variance) / jnp.array(_TRUNCATED_COMPLEX_DEVIATION, dtype)
    return _complex_truncated_normal(key, 2.0, shape, dtype) * deviation


def _complex_uniform(key: Any, shape: Sequence[int], dtype: Any) -> Any:
    """Numbers that fill a disk, of variance 1."""
    return _in_disk(key, shape, dtype, lambda u: jnp.sqrt(2 * u))


def _complex_truncated_normal(key: Any, upper: float, shape: Sequence[int], dtype: Any) -> Any:
    """Normal numbers of modulus up to ``upper``, of variance 1 but for that."""
    within = -np.expm1(-(upper**2))
    return _in_disk(key, shape, dtype, lambda u: jnp.sqrt(-jnp.log1p(-u * u.dtype.type(within))))


def _in_disk(key: Any, shape: Sequence[int], dtype: Any, modulus: Callable[[Any], Any]) -> Any:
    """Numbers by the inverse distribution function of their modulus and a uniform angle."""
    radial, angular = random.split(key)
    real = dtypes.real_part(np.dtype(dtype))
    r, angle = modulus(random.uniform(radial, shape, real)), 2 * np.pi * random.uniform(angular, shape, real)
    return lax.complex(r * jnp.cos(angle), r * jnp.sin(angle))


def _scaled(name: str, scale: float, mode: str, distribution: str, doc: str) -> Any:
    def make(in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = None) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    return named(make, name, f"{doc}\n\nThe same as ``variance_scaling({scale}, {mode!r}, {distribution!r})``.")


_GLOROT = "Glorot and Bengio, AISTATS 2010; also known as Xavier initialisation."
_LECUN = "LeCun et al., Efficient BackProp, 1998."
_HE = "He et al., arXiv:1502.01852; also known as Kaiming initialisation."
glorot_uniform = xavier_uniform = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform", _GLOROT)
glorot_normal = xavier_normal = _scaled("glorot_normal", 1.0, "fan_avg", "truncated_normal", _GLOROT)
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform", _LECUN)
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal", _LECUN)
he_uniform = kaiming_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform", _HE)
he_normal = kaiming_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal", _HE)


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Orthonormal rows or columns, times ``scale``; all axes but ``column_axis`` together are the rows.

    Raises:
      ValueError: a shape with fewer than two axes (when called).
    """

    @with_out_sharding
    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        shape, kind = concrete_shape(shape), canonical_dtype(dtype, np.float64)
        if len(shape) < 2:
            raise ValueError("orthogonal initializer requires at least a 2D shape")
        columns = shape[column_axis]
        q = random.orthogonal(key, math.prod(shape) // columns, (), kind, columns)
        rest = [n for i, n in enumerate(shape) if i != column_axis % len(shape)]
        return jnp.array(scale, kind) * jnp.moveaxis(jnp.reshape(q, (*rest, columns)), -1, column_axis)

    return init


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """An orthogonal matrix in the middle of a convolution kernel, zeros around it (Xiao et al., arXiv:1806.05393).

    Raises:
      ValueError: a shape without one to three spatial axes, or with more inputs than outputs (when called).
    """

    @with_out_sharding
    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        shape, kind = concrete_shape(shape), canonical_dtype(dtype, np.float64)
        if len(shape) not in (3, 4, 5):
            raise ValueError("Delta orthogonal initializer requires a 3D, 4D or 5D shape.")
        if shape[-1] < shape[-2]:
            raise ValueError("`fan_in` must be less or equal than `fan_out`. ")
        middle = tuple((n - 1) // 2 for n in shape[:-2])
        matrix = orthogonal(scale, column_axis, kind)(key, shape[-2:])
        return jnp.zeros(shape, kind).at[middle].set(matrix)

    return init
