"""Shapes of convolutions, and those whose windows differ from place to place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ops import conv_shapes
from polyax.ops.basis import transpose
from polyax.ops.contract import dot_general
from polyax.ops.conv_shapes import ConvDimensionNumbers, conv_dimension_numbers, dilated
from polyax.ops.conv_variants import conv_general_dilated_patches

__all__ = [
    "conv_general_dilated_local", "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple",
    "conv_transpose_shape_tuple",
]  # fmt: skip

Sizes = tuple[int, ...]
Pads = Sequence[tuple[int, int]]


def conv_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int], pads: str | Pads,
    batch_group_count: int = 1,
) -> Sizes:  # fmt: skip
    """The shape of a convolution in the layouts ``NC...``, ``OI...``, ``NC...``.

    Raises:
      TypeError: ranks, strides and paddings don't belong together.
      ValueError: the batch isn't divided by ``batch_group_count``.

    >>> conv_shape_tuple((1, 2, 5), (3, 2, 3), (1,), [(1, 1)])
    (1, 3, 5)
    """
    n = len(lhs_shape) - 2
    pads = _pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(rhs_shape) != n + 2 or len(strides) != n or len(pads) != n:
        raise TypeError(
            f"Wrong number of explicit pads or strides for a convolution of shapes {tuple(lhs_shape)} and "
            f"{tuple(rhs_shape)}: expected {n} of each, got {len(pads)} pads and {len(strides)} strides."
        )
    if lhs_shape[0] % batch_group_count:
        raise ValueError(f"the batch size {lhs_shape[0]} isn't divisible by batch_group_count {batch_group_count}")
    ones = (1,) * n
    sizes = conv_shapes.output_sizes(
        tuple(lhs_shape[2:]), tuple(rhs_shape[2:]), tuple(strides), tuple(pads), ones, ones
    )
    return lhs_shape[0] // batch_group_count, rhs_shape[0], *sizes


def _pads(sizes: Sequence[int], window: Sequence[int], strides: Sequence[int], pads: str | Pads) -> Pads:
    return conv_shapes.padtype_to_pads(sizes, window, strides, pads) if isinstance(pads, str) else pads


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[Sizes, Sizes, Sizes]:
    """The dimensions of ``lhs``, ``rhs`` and the result in the order ``NC...``, ``OI...``, ``NC...``.

    Raises:
      TypeError: the strings don't belong together.

    >>> conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    if len(dimension_numbers) != 3:
        raise TypeError(f"convolution dimension_numbers must be three strings, got {dimension_numbers}.")
    lhs, rhs, _ = dimension_numbers
    found = conv_dimension_numbers((1,) * len(lhs), (1,) * len(rhs), tuple(dimension_numbers))
    return found.lhs_spec, found.rhs_spec, found.out_spec


def conv_general_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], window_strides: Sequence[int], padding: str | Pads,
    dimension_numbers: Sequence[str],
) -> Sizes:  # fmt: skip
    """The shape of a convolution in the layouts of ``dimension_numbers``."""
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    shape = conv_shape_tuple([lhs_shape[n] for n in lhs], [rhs_shape[n] for n in rhs], window_strides, padding)
    return tuple(shape[n] for n in np.argsort(out))


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], window_strides: Sequence[int], padding: str | Pads,
    dimension_numbers: Sequence[str],
) -> Sizes:  # fmt: skip
    """The shape of a transposed convolution: a ``padding`` by name is that of the convolution whose
    transpose it is."""
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    sizes, window = [[shape[n] for n in spec[2:]] for shape, spec in ((lhs_shape, lhs), (rhs_shape, rhs))]
    found = []
    for n, (size, k, stride) in enumerate(zip(sizes, window, window_strides, strict=True)):
        pads = conv_shapes.padding_of_transposed(k, stride, padding) if isinstance(padding, str) else padding[n]
        found.append(dilated(size, stride) + sum(pads) - k + 1)
    shape = (lhs_shape[lhs[0]], rhs_shape[rhs[0]], *found)
    return tuple(shape[n] for n in np.argsort(out))


def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Pads,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Any:
    """A convolution with a window of its own for each place of the result.

    Args:
      rhs: windows, laid out as ``dimension_numbers`` say: where a convolution has the sizes of the window it has those
        of the result, and its input features are those of ``lhs`` times the window's size.
      filter_shape: the sizes of the window.

    >>> import polyax.numpy as jnp
    >>> x, windows = jnp.arange(4.0).reshape(1, 1, 4), jnp.array([[[1.0, 1.0, 1.0], [0.0, 1.0, 2.0]]])
    >>> conv_general_dilated_local(x, windows, (1,), "VALID", (2,)).tolist()
    [[[0.0, 3.0, 8.0]]]
    """
    numbers = conv_dimension_numbers(np.shape(lhs), np.shape(rhs), dimension_numbers)
    layouts = ConvDimensionNumbers(numbers.lhs_spec, tuple(range(np.ndim(lhs))), numbers.out_spec)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, layouts, precision
    )
    return _at_each_place(patches, rhs, numbers, precision)


def _at_each_place(patches: Any, windows: Any, numbers: ConvDimensionNumbers, precision: Any) -> Any:
    """Products over features, for each place."""
    (_, feature, *places), (_, into, *where) = numbers.out_spec, numbers.rhs_spec
    dims = ((feature,), (into,)), (tuple(places), tuple(where))
    product = dot_general(patches, windows, dims, precision)  # places, batch, output features
    n = len(places)
    return transpose(product, [((n, n + 1, *range(n))[i]) for i in np.argsort(numbers.out_spec)])
