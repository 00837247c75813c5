"""Products of operands that are brought to narrow types block by block, forward and backward."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.api import linear_transpose
from polyax.control.calls.custom_vjp import custom_vjp
from polyax.ir import dtypes
from polyax.lax import lenient as lax


@dataclass(frozen=True, eq=False)
class BlockScaleConfig:
    """How numbers are kept: blocks of ``data_type`` along the contracted dimension, each with one number of
    ``scale_type`` that they are multiplied by, and all with ``global_scale``."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any | None
    infer_only: bool


def get_scaled_dot_general_config(mode: str, global_scale: Any = None) -> BlockScaleConfig:
    """The formats ``'mxfp8'`` (blocks of 32, scales that are powers of two) and ``'nvfp4'`` (blocks of 16).

    Args:
      global_scale: of ``nvfp4``, what all numbers are multiplied by; 1 by default.

    Raises:
      ValueError: ``mode`` is neither.

    >>> get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "nvfp4":
        scale = jnp.ones((1,), np.float32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, jnp.float4_e2m1fn, jnp.float8_e4m3fn, scale, False)
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, jnp.float8_e4m3fn, jnp.float8_e8m0fnu, None, False)
    raise ValueError(f"Unsupported mode: {mode}")


def scaled_dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    preferred_element_type: Any = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Any:
    """``lax.dot_general`` of operands that are rounded to narrow types block by block. So are those of the products
    that its derivatives consist of.

    Args:
      configs: for the product, for the derivative by ``lhs`` and for that by ``rhs``: see
        ``get_scaled_dot_general_config``; None: nothing is rounded.
      implementation: ignored.

    Raises:
      ValueError: there aren't three configs, or blocks don't divide the contracted dimension.

    >>> x = np.ones((1, 2, 32), np.float32)
    >>> configs = [get_scaled_dot_general_config("mxfp8")] * 3
    >>> import polyax
    >>> scaled_dot_general(x, x, (((2,), (2,)), ((0,), (0,))), configs=configs).tolist()
    [[[32.0, 32.0], [32.0, 32.0]]]
    """
    if implementation is not None:
        warnings.warn(
            "Backend selector, now ignored. The system chooses the backend automatically.", DeprecationWarning, 2
        )
    if configs is None:
        return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type)
    if len(configs) != 3:
        raise ValueError(f"scaled_dot_general: configs are for the product and its two derivatives, got {len(configs)}")
    numbers = tuple(tuple(tuple(map(int, d)) for d in part) for part in dimension_numbers)
    return _product(jnp.asarray(lhs), jnp.asarray(rhs), numbers, preferred_element_type, tuple(configs))


@functools.partial(custom_vjp, nondiff_argnums=(2, 3, 4))
def _product(lhs: Any, rhs: Any, numbers: Any, dtype: Any, configs: Any) -> Any:
    (left, right), _ = numbers
    lhs, rhs = _rounded(lhs, left, configs[0]), _rounded(rhs, right, configs[0])
    return lax.dot_general(lhs, rhs, numbers, preferred_element_type=dtype)


def _forward(lhs: Any, rhs: Any, numbers: Any, dtype: Any, configs: Any) -> Any:
    return _product(lhs, rhs, numbers, dtype, configs), (lhs, rhs)


def _backward(numbers: Any, dtype: Any, configs: Any, operands: Any, ct: Any) -> Any:
    """Each derivative is a product of the cotangent and the other operand, both rounded along what that contracts."""
    (left, right), (left_batch, right_batch) = numbers
    lhs, rhs = operands
    free = [n for n in range(lhs.ndim) if n not in (*left, *left_batch)]
    of_left, of_right = len(left_batch), len(left_batch) + len(free)
    by_left = (
        _rounded(ct, range(of_right, ct.ndim), configs[1]),
        _rounded(rhs, _free(rhs, right, right_batch), configs[1]),
    )
    by_right = _rounded(lhs, free, configs[2]), _rounded(ct, range(of_left, of_right), configs[2])
    product = functools.partial(lax.dot_general, dimension_numbers=numbers, preferred_element_type=dtype)
    from_left = _transposed(lambda x: product(x, by_left[1]), lhs, by_left[0])
    return from_left, _transposed(lambda y: product(by_right[0], y), rhs, by_right[1])


def _free(x: Any, contracting: Sequence[int], batch: Sequence[int]) -> list[int]:
    return [n for n in range(x.ndim) if n not in (*contracting, *batch)]


def _transposed(fun: Any, like: Any, ct: Any) -> Any:
    """The transpose of a linear function of something like ``like``, applied to ``ct``."""
    return linear_transpose(fun, like)(ct)[0].astype(like.dtype)


_product.defvjp(_forward, _backward)


# --- rounding


def _rounded(x: Any, axes: Sequence[int], config: BlockScaleConfig) -> Any:
    """``x`` as it is read again, if it is kept as ``config`` says; blocks go along the contracted dimensions."""
    axes = list(axes)
    rest = [n for n in range(x.ndim) if n not in axes]
    rows = lax.transpose(x, [*rest, *axes])
    shape, length = rows.shape, int(np.prod([x.shape[n] for n in axes]))
    if length % config.block_size:
        raise ValueError(
            f"scaled_dot_general: blocks of {config.block_size} ({config.mode}) don't divide contracted dimensions of "
            f"together {length}, of an operand of shape {x.shape}. Pad it with zeros."
        )
    blocks = lax.reshape(rows, (*(x.shape[n] for n in rest), length // config.block_size, config.block_size))
    made = lax.reshape(_blocks(blocks.astype(np.float32), config), shape)
    return lax.transpose(made, list(np.argsort([*rest, *axes]))).astype(x.dtype)


def _blocks(x: Any, config: BlockScaleConfig) -> Any:
    most = float(dtypes.finfo(np.dtype(config.data_type)).max)
    scale = jnp.max(jnp.abs(x), -1, keepdims=True) / most
    if config.mode == "mxfp8":
        scale = _power_above(scale)
    else:
        scale = scale / config.global_scale
        top = float(dtypes.finfo(np.dtype(config.scale_type)).max)
        scale = jnp.clip(scale, 0, top).astype(config.scale_type).astype(np.float32) * config.global_scale
    kept = jnp.clip(x / jnp.where(scale == 0, 1, scale), -most, most).astype(config.data_type)
    return kept.astype(np.float32) * scale


def _power_above(x: Any) -> Any:
    """The smallest power of two that isn't below ``x``; the least that a byte of exponent has for 0."""
    exponent = jnp.clip(jnp.ceil(jnp.log2(jnp.maximum(x, 2.0**-127))), -127, 127)
    return jnp.exp2(exponent)
