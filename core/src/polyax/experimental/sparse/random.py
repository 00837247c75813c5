"""Random sparse arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax import random
from polyax.api.vmap import vmap
from polyax.experimental.sparse.bcoo import BCOO


def random_bcoo(
    key: Any,
    shape: Sequence[int],
    *,
    dtype: Any = float,
    indices_dtype: Any = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Any] = random.uniform,
    **kwds: Any,
) -> BCOO:
    """A random ``BCOO``.

    Args:
      nse: how many elements are stored, or which share of the sparse dimensions.
      n_batch, n_dense: how many dimensions are batch and dense ones.
      unique_indices: whether indices differ.
      sorted_indices: whether they are in order.
      generator: ``(key, shape, dtype, **kwds) -> elements``.

    Raises:
      ValueError: there are no such dimensions, or not so many places.

    >>> random_bcoo(random.key(0), (4, 5), nse=3)
    BCOO(float32[4, 5], nse=3)
    """
    shape = tuple(map(operator.index, shape))
    n_batch, n_dense = operator.index(n_batch), operator.index(n_dense)
    if min(n_batch, n_dense) < 0 or n_batch + n_dense > len(shape):
        raise ValueError(f"Invalid {n_batch=}, {n_dense=} for {shape=}")
    batch, sizes, dense = shape[:n_batch], shape[n_batch : len(shape) - n_dense], shape[len(shape) - n_dense :]
    places = math.prod(sizes)
    if not 0 <= nse < places:
        raise ValueError(f"got {nse=}, expected to be between 0 and {places}")
    count = operator.index(math.ceil(nse * places) if 0 < nse < 1 else int(nse))
    indices_dtype = np.dtype(jnp.arange(0).dtype if indices_dtype is None else indices_dtype)
    if places > np.iinfo(indices_dtype).max:
        raise ValueError(f"{indices_dtype=} does not have enough range to generate sparse indices of size {places}.")

    def some(key: Any) -> Any:
        if not sizes:
            return jnp.zeros((count, 0), indices_dtype)
        flat = random.choice(key, places, shape=(count,), replace=not unique_indices).astype(indices_dtype)
        return jnp.stack(jnp.unravel_index(flat, sizes), -1).astype(indices_dtype)

    keys = random.split(key, math.prod(batch) + 1)
    data = generator(keys[0], shape=(*batch, count, *dense), dtype=dtype, **kwds)
    indices = vmap(some)(keys[1:]).reshape(*batch, count, len(sizes))
    mat = BCOO((data, indices), shape=shape)
    return mat.sort_indices() if sorted_indices else mat
