"""Discrete cosine transforms of type 2 and their inverses, as ``jax.scipy.fft`` has them.

That of N numbers x is the real part of the Fourier transform of (x0 x2 x4 ... x5 x3 x1), turned by exp(-i pi k / 2N):
Makhoul, "A fast cosine transform in one and two dimensions" (1980).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.ir import dtypes
from polyax.numpy.promotion import canonicalize_axes, canonicalize_axis, inexact

__all__ = ["dct", "dctn", "idct", "idctn"]


def _checked(name: str, x: Any, type: int, norm: str | None) -> Any:
    if type != 2:
        raise NotImplementedError(f"Only {name} type 2 is implemented.")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"scipy.fft.{name}: norm={norm!r} is not implemented")
    return inexact(name, x)[0]


def _by_parts(transform: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: of complex numbers, the transforms of their parts."""

    @functools.wraps(transform)
    def call(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
        x = _checked(transform.__name__, x, type, norm)
        if dtypes.is_complex(x.dtype):
            return call(x.real, type, n, axis, norm) + 1j * call(x.imag, type, n, axis, norm)
        axis = canonicalize_axis(axis, x.ndim)
        x = jnp.moveaxis(x if n is None else _resized(x, n, axis), axis, -1)
        return jnp.moveaxis(transform(x, norm=norm), -1, axis)

    return call


def _resized(x: Any, n: int, axis: int) -> Any:
    """``x`` cut or padded with zeros to ``n`` numbers along an axis."""
    have = x.shape[axis]
    if n < 1:
        raise ValueError(f"invalid number of data points ({n}) specified")
    x = jnp.take(x, np.arange(min(n, have)), axis=axis)
    return jnp.pad(x, [(0, max(n - have, 0) if i == axis else 0) for i in range(x.ndim)])


@_by_parts
def dct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The cosine transform ``2 sum(x[j] cos(pi k (2j + 1) / 2N))`` along an axis.

    Args:
      x: real or complex.
      n: the length to which ``x`` is cut or padded first.
      norm: None or 'backward', or 'ortho' for an orthogonal transform.

    Raises:
      NotImplementedError: ``type`` isn't 2.
      ValueError: another ``norm``.

    >>> import numpy as np
    >>> print(dct(np.ones(2)))
    [4. 0.]
    """
    size = x.shape[-1]
    order = np.concatenate([np.arange(0, size, 2), np.arange(1, size, 2)[::-1]])
    value = jnp.real(jnp.fft.fft(x[..., order]) * _turns(size, -1, x.dtype)) * 2
    return value * _scales(size, x.dtype) if norm == "ortho" else value


@_by_parts
def idct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of ``dct`` along an axis, whose arguments it has."""
    size = x.shape[-1]
    x = (x / _scales(size, x.dtype) if norm == "ortho" else x) / 2
    mirrored = jnp.concatenate([jnp.zeros_like(x[..., :1]), x[..., :0:-1]], -1)
    turns = _turns(size, 1, x.dtype)
    spectrum = (x.astype(turns.dtype) - 1j * mirrored.astype(turns.dtype)) * turns
    value = jnp.real(jnp.fft.ifft(spectrum))
    order = np.concatenate([np.arange(0, size, 2), np.arange(1, size, 2)[::-1]])
    return value[..., np.argsort(order)]


def _turns(n: int, sign: int, dtype: Any) -> Any:
    return np.exp(sign * 0.5j * math.pi * np.arange(n) / n).astype(np.result_type(dtype, np.complex64))


def _scales(n: int, dtype: Any) -> Any:
    """By which the rows of the matrix are divided to have length 1."""
    return np.where(np.arange(n) == 0, math.sqrt(1 / (4 * n)), math.sqrt(1 / (2 * n))).astype(dtype)


def _over_axes(one: Any, x: Any, type: int, s: Sequence[int] | None, axes: Any, norm: str | None) -> Any:
    rank = jnp.ndim(x)
    if axes is None:
        axes = range(rank) if s is None else range(rank - len(s), rank)
    axes = canonicalize_axes(tuple(axes) if isinstance(axes, (Sequence, range)) else axes, rank)
    if s is not None and len(s) != len(axes):
        raise ValueError(f"`s` and `axes` must have the same length, got {len(s)} and {len(axes)}")
    for i, axis in enumerate(axes):
        x = one(x, type=type, n=None if s is None else s[i], axis=axis, norm=norm)
    return x


def dctn(
    x: Any, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Any:
    """The cosine transform along several axes (all by default).

    Args:
      s: the lengths to which these are cut or padded first.

    Raises:
      ValueError: ``s`` isn't as long as ``axes``.
    """
    return _over_axes(dct, x, type, s, axes, norm)


def idctn(
    x: Any, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Any:
    """The inverse of ``dctn``, whose arguments it has."""
    return _over_axes(idct, x, type, s, axes, norm)
