"""Convolutions and correlations of arrays of any rank, directly or by Fourier transforms."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy.promotion import canonicalize_axes, inexact

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve"]

_MODES = ("full", "same", "valid")


def _pair(name: str, x: Any, y: Any, mode: str) -> tuple[Any, Any]:
    if mode not in _MODES:
        raise ValueError(f"{name}: mode must be one of ['full', 'same', 'valid']; got {mode!r}")
    x, y = inexact(name, x, y)
    if x.ndim != y.ndim:
        raise ValueError(f"{name}: in1 and in2 must have the same number of dimensions, got {x.ndim} and {y.ndim}")
    if x.size == 0 or y.size == 0:
        raise ValueError(f"{name}: zero-size arrays not supported, got shapes {x.shape} and {y.shape}")
    return x, y


def _by_size(x: Any, y: Any, axes: Sequence[int]) -> tuple[Any, Any]:
    """The larger array first."""
    if all(x.shape[i] >= y.shape[i] for i in axes):
        return x, y
    if all(x.shape[i] <= y.shape[i] for i in axes):
        return y, x
    raise ValueError(
        f"One input must be smaller than the other in every dimension, got shapes {x.shape} and {y.shape}."
    )


def _centre(full: Any, shape: Sequence[int]) -> Any:
    starts = [(have - n) // 2 for have, n in zip(full.shape, shape, strict=True)]
    return lax.slice(full, starts, [s + n for s, n in zip(starts, shape, strict=True)])


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None) -> Any:
    """The convolution of two arrays of one rank.

    Args:
      mode: 'full', 'same' (the centre, of the shape of ``in1``), or 'valid' (without what reaches beyond the edges).
      method: 'direct' (also for 'auto') or 'fft'.
      precision: of the products.

    Raises:
      ValueError: another mode or method, or shapes that don't fit.

    >>> print(convolve(np.array([1.0, 2.0]), np.array([1.0, 1.0])))
    [1. 3. 2.]
    """
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    if method not in ("auto", "direct"):
        raise ValueError(f"Got {method=}; expected 'auto', 'fft', or 'direct'.")
    x, y = _pair("convolve", in1, in2, mode)
    if x.ndim == 0:
        return x * y
    wanted = x.shape
    x, y = _by_size(x, y, range(x.ndim))
    reach = [(n - 1, n - 1) if mode != "valid" else (0, 0) for n in y.shape]
    full = lax.conv_general_dilated(x[None, None], jnp.flip(y)[None, None], (1,) * x.ndim, reach, precision=precision)[
        0, 0
    ]
    return _centre(full, wanted) if mode == "same" else full


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None) -> Any:
    """The convolution with ``in2`` mirrored and conjugated, whose arguments are those of ``convolve``.

    >>> print(correlate(np.array([1.0, 2.0]), np.array([0.0, 1.0])))
    [1. 2. 0.]
    """
    return convolve(in1, jnp.flip(jnp.conj(jnp.asarray(in2))), mode, method, precision)


def _plane(name: str, in1: Any, in2: Any, boundary: str, fillvalue: Any) -> None:
    if boundary != "fill" or (np.ndim(fillvalue) == 0 and fillvalue != 0):
        raise NotImplementedError(f"{name}() only supports boundary='fill', fillvalue=0")
    if jnp.ndim(in1) != 2 or jnp.ndim(in2) != 2:
        raise ValueError(f"{name}() only supports 2-dimensional inputs, got {jnp.ndim(in1)} and {jnp.ndim(in2)}")


def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0, precision: Any = None
) -> Any:
    """The convolution of two matrices, with zeros around them.

    Raises:
      NotImplementedError: another ``boundary`` than 'fill', or another ``fillvalue`` than 0.
      ValueError: the arrays aren't matrices.
    """
    _plane("convolve2d", in1, in2, boundary, fillvalue)
    return convolve(in1, in2, mode, "direct", precision)


def correlate2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0, precision: Any = None
) -> Any:
    """The correlation of two matrices, with zeros around them; errors as of ``convolve2d``."""
    _plane("correlate2d", in1, in2, boundary, fillvalue)
    if mode == "same":  # of an even kernel, the later of both middles
        return jnp.flip(convolve(jnp.flip(jnp.asarray(in1)), jnp.conj(jnp.asarray(in2)), mode, "direct", precision))
    found = correlate(in1, in2, mode, "direct", precision)
    return jnp.conj(found) if mode == "valid" and jnp.size(in1) < jnp.size(in2) else found  # as SciPy


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Sequence[int] | int | None = None) -> Any:
    """The convolution along axes (all by default) by Fourier transforms; along others the arrays have the same sizes.

    Raises:
      ValueError: another mode, or shapes that don't fit.
    """
    x, y = _pair("fftconvolve", in1, in2, mode)
    if x.ndim == 0:
        return x * y
    given = axes if axes is None or isinstance(axes, Sequence) else (operator.index(axes),)
    places = canonicalize_axes(None if given is None else tuple(given), x.ndim)
    others = [i for i in range(x.ndim) if i not in places]
    if any(x.shape[i] != y.shape[i] for i in others):
        raise ValueError(
            f"fftconvolve: mapped axes must have same shape; got in1.shape={x.shape} in2.shape={y.shape} axes={places}"
        )
    wanted: Sequence[int] = x.shape
    if mode == "valid":
        x, y = _by_size(x, y, places)
        wanted = [x.shape[i] - y.shape[i] + 1 if i in places else n for i, n in enumerate(wanted)]
    sizes = [x.shape[i] + y.shape[i] - 1 for i in places]
    if dtypes.is_complex(x.dtype):
        full = jnp.fft.ifftn(jnp.fft.fftn(x, sizes, places) * jnp.fft.fftn(y, sizes, places), sizes, places)
    else:
        full = jnp.fft.irfftn(jnp.fft.rfftn(x, sizes, places) * jnp.fft.rfftn(y, sizes, places), sizes, places)
    return full.astype(x.dtype) if mode == "full" else _centre(full, wanted).astype(x.dtype)
