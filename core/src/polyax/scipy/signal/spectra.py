"""Spectra of signals: of segments of them (``stft`` and back), and averaged over these; signals without trends."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy.promotion import canonicalize_axis, inexact
from polyax.runtime.contract.tracebacks import warn_user
from polyax.scipy.signal.windows import window_of

__all__ = ["csd", "detrend", "istft", "stft", "welch"]


def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: None = None) -> Any:
    """``data`` without its mean or its linear trend along an axis.

    Args:
      type: 'linear' or 'constant'.
      bp: where the pieces begin that have a trend each.
      overwrite_data: must be None.

    Raises:
      ValueError: another ``type``, or pieces that begin beyond the end.
      NotImplementedError: ``overwrite_data`` is given.

    >>> print(detrend(np.array([1.0, 3.0]), type="constant"))
    [-1.  1.]
    """
    if overwrite_data is not None:
        raise NotImplementedError("overwrite_data argument not implemented.")
    if type not in ("constant", "linear"):
        raise ValueError("Trend type must be 'linear' or 'constant'")
    x = inexact("detrend", data)[0]
    axis = canonicalize_axis(axis, x.ndim)
    if type == "constant":
        return x - jnp.mean(x, axis, keepdims=True)
    x = jnp.moveaxis(x, axis, -1)
    n = x.shape[-1]
    ends = sorted({0, n, *(int(b) for b in np.atleast_1d(bp))})
    if ends[-1] > n or ends[0] < 0:
        raise ValueError("Breakpoints must be non-negative and less than length of data along given axis.")
    pieces = [_without_line(x[..., a:b]) for a, b in pairwise(ends)]
    return jnp.moveaxis(jnp.concatenate(pieces, -1), -1, axis)


def _without_line(x: Any) -> Any:
    """What is left of the numbers after their best line."""
    n = x.shape[-1]
    t = (np.arange(n) - (n - 1) / 2).astype(x.dtype)
    slope = jnp.sum(x * t, -1, keepdims=True) / max(float(np.sum(t.real**2)), 1e-30)
    return x - jnp.mean(x, -1, keepdims=True) - slope * t


# --- segments --------------------------------------------------------------------------------------------------------


def _extended(x: Any, reach: int, boundary: str | None) -> Any:
    """``x`` continued at both ends of its last axis."""
    if boundary is None:
        return x
    if boundary not in ("even", "odd", "constant", "zeros"):
        raise ValueError(f"Unknown boundary option '{boundary}', must be one of: even, odd, constant, zeros or None")
    if boundary in ("even", "odd") and x.shape[-1] <= reach:
        raise ValueError(f"the signal has {x.shape[-1]} samples, too few for boundary={boundary!r} of {reach}")
    if boundary in ("zeros", "constant"):
        widths = [(0, 0)] * (x.ndim - 1) + [(reach, reach)]
        return jnp.pad(x, widths, mode="constant" if boundary == "zeros" else "edge")
    left, right = x[..., 1 : reach + 1][..., ::-1], x[..., -reach - 1 : -1][..., ::-1]
    if boundary == "odd":
        left, right = 2 * x[..., :1] - left, 2 * x[..., -1:] - right
    return jnp.concatenate([left, x, right], -1)


def _sizes(
    length: int, window: Any, nperseg: int | None, noverlap: int | None, nfft: int | None
) -> tuple[Any, int, int, int]:
    """The window's numbers, the length of segments, how far they overlap, and that of their transforms."""
    named = isinstance(window, (str, tuple))
    if nperseg is not None and nperseg < 1:
        raise ValueError("nperseg must be a positive integer")
    size = int(nperseg or (256 if named else window.shape[0]))
    if named and nperseg is not None and size > length:
        warn_user(f"nperseg={size} is greater than input_length={length}, using nperseg={length}", UserWarning)
    size = min(size, length) if named else size
    if size > length:
        raise ValueError(f"window is longer than input signal: {size} > {length}")
    overlap = size // 2 if noverlap is None else int(noverlap)
    transform = size if nfft is None else int(nfft)
    if overlap >= size:
        raise ValueError(f"noverlap must be less than nperseg, got {overlap} and {size}")
    if transform < size:
        raise ValueError(f"nfft must be greater than or equal to nperseg, got {transform} and {size}")
    return window_of(window, size), size, overlap, transform


def _segments(x: Any, size: int, step: int) -> Any:
    """Overlapping pieces of the last axis, in a new one."""
    count = (x.shape[-1] - size) // step + 1
    return x[..., np.arange(count)[:, None] * step + np.arange(size)]


Detrend = Callable[[Any], Any]


def _detrending(detrend_by: Any) -> Detrend:
    if not detrend_by:
        return lambda x: x
    return detrend_by if callable(detrend_by) else lambda x: detrend(x, axis=-1, type=detrend_by)


def _transforms(x: Any, window: Any, step: int, nfft: int, trend: Detrend, onesided: bool) -> Any:
    pieces = trend(_segments(x, window.shape[0], step)) * jnp.asarray(window).astype(x.dtype)
    return jnp.fft.rfft(pieces.real, nfft) if onesided else jnp.fft.fft(pieces, nfft)


def _has_one_side(asked: bool, x: Any) -> bool:
    """Whether frequencies below 0 say nothing new, of signals of one dtype."""
    if asked and dtypes.is_complex(x.dtype):
        warn_user("Input data is complex, switching to return_onesided=False", UserWarning)
        return False
    return asked


def _frequencies(nfft: int, fs: Any, onesided: bool) -> Any:
    """As a constant of the common precision."""
    plain = np.fft.rfftfreq(nfft) if onesided else np.fft.fftfreq(nfft)
    return jnp.asarray(plain.astype(dtypes.canonicalize(np.float64))) * fs


def stft(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Any, Any, Any]:
    """The Fourier transforms of overlapping segments of a signal.

    Args:
      fs: samples in a unit of time.
      window: its name, or its numbers.
      nperseg, noverlap: the length of segments, and how far they overlap (half of it by default).
      nfft: the length to which they are padded with zeros.
      detrend: False, 'constant', 'linear', or a function of segments.
      return_onesided: whether frequencies below 0 are left out, for real signals.
      boundary: how the signal goes on at its ends: 'zeros', 'constant', 'even', 'odd', or None.
      padded: whether zeros fill up the last segment.

    Returns:
      Frequencies, times, and the transforms, with the frequencies in the place of ``axis`` and the segments last.

    Raises:
      ValueError: lengths that don't fit, or a window whose name isn't known here.
    """
    x = inexact("stft", x)[0]
    axis = canonicalize_axis(axis, x.ndim)
    x = jnp.moveaxis(x, axis, -1)
    numbers, size, overlap, transform = _sizes(x.shape[-1], window, nperseg, noverlap, nfft)
    step, onesided = size - overlap, _has_one_side(return_onesided, x)
    x = _extended(x, size // 2, boundary)
    if padded:
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -(x.shape[-1] - size) % step % size)])
    found = _transforms(x, numbers, step, transform, _detrending(detrend), onesided)
    found = found / jnp.abs(jnp.sum(numbers)).astype(found.dtype)
    times = (np.arange(found.shape[-2]) * step + size / 2) - (size / 2 if boundary else 0)
    times = jnp.asarray(times.astype(dtypes.canonicalize(np.float64))) / fs
    return _frequencies(transform, fs, onesided), times, jnp.moveaxis(found, -1, axis)


def istft(
    Zxx: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Any, Any]:
    """The signal whose ``stft`` is ``Zxx``, by adding up its segments.

    Args:
      fs, window, nperseg, noverlap, nfft: as they were for ``stft``.
      input_onesided: whether frequencies below 0 were left out.
      boundary: whether the signal was continued at its ends, which are cut off then.
      time_axis, freq_axis: where the segments and the frequencies are.

    Returns:
      Times and the signal.

    Raises:
      ValueError: lengths that don't fit, one axis given twice, or a window whose name isn't known here.
    """
    z = inexact("istft", Zxx)[0]
    z = z if dtypes.is_complex(z.dtype) else lax.complex(z, lax.full_like(z, 0))
    if z.ndim < 2:
        raise ValueError("Input stft must be at least 2d!")
    places = canonicalize_axis(freq_axis, z.ndim), canonicalize_axis(time_axis, z.ndim)
    if places[0] == places[1]:
        raise ValueError("Must specify differing time and frequency axes!")
    z = jnp.moveaxis(z, places, (-1, -2))
    default = 2 * (z.shape[-1] - 1) if input_onesided else z.shape[-1]
    size = default if nperseg is None else int(nperseg)
    transform = (size if size == default + 1 else default) if nfft is None else int(nfft)
    if transform < size:
        raise ValueError(f"nfft must be greater than or equal to nperseg, got {transform} and {size}")
    overlap = size // 2 if noverlap is None else int(noverlap)
    if overlap >= size:
        raise ValueError(f"noverlap must be less than nperseg, got {overlap} and {size}")
    numbers = jnp.asarray(window_of(window, size)).astype(z.real.dtype)
    pieces = (jnp.fft.irfft(z, transform) if input_onesided else jnp.fft.ifft(z, transform))[..., :size]
    signal = _added(pieces * (numbers * jnp.sum(numbers)), size - overlap)
    weight = _added(jnp.broadcast_to(numbers * numbers, (z.shape[-2], size)), size - overlap)
    if boundary:
        signal, weight = signal[..., size // 2 : -(size // 2)], weight[size // 2 : -(size // 2)]
    signal = signal / jnp.where(weight > 1e-10, weight, 1.0)
    order = min(places)
    times = jnp.asarray(np.arange(signal.shape[-1]).astype(dtypes.canonicalize(np.float64))) / fs
    return times, jnp.moveaxis(signal, -1, min(order, signal.ndim - 1))


def _added(pieces: Any, step: int) -> Any:
    """The sum of pieces that overlap."""
    count, size = pieces.shape[-2:]
    places = np.arange(count)[:, None] * step + np.arange(size)
    return jnp.zeros((*pieces.shape[:-2], (count - 1) * step + size), pieces.dtype).at[..., places].add(pieces)


# --- averages --------------------------------------------------------------------------------------------------------


def csd(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """The cross spectrum of two signals, averaged over overlapping segments (Welch's method).

    Args:
      y: the other signal; None for ``x`` itself, whose spectrum is real.
      scaling: 'density' (a unit of frequency) or 'spectrum'.
      average: 'mean' or 'median'.
      fs, window, nperseg, noverlap, nfft, detrend, return_onesided: as of ``stft``.

    Returns:
      Frequencies, and the spectrum along ``axis``.

    Raises:
      ValueError: another ``scaling`` or ``average``, lengths that don't fit, or a window whose name isn't known here.
    """
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"Unknown scaling: {scaling!r}")
    if average not in ("mean", "median"):
        raise ValueError(f"average must be 'median' or 'mean', got {average}")
    itself = y is None
    alone = itself or y is x
    x, y = inexact("csd", x, x if alone else y)
    if x.size == 0 or y.size == 0:
        return (jnp.zeros(lax.broadcast_shapes(x.shape, y.shape), x.real.dtype),) * 2
    length = max(x.shape[axis], y.shape[axis])
    signals = [_lengthened(jnp.moveaxis(s, axis, -1), length) for s in (x, y)]
    numbers, size, overlap, transform = _sizes(length, window, nperseg, noverlap, nfft)
    onesided = _has_one_side(return_onesided, x)
    trend, step = _detrending(detrend), size - overlap
    parts = [_transforms(s, numbers, step, transform, trend, onesided) for s in signals[: 1 if alone else 2]]
    product = (jnp.abs(parts[0]) ** 2).astype(parts[0].dtype) if alone else jnp.conj(parts[0]) * parts[1]
    total = fs * jnp.sum(numbers**2) if scaling == "density" else jnp.sum(numbers) ** 2
    if onesided:
        doubled = np.full(product.shape[-1], 2.0)
        doubled[[0] if transform % 2 else [0, -1]] = 1.0
        product = product * doubled.astype(product.dtype)
    spectrum = _average(product / jnp.asarray(total).astype(product.dtype), average)
    spectrum = spectrum.real if itself else spectrum
    return _frequencies(transform, fs, onesided), jnp.moveaxis(spectrum, -1, canonicalize_axis(axis, x.ndim))


def _lengthened(x: Any, length: int) -> Any:
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, length - x.shape[-1])])


def _average(segments: Any, by: str) -> Any:
    """Over the segments; a median is divided by its bias for exponentially distributed numbers."""
    if by == "mean":
        return jnp.mean(segments, -2)
    k = 2 * np.arange(1, (segments.shape[-2] - 1) // 2 + 1)
    bias = 1 + float(np.sum(1 / (k + 1) - 1 / k))
    return lax.complex(jnp.median(segments.real, -2), jnp.median(segments.imag, -2)) / bias


def welch(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """The power spectrum of a signal, averaged over overlapping segments; arguments and errors as of ``csd``."""
    frequencies, power = csd(
        x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average
    )
    return frequencies, power
