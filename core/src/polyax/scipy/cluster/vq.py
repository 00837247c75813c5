"""Vector quantisation."""

from __future__ import annotations

from typing import Any

from polyax import numpy as jnp
from polyax.numpy.promotion import inexact

__all__ = ["vq"]


def vq(obs: Any, code_book: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """Which code is nearest to each observation, and how far it is.

    Args:
      obs, code_book: vectors in the rows of matrices; or numbers.
      check_finite: means nothing here.

    Raises:
      ValueError: they differ in rank or in the length of their vectors, or have more than two axes.

    >>> import numpy as np
    >>> code, distance = vq(np.array([[0.0, 1.0]]), np.array([[5.0, 5.0], [0.0, 0.0]]))
    >>> print(code, distance)
    [1] [1.]
    """
    obs, book = inexact("vq", obs, code_book)
    if obs.ndim != book.ndim:
        raise ValueError(f"Observation and code_book should have the same rank, got shapes {obs.shape}, {book.shape}")
    if obs.ndim not in (1, 2):
        raise ValueError(f"ndim different than 1 or 2 are not supported, got shape {obs.shape}")
    if obs.ndim == 1:
        obs, book = obs[:, None], book[:, None]
    if obs.shape[1] != book.shape[1]:
        raise ValueError(f"vectors differ in length: shapes {obs.shape} and {book.shape}")
    squares = jnp.sum((obs[:, None, :] - book[None, :, :]) ** 2, -1)
    code = jnp.argmin(squares, -1)
    return code, jnp.sqrt(jnp.take_along_axis(squares, code[:, None], -1)[:, 0])
