"""Products of which one side or both are ``BCOO``."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.experimental.sparse.bcoo import BCOO
from polyax.experimental.sparse.layout import dot_dims
from polyax.experimental.sparse.products import (
    bcoo_dot_general_p,
    bcoo_spdot_general_p,
    dense_result,
    sampled,
)
from polyax.lax import lenient as lax


def bcoo_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """``lax.dot_general`` of sparse and dense arrays.

    Args:
      lhs, rhs: arrays, dense or ``BCOO``.
      dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``.
      precision, out_sharding: without effect.
      preferred_element_type: the dtype of the result.

    Returns:
      A ``BCOO`` if both are, else a dense array.

    Raises:
      NotImplementedError: dense dimensions are summed over, or batch dimensions aren't those of the storage.

    >>> mat = BCOO.fromdense(np.eye(2, dtype=np.float32))
    >>> bcoo_dot_general(mat, np.ones(2, np.float32), dimension_numbers=(((1,), (0,)), ((), ()))).tolist()
    [1.0, 1.0]
    """
    dims = dot_dims(dimension_numbers)
    dtype = None if preferred_element_type is None else np.dtype(preferred_element_type)
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        of = (lhs.shape, lhs.dtype), (rhs.shape, rhs.dtype)
        shape = dense_result(*of, dims, dtype).shape
        infos = {"lhs_spinfo": lhs._info, "rhs_spinfo": rhs._info}
        params = {"dimension_numbers": dims, "preferred_element_type": dtype, **infos}
        return BCOO(bcoo_spdot_general_p.bind(*lhs._bufs, *rhs._bufs, **params), shape=shape)
    if isinstance(lhs, BCOO):
        return _with_dense(lhs, rhs, dims, dtype)
    if isinstance(rhs, BCOO):
        return _dense_with(lhs, rhs, dims, dtype)
    return lax.dot_general(lhs, rhs, dimension_numbers=dims, preferred_element_type=dtype)


def _with_dense(lhs: BCOO, rhs: Any, dims: Any, dtype: Any) -> Any:
    params = {"dimension_numbers": dims, "preferred_element_type": dtype, "lhs_spinfo": lhs._info}
    return bcoo_dot_general_p.bind1(*lhs._bufs, jnp.asarray(rhs), **params)


def _dense_with(lhs: Any, rhs: BCOO, dims: Any, dtype: Any) -> Any:
    """The other way round, with the dimensions of the result put back."""
    (left, right), (lhs_batch, rhs_batch) = dims
    result = _with_dense(rhs, lhs, ((right, left), (rhs_batch, lhs_batch)), dtype)
    n_batch, of_rhs = len(lhs_batch), rhs.ndim - len(right)
    return lax.transpose(result, (*range(n_batch), *range(of_rhs, result.ndim), *range(n_batch, of_rhs)))


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Any:
    """The elements of ``lax.dot_general(A, B)`` at the indices of a ``BCOO``, alone.

    Returns:
      What a ``BCOO`` with these indices has as ``data``.

    >>> bcoo_dot_general_sampled(np.arange(3.), np.ones(2), np.array([[2, 0]]),
    ...                          dimension_numbers=(((), ()), ((), ()))).tolist()
    [2.0]
    """
    return sampled(jnp.asarray(A), jnp.asarray(B), jnp.asarray(indices), dot_dims(dimension_numbers))
