"""Convolutions and Fourier transforms under NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ops import conv, fft
from polyax.ops.conv_shapes import Sizes, dilated
from polyax.ops.fft import FftType
from polyax.reference.rules_array import pad
from polyax.reference.table import rule, wide


@rule(conv.conv_general_dilated_p)
def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    *,
    window_strides: Sizes,
    padding: Any,
    lhs_dilation: Sizes,
    rhs_dilation: Sizes,
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> Any:
    """Products of all windows with the kernel, group by group, in the layout batch, features, space."""
    d, dtype = dimension_numbers, preferred_element_type or lhs.dtype
    x, w = wide(np.transpose(lhs, d.lhs_spec).astype(dtype)), wide(np.transpose(rhs, d.rhs_spec).astype(dtype))
    config = [(lo, hi, step - 1) for (lo, hi), step in zip(padding, lhs_dilation, strict=True)]
    windows = _windows(
        pad(x, x.dtype.type(0), padding_config=((0, 0, 0), (0, 0, 0), *config)), w, window_strides, rhs_dilation
    )
    batches = np.split(windows, batch_group_count, 0) if batch_group_count > 1 else [windows]
    parts = np.split(windows, feature_group_count, 1) if feature_group_count > 1 else batches
    kernels = np.split(w, len(parts), 0)
    n = w.ndim - 2
    over = [1, *range(2 + n, 2 + 2 * n)], [1, *range(2, 2 + n)]
    out = np.concatenate([np.tensordot(p, k, over) for p, k in zip(parts, kernels, strict=True)], -1)
    return np.transpose(np.moveaxis(out, -1, 1), np.argsort(d.out_spec)).astype(dtype)


def _windows(x: Any, w: Any, strides: Sizes, dilation: Sizes) -> Any:
    """All windows of ``x``: (batch, features, positions..., window...)."""
    n = len(strides)
    extents = [dilated(size, step) for size, step in zip(w.shape[2:], dilation, strict=True)]
    if any(extent > size for extent, size in zip(extents, x.shape[2:], strict=True)):
        return np.zeros((*x.shape[:2], *[0] * n, *w.shape[2:]), x.dtype)
    view = np.lib.stride_tricks.sliding_window_view(x, extents, tuple(range(2, 2 + n)))
    steps = (*(slice(None, None, s) for s in strides), *(slice(None, None, s) for s in dilation))
    return view[(slice(None), slice(None), *steps)]


@rule(fft.fft_p)
def fft_(x: Any, *, fft_type: FftType, fft_lengths: Sizes) -> Any:
    transforms = {
        FftType.FFT: np.fft.fftn,
        FftType.IFFT: np.fft.ifftn,
        FftType.RFFT: np.fft.rfftn,
        FftType.IRFFT: np.fft.irfftn,
    }
    axes = tuple(range(x.ndim - len(fft_lengths), x.ndim))
    return transforms[fft_type](x, fft_lengths, axes)
