"""Discrete Fourier transforms over the last dimensions."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.dtypes import full_name
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.factors import leading
from polyax.ops.basis import broadcast_in_dim, convert, move_axis, mul, shape_tuple
from polyax.ops.convert import conj, real
from polyax.ops.define import linear
from polyax.ops.slicing import pad

Sizes = tuple[int, ...]

fft_p = Primitive("fft")


class FftType(enum.IntEnum):
    """Direction, and whether one side is real."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Any:
    """The transform of ``x`` over its last ``len(fft_lengths)`` dimensions.

    Args:
      fft_lengths: the sizes of the transformed dimensions on the real side; half of the last one, plus one, is what the
        complex side of ``RFFT`` and ``IRFFT`` holds.
    """
    if isinstance(fft_type, str) and fft_type.upper() not in FftType.__members__:
        raise ValueError(f"Unknown FFT type '{fft_type}'")
    kind = FftType[fft_type.upper()] if isinstance(fft_type, str) else FftType(fft_type)
    dtype = aval_of(x).dtype
    if kind is FftType.RFFT:
        if dtypes.is_complex(dtype):
            raise ValueError("only real valued inputs supported for rfft")
        x = convert(x, dtypes.wider(dtype, np.float32))
    else:
        x = convert(x, dtypes.wider(dtype, np.complex64))
    lengths = shape_tuple(fft_lengths)
    return fft_p.bind1(x, fft_type=kind, fft_lengths=lengths) if lengths else x


@def_rule(fft_p, "abstract_eval")
def _abstract(x: ShapedArray, *, fft_type: FftType, fft_lengths: Sizes) -> list[ShapedArray]:
    if len(fft_lengths) > x.ndim:
        raise ValueError(
            f"FFT input shape {x.shape} must have at least as many input dimensions as fft_lengths {fft_lengths}."
        )
    if dtypes.is_complex(x.dtype) == (fft_type is FftType.RFFT) or not dtypes.is_inexact(x.dtype):
        wanted = "float32 or float64" if fft_type is FftType.RFFT else "complex64 or complex128"
        raise ValueError(f"{fft_type.name} input must be {wanted}, got {full_name(x.dtype)}")
    batch, sizes = x.shape[: -len(fft_lengths)], x.shape[-len(fft_lengths) :]
    halved = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
    if sizes != (halved if fft_type is FftType.IRFFT else fft_lengths):
        raise ValueError(
            f"{fft_type.name} input shape {x.shape} minor dimensions must be equal to fft_lengths {fft_lengths}"
        )
    if fft_type is FftType.RFFT:
        if not fft_lengths[-1]:
            raise ValueError(f"RFFT input must have elements along its last dimension, got shape {x.shape}")
        return [ShapedArray((*batch, *halved), np.dtype(f"complex{16 * x.dtype.itemsize}"))]
    if fft_type is FftType.IRFFT:
        return [ShapedArray((*batch, *fft_lengths), dtypes.real_part(x.dtype))]
    return [ShapedArray(x.shape, x.dtype)]


def _transpose(ct: Any, x: ShapedArray, *, fft_type: FftType, fft_lengths: Sizes) -> Any:
    """The matrices of FFT and IFFT are symmetric. That of RFFT is the upper half of FFT's, applied to real vectors."""
    if fft_type is FftType.RFFT:
        missing = fft_lengths[-1] - ct.shape[-1]
        padded = pad(ct, 0.0j, [(0, 0, 0)] * (x.ndim - 1) + [(0, missing, 0)])
        return real(fft(padded, FftType.FFT, fft_lengths))
    if fft_type is FftType.IRFFT:
        return _irfft_transpose(ct, x, fft_lengths)
    return fft(ct, fft_type, fft_lengths)


def _irfft_transpose(ct: Any, x: ShapedArray, lengths: Sizes) -> Any:
    """IRFFT reads every coefficient twice, but the first (and of an even number the middle) only once."""
    n = x.shape[-1]
    weights = np.full(n, 2 / math.prod(lengths), dtypes.real_part(x.dtype))
    weights[0 : n : n - 1 if lengths[-1] % 2 == 0 and n > 1 else n] /= 2
    spectrum = conj(fft(ct, FftType.RFFT, lengths))
    return mul(spectrum, broadcast_in_dim(weights.astype(x.dtype), x.shape, (x.ndim - 1,)))


def _batch(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
    return fft_p.bind_all(move_axis(args[0], dims[0], 0), **params), [0]


linear(fft_p, _transpose, _batch)
fft_p.factors = lambda x, **how: leading(x.ndim - len(how["fft_lengths"]), [x], _abstract(x, **how))
