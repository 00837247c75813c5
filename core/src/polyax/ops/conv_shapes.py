"""Dimension numbers, paddings and shapes of convolutions. Plain arithmetic; knows no arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from polyax.ir.dims import dim_index, max_dim
from polyax.ops.basis import shape_tuple

Sizes = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]


class ConvDimensionNumbers(NamedTuple):
    """Which dimension is what: (batch, feature, spatial...), (out and in feature, spatial...), and as the first."""

    lhs_spec: Sizes
    rhs_spec: Sizes
    out_spec: Sizes


def conv_dimension_numbers(lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any) -> Any:
    """Dimension numbers from None (``NCHW OIHW NCHW`` and the like) or three strings.

    >>> conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 5), ("NHWC", "HWIO", "NHWC")).rhs_spec
    (3, 2, 0, 1)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if len(lhs_shape) != len(rhs_shape):
        raise TypeError(
            "convolution requires lhs and rhs ndim to be equal, "
            f"got {len(lhs_shape)} and {len(rhs_shape)}: shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}."
        )
    n = len(lhs_shape)
    if dimension_numbers is None:
        return ConvDimensionNumbers(*(tuple(range(n)),) * 3)
    if len(dimension_numbers) != 3:
        raise TypeError(
            f"convolution dimension_numbers list/tuple must be length 3, got {len(dimension_numbers)}: "
            f"{dimension_numbers}."
        )
    lhs, rhs, out = dimension_numbers
    for i, (spec, (a, b)) in enumerate(((lhs, "NC"), (rhs, "OI"), (out, "NC"))):
        if len(spec) != n:
            raise TypeError(
                f"convolution dimension_numbers[{i}] must have len equal to the ndim of lhs and rhs, "
                f"got {len(spec)} for lhs and rhs shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}."
            )
        if spec.count(a) != 1 or spec.count(b) != 1:
            raise TypeError(
                f"convolution dimension_numbers[{i}] must contain the characters '{a}' and '{b}' exactly once, "
                f"got {spec}."
            )
        if len(set(spec)) != n:
            raise TypeError(f"convolution dimension_numbers[{i}] cannot have duplicate characters, got {spec}.")
    if not set(lhs) - {"N", "C"} == set(rhs) - {"O", "I"} == set(out) - {"N", "C"}:
        raise TypeError(
            "convolution dimension_numbers elements must each have the same set of spatial characters, "
            f"got {dimension_numbers}."
        )
    spatial = [c for c in rhs if c not in "OI"]
    return ConvDimensionNumbers(
        *(tuple(map(s.index, (*l, *spatial))) for s, l in ((lhs, "NC"), (rhs, "OI"), (out, "NC")))
    )


def dilated(size: int, dilation: int) -> int:
    """The extent of ``size`` elements that lie ``dilation`` apart."""
    return 0 if size == 0 else 1 + dilation * (size - 1)


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: Any
) -> list[tuple[int, int]]:
    """The (low, high) paddings that ``'SAME'``, ``'SAME_LOWER'`` or ``'VALID'`` stand for.

    Raises:
      TypeError: ``padding`` is no string.
      RuntimeError: it is another string.
    """
    if not isinstance(padding, str):
        raise TypeError(f"Unknown padding type: {padding}.")
    kind = padding.upper()
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    if kind not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(f"Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got {padding}.")
    pads = []
    for n, w, s in zip(in_shape, window_shape, window_strides, strict=True):
        total = max_dim((-(-n // s) - 1) * s + w - n, 0)
        small, large = total // 2, total - total // 2
        pads.append((small, large) if kind == "SAME" else (large, small))
    return [(dim_index(low), dim_index(high)) for low, high in pads]


def spatial(shape: Sequence[int], spec: Sizes) -> Sizes:
    """The spatial sizes of ``shape``."""
    return tuple(shape[i] for i in spec[2:])


def swapped(spec: Sizes) -> Sizes:
    """With the first two dimensions exchanged."""
    return (spec[1], spec[0], *spec[2:])


def output_sizes(
    in_sizes: Sizes, window: Sizes, strides: Sizes, padding: Pads, lhs_dilation: Sizes, rhs_dilation: Sizes
) -> Sizes:
    """How often the window fits in each spatial dimension."""
    sizes = []
    for n, w, s, (lo, hi), ld, rd in zip(in_sizes, window, strides, padding, lhs_dilation, rhs_dilation, strict=True):
        room = dilated(n, ld) + lo + hi - dilated(w, rd)
        sizes.append(max_dim(room // s + 1, 0))
    return tuple(sizes)


def padding_for_lhs(
    in_sizes: Sizes, window: Sizes, strides: Sizes, padding: Pads, lhs_dilation: Sizes, rhs_dilation: Sizes, out: Sizes
) -> Pads:
    """The padding of the convolution that carries cotangents back to the left operand."""
    pads = []
    for n, w, s, (lo, _), ld, rd, o in zip(
        in_sizes, window, strides, padding, lhs_dilation, rhs_dilation, out, strict=True
    ):
        before = dilated(w, rd) - lo - 1
        pads.append((before, dilated(n, ld) + dilated(w, rd) - 1 - dilated(o, s) - before))
    return tuple(pads)


def padding_for_rhs(
    in_sizes: Sizes, window: Sizes, strides: Sizes, padding: Pads, lhs_dilation: Sizes, rhs_dilation: Sizes, out: Sizes
) -> Pads:
    """The padding of the convolution that carries cotangents back to the window."""
    pads = []
    for n, w, s, (lo, _), ld, rd, o in zip(
        in_sizes, window, strides, padding, lhs_dilation, rhs_dilation, out, strict=True
    ):
        pads.append((lo, dilated(o, s) + dilated(w, rd) - dilated(n, ld) - 1 - lo))
    return tuple(pads)


def padding_of_transposed(window: int, stride: int, padding: str) -> tuple[int, int]:
    """The padding of a transposed convolution whose forward one is padded as ``'SAME'`` or ``'VALID'``."""
    if padding == "SAME":
        total = window + stride - 2
        before = window - 1 if stride > window - 1 else -(-total // 2)
    elif padding == "VALID":
        total, before = window + stride - 2 + max(window - stride, 0), window - 1
    else:
        raise ValueError(f"Invalid padding mode: {padding}")
    return before, total - before


def repeated(value: Any, n: int) -> Sizes:
    """One number per spatial dimension: 1s for None, the same for an integer."""
    if value is None:
        return (1,) * n
    return (value,) * n if isinstance(value, int) else shape_tuple(value)
