"""Initial values of parameters: functions ``init(key, shape, dtype)``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import polyax.numpy as jnp
from polyax import random
from polyax.ir import dtypes

Initializer = Callable[..., Any]


def _dtype(dtype: Any) -> Any:
    return dtypes.canonicalize(dtype) if dtype is not None else dtypes.default_float()


def zeros(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Zeros; ``key`` is not used."""
    return jnp.zeros(shape, _dtype(dtype))


def ones(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Ones; ``key`` is not used."""
    return jnp.ones(shape, _dtype(dtype))


def constant(value: Any, dtype: Any = None) -> Initializer:
    """``value`` everywhere."""
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        return jnp.full(shape, value, _dtype(dtype or default))

    return init


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Uniform on [0, scale)."""
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        kind = _dtype(dtype or default)
        return random.uniform(key, shape, kind) * jnp.array(scale, kind)

    return init


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Normal with mean 0."""
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        kind = _dtype(dtype or default)
        return random.normal(key, shape, kind) * jnp.array(stddev, kind)

    return init


def truncated_normal(stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0) -> Initializer:
    """Normal with mean 0, cut off at ``lower`` and ``upper`` standard deviations."""
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        kind = _dtype(dtype or default)
        return random.truncated_normal(key, lower, upper, shape, kind) * jnp.array(stddev, kind)

    return init


def _axes(axis: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    return tuple(a % ndim for a in ((axis,) if isinstance(axis, int) else axis))


def _fans(shape: Sequence[int], in_axis: Any, out_axis: Any, batch_axis: Any) -> tuple[float, float]:
    """How many inputs feed an output, and how many outputs an input feeds; other axes are a receptive field."""
    if len(shape) < 2 and isinstance(in_axis, int) and in_axis == -2 and not batch_axis:
        raise ValueError(f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor. Must be at least 2D.")
    ndim = len(shape)
    size_in, size_out, batch = (math.prod(shape[a] for a in _axes(ax, ndim)) for ax in (in_axis, out_axis, batch_axis))
    field = math.prod(shape) / size_in / size_out / batch
    return size_in * field, size_out * field


# standard deviation of the standard normal distribution truncated to (-2, 2)
_TRUNCATED_STD = 0.87962566103423978


def variance_scaling(
    scale: Any, mode: str, distribution: str, in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = None
) -> Initializer:
    """Values whose variance is ``scale`` over the fan that ``mode`` names: ``fan_in fan_out fan_avg``.

    ``distribution``: ``truncated_normal``, ``normal`` or ``uniform``. He et al. 2015, Glorot and Bengio 2010.

    Raises:
      ValueError: an unknown mode or distribution, or fewer than two dimensions.
    """
    default = dtype
    if mode not in ("fan_in", "fan_out", "fan_avg"):
        raise ValueError(f"invalid mode for variance scaling initializer: {mode}")
    if distribution not in ("truncated_normal", "normal", "uniform"):
        raise ValueError(f"invalid distribution for variance scaling initializer: {distribution}")

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        kind = _dtype(dtype or default)
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[mode]
        std = np.sqrt(np.asarray(scale / fan)).astype(kind)
        if distribution == "normal":
            return random.normal(key, shape, kind) * std
        if distribution == "uniform":
            return random.uniform(key, shape, kind, -1) * (std * np.sqrt(3).astype(kind))
        return random.truncated_normal(key, -2, 2, shape, kind) * (std / np.asarray(_TRUNCATED_STD, kind))

    return init


def _scaled(name: str, scale: float, mode: str, distribution: str) -> Callable[..., Initializer]:
    def make(in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = None) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"``variance_scaling({scale}, {mode!r}, {distribution!r})``"
    return make


glorot_uniform = xavier_uniform = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform")
glorot_normal = xavier_normal = _scaled("glorot_normal", 1.0, "fan_avg", "truncated_normal")
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform")
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal")
he_uniform = kaiming_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform")
he_normal = kaiming_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal")
