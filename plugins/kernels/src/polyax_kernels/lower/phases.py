"""Convolutions of operands that are dilated, without their zeros: transposed ones, and gradients of those with strides.

A place of the result sees only some elements of the window; the others meet zeros. Which these are repeats along the
result: each of its phases is a convolution with a part of the window. Phases are computed apart, and then interleaved.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import gcd, prod
from typing import Any, NamedTuple

from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ops.basis import broadcast_in_dim, reshape, transpose
from polyax.ops.conv import conv_general_dilated_p
from polyax.ops.conv_shapes import dilated
from polyax.ops.joining import concatenate
from polyax.ops.slicing import slice
from polyax.trace.recording import trace_to_jaxpr


class Phase(NamedTuple):
    """Along one dimension: every ``step``-th element of the window from ``first`` on, the strides of the result and of
    this window in the operand, and the padding in front."""

    first: int
    step: int
    stride: int
    dilation: int
    low: int


def count(stride: int, dilation: int) -> int:
    """How many phases there are along a dimension.

    >>> count(1, 2), count(2, 2), count(4, 6)
    (2, 1, 3)
    """
    return dilation // gcd(stride, dilation)


def phase(n: int, window: int, stride: int, low: int, lhs_dilation: int, rhs_dilation: int) -> Phase | None:
    """The places ``n, n + count, ...`` of a dimension of the result; None if they see nothing but zeros.

    >>> phase(0, 3, 1, 1, 2, 1), phase(1, 3, 1, 1, 2, 1)
    (Phase(first=1, step=2, stride=1, dilation=1, low=0), Phase(first=0, step=2, stride=1, dilation=1, low=0))
    """
    meets = (k for k in range(window) if (n * stride + k * rhs_dilation - low) % lhs_dilation == 0)
    first = next(meets, None)
    if first is None:
        return None
    step = lhs_dilation // gcd(rhs_dilation, lhs_dilation)
    return Phase(
        first,
        step,
        count(stride, lhs_dilation) * stride // lhs_dilation,
        step * rhs_dilation // lhs_dilation,
        (low - n * stride - first * rhs_dilation) // lhs_dilation,
    )


class _Phases:
    def __init__(self, avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> None:
        self.params = params
        (self.out,) = conv_general_dilated_p.rule("abstract_eval")(*avals, **params)
        numbers = params["dimension_numbers"]
        self.window = numbers.rhs_spec[2:]
        self.dims = numbers.out_spec[2:]
        self.sizes = [avals[0].shape[dim] for dim in numbers.lhs_spec[2:]]
        self.along = list(
            zip(
                (avals[1].shape[dim] for dim in self.window),
                params["window_strides"],
                (low for low, _ in params["padding"]),
                params["lhs_dilation"],
                params["rhs_dilation"],
                strict=True,
            )
        )
        self.counts = [count(stride, dilation) for _, stride, _, dilation, _ in self.along]
        places = [-(-self.out.shape[dim] // n) for dim, n in zip(self.dims, self.counts, strict=True)]
        self.shape = list(self.out.shape)
        """Of each phase, which may have a place more than the result."""
        for dim, size in zip(self.dims, places, strict=True):
            self.shape[dim] = size

    def compute(self, x: Any, w: Any) -> Any:
        every = itertools.product(*map(range, self.counts))
        found = [reshape(self._phase(x, w, numbers), (1, *self.shape)) for numbers in every]
        return self._interleaved(concatenate(found, 0))

    def _phase(self, x: Any, w: Any, numbers: Sequence[int]) -> Any:
        found = [phase(n, *along) for n, along in zip(numbers, self.along, strict=True)]
        phases = [p for p in found if p is not None]
        if len(phases) < len(found):
            return broadcast_in_dim(self.out.dtype.type(0), tuple(self.shape), ())
        starts, steps = [0] * w.ndim, [1] * w.ndim
        for dim, p in zip(self.window, phases, strict=True):
            starts[dim], steps[dim] = p.first, p.step
        part = slice(w, starts, w.shape, steps)
        padding = [
            self._padding(n, p, part.shape[dim]) for n, (p, dim) in enumerate(zip(phases, self.window, strict=True))
        ]
        geometry = {
            "window_strides": tuple(p.stride for p in phases),
            "rhs_dilation": tuple(p.dilation for p in phases),
            "lhs_dilation": (1,) * len(phases),
            "padding": tuple(padding),
        }
        return conv_general_dilated_p.bind1(x, part, **{**self.params, **geometry})

    def _padding(self, n: int, p: Phase, window: int) -> tuple[int, int]:
        """Such that there are as many places as the others have."""
        seen = (self.shape[self.dims[n]] - 1) * p.stride + dilated(window, p.dilation)
        return p.low, seen - p.low - self.sizes[n]

    def _interleaved(self, phases: Any) -> Any:
        """From (phases, ...) to the result: the phases of a dimension become its last digit."""
        split = reshape(phases, (*self.counts, *self.shape))
        order, shape = [], list(self.shape)
        for dim in range(len(shape)):
            order.append(len(self.counts) + dim)
            if dim in self.dims:
                n = self.dims.index(dim)
                order.append(n)
                shape[dim] *= self.counts[n]
        return slice(reshape(transpose(split, order), shape), [0] * len(shape), self.out.shape)


@lru_cache(maxsize=256)
def _program(avals: tuple[ShapedArray, ...], params: tuple[tuple[str, Any], ...]) -> ClosedJaxpr:
    phases = _Phases(avals, dict(params))
    return trace_to_jaxpr(lambda x, w: [phases.compute(x, w)], avals)


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    """Why a convolution isn't taken apart, if so."""
    if set(params["lhs_dilation"]) <= {1}:
        return "its operand isn't dilated"
    if not prod(prod(a.shape) for a in avals):
        return "nothing is added up"
    return None


def program(avals: Sequence[ShapedArray], **params: Any) -> ClosedJaxpr:
    """The program that computes a convolution by its phases."""
    return _program(tuple(avals), tuple(params.items()))
