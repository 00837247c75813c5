"""How a library that takes any strides sees a convolution: with dimensions in its own order, whatever we call them.

Says nothing of how convolutions are computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ops.conv import conv_general_dilated_p

Sizes = tuple[int, ...]
Layout = tuple[Sizes, Sizes]
"""Sizes and strides of batch, features and space; of a window's out features, in features and space."""


@dataclass(frozen=True)
class Convolution:
    """Operands, result, and how the window moves."""

    x: Layout
    window: Layout
    out: Layout
    before: Sizes
    after: Sizes
    stride: Sizes
    dilation: Sizes


def describe(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> Convolution:
    """A ``conv_general_dilated`` without ``lhs_dilation`` and batch groups. Groups of features show in the sizes."""
    infer = conv_general_dilated_p.abstract_eval
    assert infer is not None
    (out,) = infer(*avals, **params)
    shapes = (*(a.shape for a in avals), out.shape)
    x, window, y = [layout(shape, spec) for shape, spec in zip(shapes, params["dimension_numbers"], strict=True)]
    before, after = zip(*params["padding"], strict=True)
    return Convolution(x, window, y, before, after, tuple(params["window_strides"]), tuple(params["rhs_dilation"]))


def layout(shape: Sequence[int], spec: Sequence[int]) -> Layout:
    """A row-major array whose dimension ``spec[n]`` is number ``n`` for the library.

    >>> layout((8, 32, 32, 3), (0, 3, 1, 2))  # NHWC
    ((8, 3, 32, 32), (3072, 1, 96, 3))
    """
    return tuple(shape[d] for d in spec), tuple(math.prod(shape[d + 1 :]) for d in spec)


def packed(sizes: Sizes, *, channels_last: bool) -> Layout:
    """The layout that libraries are sure to take: all in the library's order, or with its second dimension the last.

    >>> packed((8, 3, 32, 32), channels_last=True)
    ((8, 3, 32, 32), (3072, 1, 96, 3))
    """
    last = (0, len(sizes) - 1, *range(1, len(sizes) - 1))  # where in memory each of the library's dimensions is
    spec = last if channels_last else tuple(range(len(sizes)))
    shape = [0] * len(sizes)
    for size, place in zip(sizes, spec, strict=True):
        shape[place] = size
    return layout(shape, spec)


def is_packed(found: Layout, *, channels_last: bool) -> bool:
    """Whether an array is laid out so; where a dimension has one element, its stride says nothing."""
    sizes, strides = found
    wanted = packed(sizes, channels_last=channels_last)[1]
    return all(size == 1 or a == b for size, a, b in zip(sizes, strides, wanted, strict=True))


def channels_last(asked: Convolution) -> bool | None:
    """How both the operand and the result lie; None if one of them lies otherwise, or each in its own way."""
    ways = (way for way in (False, True) if all(is_packed(a, channels_last=way) for a in (asked.x, asked.out)))
    return next(ways, None)


def why_not_forward(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    """Why a convolution isn't one that ``describe`` can tell, with paddings that libraries take."""
    if set(params["lhs_dilation"]) - {1} or params["batch_group_count"] != 1:
        return "only forward convolutions, without lhs_dilation and batch groups"
    if min((n for pair in params["padding"] for n in pair), default=0) < 0:
        return "only paddings that aren't negative"
    return "no empty arrays" if any(0 in a.shape for a in avals) else None
