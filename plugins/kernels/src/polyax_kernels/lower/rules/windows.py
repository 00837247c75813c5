"""Windows: folds with masked loads where a window is small; others are left to their decompositions, slices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ops.conv_shapes import Sizes
from polyax_kernels.ir.expr import Axis, Expr, fold, index
from polyax_kernels.lower.lowering import Kernels, Out, Read
from polyax_kernels.lower.rules.convolve import source
from polyax_kernels.lower.rules.reduce import COMBINE, identity
from polyax_kernels.lower.rules.shape import affine, all_of
from polyax_kernels.lower.rules.table import RULES

SMALL = 32
"""Elements of a window that are read for each window; of larger ones, what windows share is computed once."""


def _fold(combine: str) -> Callable[..., Expr]:
    def build(
        out: Out, x: Read, *, window_dimensions: Sizes, window_strides: Sizes, padding: Sequence[tuple[int, int]],
        base_dilation: Sizes, window_dilation: Sizes,
    ) -> Expr:  # fmt: skip
        """``combine`` over k of ``x[i * stride + k * dilation - pad]``."""
        axes = tuple([Axis(n, f"w{d}") for d, n in enumerate(window_dimensions) if n > 1])
        offsets = iter(axes)
        inside: list[Expr] = []
        places: list[Expr] = []
        for d, n in enumerate(window_dimensions):
            place = affine(out.i[d], -padding[d][0], window_strides[d])
            if n > 1:
                place = place + affine(index(next(offsets)), 0, window_dilation[d])
            if padding[d] == (0, 0) and base_dilation[d] == 1:
                places.append(place)
            else:
                places.append(source(place, x.shape[d], base_dilation[d], inside))
        none = identity(combine, x.dtype)
        element = x(*places, mask=all_of(inside), other=none)
        return fold(combine, axes, (none,), (element,)) if axes else element

    return build


def _large(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    if math.prod(params["window_dimensions"]) <= SMALL:
        return None
    return "large windows overlap: what they share is computed once"


for _name in ("sum", "max", "min"):
    RULES[f"reduce_window_{_name}"] = Kernels(_fold(COMBINE[_name]), _large)
