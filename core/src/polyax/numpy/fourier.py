"""Discrete Fourier transforms, as ``numpy.fft`` defines them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.dims import dim_index, is_symbolic_dim
from polyax.lax import lenient as lax
from polyax.numpy.promotion import (
    as_array,
    canonical_dtype,
    canonicalize_axes,
    canonicalize_axis,
    check_arraylike,
    convert,
    ensure_array,
    inexact,
    to_complex,
    unwrap,
)
from polyax.numpy.shapes import moveaxis, roll
from polyax.numpy.ufuncs import conj
from polyax.ops.basis import named

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_NORMS = ("backward", "ortho", "forward")


def _transform(name: str, a: Any, s: Any, axes: Any, norm: str | None) -> Any:
    """One transform over several axes; ``s`` are the lengths, which cut the input or fill it with zeros."""
    norm = norm or "backward"
    if norm not in _NORMS:
        raise ValueError(f"Invalid norm value {norm}; should be None, 'backward', 'ortho' or 'forward'.")
    a = inexact(f"jnp.fft.{name}", a)[0]
    kind = name.rstrip("2n").upper()
    if kind == "RFFT":
        if a.dtype in dtypes.COMPLEX:
            raise ValueError(f"only real valued inputs supported for {name}")
    else:
        a = convert(a, to_complex(a.dtype))
    axes = _checked_axes(a.ndim, s, axes)
    if not axes:
        return a
    lengths = _lengths(a, s, axes, kind == "IRFFT")
    moved = _resized(moveaxis(a, axes, tuple(range(a.ndim - len(axes), a.ndim))), lengths, kind)
    shape = (*moved.shape[: a.ndim - len(axes)], *_transformed(lengths, kind))
    result = lax.full(shape, 0, _result_dtype(a, kind)) if 0 in shape else _in_threes(moved, kind, lengths)
    result = moveaxis(result, tuple(range(a.ndim - len(axes), a.ndim)), axes)
    return _scaled(result, norm, math.prod(lengths), kind)


def _checked_axes(ndim: int, s: Any, axes: Any) -> tuple[int, ...]:
    if axes is None:
        axes = range(ndim) if s is None else range(ndim - len(s), ndim)
    axes = canonicalize_axes(tuple(axes), ndim)
    if s is not None and len(s) != len(axes):
        raise ValueError(f"s and axes must have the same length, got {s} and {axes}")
    return axes


def _lengths(a: Any, s: Any, axes: tuple[int, ...], from_half: bool) -> tuple[int, ...]:
    """Lengths of the transforms: those of ``s``, else of the input; a half spectrum has that of the full signal."""
    if s is not None:
        lengths = tuple(map(operator.index, s))
    else:
        lengths = tuple(a.shape[i] for i in axes)
        if from_half:
            lengths = (*lengths[:-1], max(0, 2 * (lengths[-1] - 1)))
    if s is not None and any(n < 1 for n in lengths):
        raise ValueError(f"Shape should be non-negative: got invalid number of data points {lengths}")
    return lengths


def _transformed(lengths: tuple[int, ...], kind: str) -> tuple[int, ...]:
    """The sizes of the result; of no numbers, there is no half of a spectrum."""
    return (*lengths[:-1], lengths[-1] // 2 + 1) if kind == "RFFT" else lengths


def _result_dtype(a: Any, kind: str) -> Any:
    return a.real.dtype if kind == "IRFFT" else to_complex(a.dtype)


def _resized(a: Any, lengths: tuple[int, ...], kind: str) -> Any:
    wanted = list(lengths)
    if kind == "IRFFT":
        wanted[-1] = wanted[-1] // 2 + 1
    first = a.ndim - len(wanted)
    for i, n in enumerate(wanted, first):
        a = lax.slice_in_dim(a, 0, n, axis=i) if a.shape[i] > n else a
    missing = [(0, 0, 0)] * first + [(0, n - a.shape[first + i], 0) for i, n in enumerate(wanted)]
    return lax.pad(a, a.dtype.type(0), missing) if any(high for _, high, _ in missing) else a


def _in_threes(a: Any, kind: str, lengths: tuple[int, ...]) -> Any:
    """The primitive takes up to three axes; the others are transformed before or after it."""
    if len(lengths) <= 3:
        return lax.fft(a, lax.FftType[kind], lengths)
    outer, inner = lengths[:-3], lengths[-3:]
    full = "IFFT" if kind.startswith("I") else "FFT"
    if not kind.startswith("I"):
        a = lax.fft(a, lax.FftType[kind], inner)
    positions = tuple(range(a.ndim - len(lengths), a.ndim - 3))
    last = tuple(range(a.ndim - len(outer), a.ndim))
    a = moveaxis(_in_threes(moveaxis(a, positions, last), full, outer), last, positions)
    return lax.fft(a, lax.FftType[kind], inner) if kind.startswith("I") else a


def _scaled(a: Any, norm: str, size: int, kind: str) -> Any:
    """The inverse is divided by the size; 'ortho' shares that between both directions, 'forward' turns it round."""
    if norm == "backward":
        return a
    factor = math.sqrt(size) if norm == "ortho" else float(size)
    if kind.startswith("I"):
        return lax.mul(a, factor)
    return lax.div(a, factor)


def _one(n: Any) -> Any:
    return None if n is None else (n,)


def _axis(name: str, axis: Any) -> tuple[int] | None:
    """The axis as those of a transform along several; without one, all are meant."""
    if isinstance(axis, Sequence):
        raise ValueError(
            f"jax.numpy.fft.{name} does not support multiple axes. Please use jax.numpy.fft.{name}n. Got axis = "
            f"{axis!r}."
        )
    return None if axis is None else (operator.index(axis),)


def _two(name: str, axes: Any) -> Any:
    if len(axes) != 2:
        raise ValueError(f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {axes!r}.")
    return axes


def _over_one(name: str, doc: str) -> Callable[..., Any]:
    def transform(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
        return _transform(name, a, _one(n), _axis(name, axis), norm)

    return named(transform, name, doc)


def _over_several(name: str, doc: str) -> Callable[..., Any]:
    def transform(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
        return _transform(name, a, s, axes, norm)

    return named(transform, name, doc)


def _over_two(name: str, doc: str) -> Callable[..., Any]:
    def transform(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Any:
        return _transform(name, a, s, _two(name, axes), norm)

    return named(transform, name, doc)


fft = _over_one(
    "fft", "The transform of complex numbers along ``axis``, of length ``n``: X[k] = sum x[j] exp(-2 pi i j k / n)."
)
ifft = _over_one("ifft", "The inverse of ``fft``.")
rfft = _over_one("rfft", "The first half (n // 2 + 1) of the transform of real numbers.")
irfft = _over_one("irfft", "The inverse of ``rfft``, with ``n`` real numbers, by default an even number.")
fftn = _over_several("fftn", "``fft`` over several axes, all by default.")
ifftn = _over_several("ifftn", "The inverse of ``fftn``.")
rfftn = _over_several("rfftn", "``rfft`` over the last of several axes and ``fft`` over the others.")
irfftn = _over_several("irfftn", "The inverse of ``rfftn``.")
fft2 = _over_two("fft2", "``fftn`` over two axes.")
ifft2 = _over_two("ifft2", "``ifftn`` over two axes.")
rfft2 = _over_two("rfft2", "``rfftn`` over two axes.")
irfft2 = _over_two("irfft2", "``irfftn`` over two axes.")

_OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The real transform of a Hermitian signal, given by its first half."""
    return irfft(conj(a), n, axis, _OPPOSITE.get(norm, norm))


def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of ``hfft``."""
    return conj(rfft(a, n, axis, _OPPOSITE.get(norm, norm)))


# --- frequencies ------------------------------------------------------------------------------------------------------


def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of ``fft`` of ``n`` samples at distances ``d``: 0, 1, ..., -2, -1 over n d.

    Raises:
      TypeError: ``n`` is no integer, or ``d`` no number.
      ValueError: one of them is a sequence.

    >>> import polyax.numpy as jnp
    >>> jnp.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    kind, n = canonical_dtype(dtype, np.float64), _samples("fftfreq", n, d)
    if is_symbolic_dim(n):
        counts = lax.iota(kind, n)
        half, whole = (convert(unwrap(k), kind) for k in ((n + 1) // 2, n))
        counts = lax.select(lax.lt(counts, half), counts, lax.sub(counts, whole))
        return lax.div(counts, convert(d, kind) * n)
    counts = np.concatenate([np.arange((n + 1) // 2), np.arange(-(n // 2), 0)]).astype(kind)
    return lax.div(as_array(counts), convert(d, kind) * n)


def rfftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of ``rfft``."""
    kind, n = canonical_dtype(dtype, np.float64), _samples("rfftfreq", n, d)
    return lax.div(lax.iota(kind, n // 2 + 1), convert(d, kind) * n)


def _samples(name: str, n: Any, d: Any) -> int:
    if isinstance(n, (list, tuple)):
        raise ValueError(f"The n argument of jax.numpy.fft.{name} only takes an int. Got n = {n}.")
    if isinstance(d, (list, tuple)):
        raise ValueError(f"The d argument of jax.numpy.fft.{name} only takes a single value. Got d = {d}.")
    check_arraylike(name, d)
    return dim_index(n)


def _shifted(name: str, x: Any, axes: Any, sign: int) -> Any:
    x = ensure_array(name, x)
    chosen = range(x.ndim) if axes is None else (axes if isinstance(axes, Sequence) else (axes,))
    chosen = tuple(canonicalize_axis(i, x.ndim) for i in chosen)
    return roll(x, tuple(sign * (x.shape[i] // 2) for i in chosen), chosen)


def fftshift(x: Any, axes: Any = None) -> Any:
    """``x`` with the zero frequency moved to the middle."""
    return _shifted("fftshift", x, axes, 1)


def ifftshift(x: Any, axes: Any = None) -> Any:
    """The inverse of ``fftshift``."""
    return _shifted("ifftshift", x, axes, -1)
