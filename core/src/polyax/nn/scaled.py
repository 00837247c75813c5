"""Products of operands that are kept in narrow types, with a scale for each block."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.lax import lenient as lax

__all__ = ["scaled_matmul"]


def scaled_matmul(
    lhs: Any, rhs: Any, lhs_scales: Any, rhs_scales: Any, preferred_element_type: Any = np.float32
) -> Any:
    """For each example of a batch ``lhs rhs^T``, where each scale stands for a block of the last dimension.

    Args:
      lhs: ``[batch, m, k]``.
      rhs: ``[batch, n, k]``.
      lhs_scales, rhs_scales: ``[batch, m, blocks]`` and ``[batch, n, blocks]``; ``blocks`` divides ``k``.
      preferred_element_type: what is computed in, and the type of the result.

    Returns:
      An array ``[batch, m, n]``.

    Raises:
      ValueError: shapes don't belong together.

    >>> x, scales = np.ones((1, 2, 4), np.float32), np.full((1, 2, 2), 0.5, np.float32)
    >>> scaled_matmul(x, x, scales, scales).tolist()
    [[[1.0, 1.0], [1.0, 1.0]]]
    """
    x, y, xs, ys = (jnp.asarray(v) for v in (lhs, rhs, lhs_scales, rhs_scales))
    if any(v.ndim != 3 for v in (x, y, xs, ys)):
        shapes = ", ".join(str(v.shape) for v in (x, y, xs, ys))
        raise ValueError(f"scaled_matmul requires all inputs to be 3-dimensional arrays, got shapes {shapes}")
    if (x.shape[0], x.shape[2]) != (y.shape[0], y.shape[2]):
        raise ValueError(
            f"scaled_matmul requires inputs a and b to have matching batch (B) and contract (K) dimensions, but got "
            f"shapes {x.shape} and {y.shape}"
        )
    if (xs.shape[0], xs.shape[2]) != (ys.shape[0], ys.shape[2]):
        raise ValueError(
            "scaled_matmul requires scales to have matching batch (B) and contract (K) dimensions, but got shapes "
            f"{xs.shape} and {ys.shape}"
        )
    for operand, scales in ((x, xs), (y, ys)):
        if operand.shape[:2] != scales.shape[:2] or not scales.shape[2] or operand.shape[2] % scales.shape[2]:
            raise ValueError(
                f"scaled_matmul requires scales to have the sizes of their operand, of shape {operand.shape}, and to "
                f"divide its last dimension, but got {scales.shape}"
            )
    return lax.scaled_dot(
        x,
        y,
        lhs_scale=xs,
        rhs_scale=ys,
        dimension_numbers=(((2,), (2,)), ((0,), (0,))),
        preferred_element_type=preferred_element_type,
    )
