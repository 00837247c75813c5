"""Convolutions of many channels to few features as one product, and sums of what overlaps.

A product of the window's elements with few features would gather much and compute little. Here each element of the
operand meets all weights at once, in a convolution whose window is a single element; a place of the result then adds
up what it sees of these products, along one dimension after the other. Gradients of first layers by their images are
like that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, reduce
from math import prod
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ops.basis import broadcast_in_dim, reshape, transpose
from polyax.ops.conv import conv_general_dilated_p
from polyax.ops.conv_shapes import ConvDimensionNumbers
from polyax.ops.elementwise import add_p
from polyax.ops.joining import stack
from polyax.ops.slicing import index_in_dim, pad, slice_in_dim
from polyax.trace.recording import trace_to_jaxpr
from polyax_kernels.lower import phases

FEWER = 6
"""So many times fewer products than elements that windows see, since products are written before they are added up."""


class _Overlaps:
    """Products have dimensions (batch, feature, *window, *places)."""

    def __init__(self, avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> None:
        self.params, self.numbers = params, params["dimension_numbers"]
        (out,) = conv_general_dilated_p.rule("abstract_eval")(*avals, **params)
        lhs, rhs, result = self.numbers
        self.window, self.places, self.out = (
            [shape[dim] for dim in spec[2:]]
            for shape, spec in ((avals[1].shape, rhs), (avals[0].shape, lhs), (out.shape, result))
        )
        self.rank = len(self.window)
        self.batch, self.features, self.channels = out.shape[result[0]], out.shape[result[1]], avals[1].shape[rhs[1]]

    @property
    def products(self) -> int:
        return self.batch * self.features * prod(self.window) * prod(self.places)

    @property
    def seen(self) -> int:
        """Elements of the operand, each as often as windows see it; zeros between elements aren't gathered."""
        params = self.params
        groups = max(params["feature_group_count"], params["batch_group_count"])
        return groups * self.batch * self.channels * prod(self.window) * prod(self.out) // prod(params["lhs_dilation"])

    def compute(self, x: Any, w: Any) -> Any:
        found = self._products(x, w)
        for n in range(self.rank):
            found = self._added(found, n)
        spec = self.numbers.out_spec
        return transpose(found, tuple(spec.index(dim) for dim in range(len(spec))))

    def _products(self, x: Any, w: Any) -> Any:
        ones, rhs = (1,) * self.rank, self.numbers.rhs_spec
        turned = transpose(w, (rhs[0], *rhs[2:], rhs[1]))
        every = reshape(turned, (self.features * prod(self.window), self.channels, *ones))
        plain = tuple(range(self.rank + 2))
        geometry = {
            "window_strides": ones,
            "lhs_dilation": ones,
            "rhs_dilation": ones,
            "padding": ((0, 0),) * self.rank,
            "dimension_numbers": ConvDimensionNumbers(self.numbers.lhs_spec, plain, plain),
        }
        found = conv_general_dilated_p.bind1(x, every, **{**self.params, **geometry})
        return reshape(found, (self.batch, self.features, *self.window, *self.places))

    def _added(self, products: Any, n: int) -> Any:
        """Without the window's first dimension, and with the result's places: those of the phases are neighbours."""
        dim = self.rank + 1
        count = phases.count(self.params["window_strides"][n], self.params["lhs_dilation"][n])
        places = -(-self.out[n] // count)
        found = stack([self._phase(products, n, number, places) for number in range(count)], dim + 1)
        shape = found.shape
        joined = reshape(found, (*shape[:dim], places * count, *shape[dim + 2 :]))
        return slice_in_dim(joined, 0, self.out[n], axis=dim)

    def _phase(self, products: Any, n: int, number: int, places: int) -> Any:
        params, window = self.params, self.window[n]
        stride, (low, _) = params["window_strides"][n], params["padding"][n]
        phase = phases.phase(number, window, stride, low, params["lhs_dilation"][n], params["rhs_dilation"][n])
        if phase is None:
            shape = [*products.shape[:2], *products.shape[3:]]
            shape[self.rank + 1] = places
            return broadcast_in_dim(products.dtype.type(0), tuple(shape), ())
        elements = range(phase.first, window, phase.step)
        return reduce(
            add_p.bind1,
            [
                self._shifted(products, element, at * phase.dilation - phase.low, phase.stride, places)
                for at, element in enumerate(elements)
            ],
        )

    def _shifted(self, products: Any, element: int, start: int, stride: int, places: int) -> Any:
        """The products with an element along the window's first dimension, from a place on; there are zeros outside."""
        dim = self.rank + 1
        one = index_in_dim(products, element, 2, keepdims=False)
        edges = [(0, 0, 0)] * one.ndim
        edges[dim] = (-start, start + (places - 1) * stride + 1 - one.shape[dim], 0)
        return slice_in_dim(pad(one, one.dtype.type(0), edges), 0, None, stride, dim)


@lru_cache(maxsize=256)
def _program(avals: tuple[ShapedArray, ...], params: tuple[tuple[str, Any], ...]) -> ClosedJaxpr:
    overlaps = _Overlaps(avals, dict(params))
    return trace_to_jaxpr(lambda x, w: [overlaps.compute(x, w)], avals)


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    """Why a convolution isn't computed like this, if so."""
    overlaps = _Overlaps(avals, params)
    if prod(overlaps.window) == 1:
        return "nothing overlaps"
    if not overlaps.products or not prod(overlaps.out):
        return "nothing is added up"
    if FEWER * overlaps.products > overlaps.seen:
        return f"{overlaps.products} products aren't few, where windows see {overlaps.seen} elements"
    return None


def program(avals: Sequence[ShapedArray], **params: Any) -> ClosedJaxpr:
    """The program of a product and sums that computes a convolution."""
    return _program(tuple(avals), tuple(params.items()))
