"""Products of operands that are kept in narrow types, with a scale for each block along the contracted dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.ops.basis import broadcast_in_dim, convert, mul, reshape
from polyax.ops.contract import dot_general

__all__ = ["scaled_dot"]

_DEFAULT = {2: (((1,), (0,)), ((), ())), 3: (((2,), (1,)), ((0,), (0,)))}


def scaled_dot(
    lhs: Any,
    rhs: Any,
    *,
    lhs_scale: Any = None,
    rhs_scale: Any = None,
    dimension_numbers: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """``(lhs * lhs_scale) @ (rhs * rhs_scale)``, where each scale stands for a block of its operand.

    Args:
      lhs_scale, rhs_scale: arrays of the rank of their operands and of the same sizes, but for contracted dimensions:
        those of the operand are multiples of theirs. None is 1.
      dimension_numbers: as of ``dot_general``; by default those of a product of matrices, or of batches of them.
      preferred_element_type: the type of scaled operands and of the result, ``bfloat16`` by default.

    Raises:
      ValueError: the rank is none that there is a default for.
      TypeError: a scale doesn't fit its operand.

    >>> import polyax.numpy as jnp
    >>> scale = jnp.array([[2.0, 1.0]])
    >>> scaled_dot(jnp.ones((1, 4)), jnp.ones((4, 1)), lhs_scale=scale, preferred_element_type="float32").item()
    6.0
    """
    if dimension_numbers is None and np.ndim(lhs) not in _DEFAULT:
        raise ValueError(f"scaled_dot needs dimension_numbers for operands of rank {np.ndim(lhs)}")
    numbers = dimension_numbers or _DEFAULT[np.ndim(lhs)]
    dtype = dtypes.canonicalize(preferred_element_type or dtypes.bfloat16)
    (lc, rc), _ = numbers
    left, right = _scaled("lhs", lhs, lhs_scale, lc, dtype), _scaled("rhs", rhs, rhs_scale, rc, dtype)
    return dot_general(left, right, numbers, preferred_element_type=dtype)


def _scaled(name: str, x: Any, scale: Any, contracting: Any, dtype: Any) -> Any:
    x = convert(x, dtype)
    if scale is None:
        return x
    have, want = np.shape(scale), np.shape(x)
    fits = len(have) == len(want) and all(
        n and m % n == 0 if d in contracting else n == m for d, (n, m) in enumerate(zip(have, want, strict=True))
    )
    if not fits:
        raise TypeError(
            f"scaled_dot: {name}_scale must have the sizes of {name}, or divide them along contracted dimensions "
            f"{tuple(contracting)}, but it is {aval_of(scale)} for {name} of shape {want}."
        )
    blocks = [size for n, m in zip(have, want, strict=True) for size in (n, m // n)]
    spread = broadcast_in_dim(convert(scale, dtype), blocks, range(0, 2 * len(want), 2))
    return mul(x, reshape(spread, want))
