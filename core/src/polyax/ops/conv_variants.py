"""Convolutions with fewer parameters, and transposed ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ops.conv import conv_general_dilated
from polyax.ops.conv_shapes import conv_dimension_numbers, dilated, padding_of_transposed, repeated, spatial, swapped
from polyax.ops.shape import rev


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """``conv_general_dilated`` without dilations, in the default layout."""
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """``conv_general_dilated`` in the default layout."""
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


_TRANSPOSED_LAYOUTS = {
    2: ("NC", "IO", "NC"),
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """A convolution that enlarges by ``strides``, with the output sizes of Keras' ``Conv2DTranspose``.

    Args:
      padding: ``'SAME'`` or ``'VALID'`` of the convolution whose transpose this is, or (low, high) of this one.
      transpose_kernel: reverse the window and exchange its features, which makes it the exact transpose.
    """
    ndim = np.ndim(lhs)
    d = conv_dimension_numbers(np.shape(lhs), np.shape(rhs), dimension_numbers or _TRANSPOSED_LAYOUTS.get(ndim))
    rhs_dilation = repeated(rhs_dilation, ndim - 2)
    if isinstance(padding, str):
        window = map(dilated, spatial(np.shape(rhs), d.rhs_spec), rhs_dilation)
        padding = [padding_of_transposed(k, s, padding) for k, s in zip(window, strides, strict=True)]
    if transpose_kernel:
        rhs = rev(rhs, d.rhs_spec[2:])
        d = d._replace(rhs_spec=swapped(d.rhs_spec))
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * (ndim - 2),
        padding,
        strides,
        rhs_dilation,
        d,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
