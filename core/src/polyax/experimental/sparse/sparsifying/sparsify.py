"""``sparsify``: functions written for dense arrays, of sparse ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from polyax.experimental.sparse.sparsifying import elementwise as _elementwise  # noqa: F401  (defines rules)
from polyax.experimental.sparse.sparsifying import programs as _programs  # noqa: F401
from polyax.experimental.sparse.sparsifying import structural as _structural  # noqa: F401
from polyax.experimental.sparse.sparsifying.interpreter import interpreted
from polyax.experimental.sparse.sparsifying.tracer import traced


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """``f`` as a function of sparse arrays.

    Args:
      f: a function of pytrees of arrays, made of ``polyax.numpy`` and ``polyax.lax``.
      use_tracer: whether ``f`` runs directly on the sparse arrays, instead of being traced first.

    Returns:
      A function that takes ``BCOO`` and ``BCSR`` in place of arrays, and gives them where its results are sparse.

    Raises:
      NotImplementedError: when called, if ``f`` does what would give dense results, or is not known for sparse ones.

    >>> import polyax.numpy as jnp
    >>> from polyax.experimental import sparse
    >>> mat = sparse.BCOO.fromdense(jnp.arange(12).reshape(3, 4))
    >>> sparsify(lambda M, v: 2 * M.T @ v)(mat, jnp.array([3, 4, 2])).tolist()
    [64, 82, 100, 118]
    """
    return functools.wraps(f, updated=())((traced if use_tracer else interpreted)(f))
