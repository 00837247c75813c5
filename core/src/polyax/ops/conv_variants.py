"""Convolutions with fewer parameters, and transposed ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import aval_of
from polyax.ops.conv import conv_general_dilated
from polyax.ops.conv_shapes import conv_dimension_numbers, dilated, padding_of_transposed, repeated, spatial, swapped
from polyax.ops.shape import rev

__all__ = ["conv", "conv_general_dilated_patches", "conv_transpose", "conv_with_general_padding"]


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """``conv_general_dilated`` without dilations, in the default layout.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.conv(jnp.ones((1, 3, 8, 8)), jnp.ones((16, 3, 3, 3)), (1, 1), 'SAME').shape
    (1, 16, 8, 8)
    """
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
    use_consistent_padding: bool = False,
) -> Any:
    """A convolution that enlarges by ``strides``, with the output sizes of Keras' ``Conv2DTranspose``.

    Args:
      padding: ``'SAME'`` or ``'VALID'`` of the convolution whose transpose this is, or (low, high) of this one.
      transpose_kernel: reverse the window and exchange its features, which makes it the exact transpose.
      use_consistent_padding: pairs are, as names are, of the convolution whose transpose this is.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.conv_transpose(jnp.ones((1, 8, 8, 3)), jnp.ones((3, 3, 3, 16)), (2, 2), 'SAME').shape
    (1, 16, 16, 16)
    """
    ndim = np.ndim(lhs)
    d = conv_dimension_numbers(np.shape(lhs), np.shape(rhs), dimension_numbers or _TRANSPOSED_LAYOUTS.get(ndim))
    rhs_dilation = repeated(rhs_dilation, ndim - 2)
    window = [dilated(k, r) for k, r in zip(spatial(np.shape(rhs), d.rhs_spec), rhs_dilation, strict=True)]
    if isinstance(padding, str):
        padding = [padding_of_transposed(k, s, padding) for k, s in zip(window, strides, strict=True)]
    elif use_consistent_padding:
        padding = [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(window, padding, strict=True)]
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


def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """All windows of ``lhs``, laid out along the feature dimension: features outermost, then the window's dimensions.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.conv_general_dilated_patches(jnp.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID").tolist()
    [[[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]]
    """
    n, window = math.prod(filter_shape), tuple(filter_shape)
    ndim = np.ndim(lhs)
    d = conv_dimension_numbers(np.shape(lhs), (1,) * ndim, dimension_numbers)
    features = np.shape(lhs)[d.lhs_spec[1]]
    one_hot = np.tile(np.eye(n).reshape(n, 1, *window), (features, *(1,) * (ndim - 1)))
    kernel = np.transpose(one_hot, np.argsort(d.rhs_spec)).astype(aval_of(lhs).dtype)
    return conv_general_dilated(
        lhs,
        kernel,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        d,
        feature_group_count=features,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
