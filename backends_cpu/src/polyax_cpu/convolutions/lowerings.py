"""Which convolutions are products, sums where the operand lies or in planes, gradients by weights, products of tiles;
and the programs that take the place of others: sums of products for those that have few features,
phases of those whose operand is dilated, and transposes around those whose layout BLAS can't step through.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive
from polyax.ops.basis import reshape, transpose
from polyax.ops.contract import dot_general
from polyax.ops.conv import conv_general_dilated_p
from polyax.ops.conv_shapes import ConvDimensionNumbers
from polyax.runtime.contract.hooks import WhyNot
from polyax.trace.recording import trace_to_jaxpr
from polyax_cpu.compiler import LoadedCode
from polyax_cpu.convolutions import blocks, depthwise, direct, filters, planes, tiles
from polyax_cpu.convolutions.planes import PackedWeights, Planes, Shapes
from polyax_cpu.convolutions.tiles import Geometry, TileDigit, apart
from polyax_cpu.convolutions.windows import Windowed
from polyax_cpu.libraries import registers
from polyax_kernels.lower import overlaps, phases
from polyax_kernels.lower.lowering import Call, Lowering, Replace

Avals = Sequence[ShapedArray]
Params = Mapping[str, Any]
FEW = 8, 16
"""Weights at each place of the window, in each group, below which a product isn't faster than loops: where places of
the result, or else channels, are neighbours in the operand's memory."""
LONG = 64
"""So many values of an index are enough for a product."""

tiled_p = Primitive("tiled_convolution")
"""A convolution in a layout that BLAS can step through."""
tiled_p.abstract_eval = conv_general_dilated_p.rule("abstract_eval")

packed_p = Primitive("packed_weights")
planes_p = Primitive("convolution_in_planes")
"""A convolution with such weights."""
depthwise_p = Primitive("depthwise_convolution")
"""One of each channel alone; channels are together in memory."""
direct_p = Primitive("direct_convolution")
"""One whose channels and features are together."""
filters_p = Primitive("gradient_by_weights")
"""One with a large window, whose features are together."""
PARTS = tiled_p, packed_p, planes_p, depthwise_p, direct_p, filters_p
"""What the programs are made of that take the place of a convolution."""
for _p in PARTS[1:]:
    _p.abstract_eval = lambda x, *_, work: [ShapedArray(work.shape, x.dtype)]
for _p, _rule in itertools.product(PARTS, ("jvp", "transpose", "batch", "factors")):
    _p.never(_rule, "programs are lowered once they have been transformed")


def _geometry(avals: Avals, params: Params) -> Geometry:
    (out,) = conv_general_dilated_p.rule("abstract_eval")(*avals, **params)
    return Geometry(avals, out, params)


def _why_narrow(avals: Avals, params: Params) -> str | None:
    """Loops over groups whose channels lie apart are slow, however few these are."""
    g = _geometry(avals, params)
    if not all(g.sizes):
        return "nothing is added up"
    wanted = FEW[not g.rows_lie] if g.groups == 1 or not g.rows_lie else 1
    if g.channels * g.features < wanted:
        return f"{g.channels} x {g.features} weights at each place of the window are few"
    return None


# --- layouts ---------------------------------------------------------------------------------------------------------


def _turned(spec: Sequence[int], of_lhs: Sequence[int], feature: int, last: bool) -> list[int]:
    """The dimensions of weights or results in the order of the operand's, features first or ``last``.

    ``of_lhs``: which of the operand's dimensions belong to those of ``spec``.
    """
    dims = [dim for _, dim in sorted(zip(of_lhs, spec, strict=True))]
    return [*dims, feature] if last else [feature, *dims]


def _moved(spec: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Where the dimensions are after a transpose."""
    return tuple(order.index(dim) for dim in spec)


def _joins(digits: Sequence[TileDigit], by_feature: int, total: int) -> bool:
    return apart(digits, by_feature) >= min(total, LONG)


def _in_order(x: Any, w: Any, g: Geometry, params: Params) -> Any:
    """The convolution, with weights and results in an order that BLAS can step through."""
    lhs, rhs, out = g.numbers
    rows, depth, _ = g.sizes
    by_weight, by_result = g.by_feature
    if not _joins(g.depth, by_weight, depth):
        order = _turned(rhs[1:], lhs[1:], rhs[0], last=not g.run)
        w, rhs = transpose(w, order), _moved(rhs, order)
    back: list[int] | None = None
    if not _joins(g.rows, by_result, rows):
        back = _turned((out[0], *out[2:]), (lhs[0], *lhs[2:]), out[1], last=out[1] == len(out) - 1)
        out = _moved(out, back)
    y = tiled_p.bind1(x, w, **{**params, "dimension_numbers": ConvDimensionNumbers(lhs, rhs, out)})
    return y if back is None else transpose(y, _moved(range(len(out)), back))


# --- planes ----------------------------------------------------------------------------------------------------------


def _why_no_registers(avals: Avals) -> str | None:
    if avals[0].dtype.name not in registers.TYPES:
        return f"registers hold no {avals[0].dtype}"
    return registers.why_not()


def _lanes(x: Any) -> int:
    return registers.lanes(registers.TYPES[x.dtype.name])


def why_no_planes(avals: Avals, params: Params) -> str | None:
    reason = _why_no_registers(avals) or planes.why_not(avals, params)
    return reason or (None if registers.many() else planes.why_many(avals, params))


def _why_not_depthwise(avals: Avals, params: Params) -> str | None:
    reason = _why_no_registers(avals) or depthwise.why_not(avals, params, _lanes(avals[0]))
    return reason or (None if registers.many() else depthwise.why_many(avals, params))


def _turned_weights(w: Any, avals: Avals, params: Params, order: Sequence[int]) -> tuple[Any, Avals, Params]:
    """Weights in another order, in which features are together, and what is said of both operands then."""
    lhs, rhs, out = params["dimension_numbers"]
    turned = transpose(w, order)
    given = {**params, "dimension_numbers": ConvDimensionNumbers(lhs, _moved(rhs, order), out)}
    return turned, (avals[0], ShapedArray(turned.shape, w.dtype)), given


def _features_last(rhs: Sequence[int]) -> list[int]:
    return [*rhs[2:], rhs[1], rhs[0]]


def _depthwise(x: Any, w: Any, avals: Avals, params: Params) -> Any:
    turned, avals, given = _turned_weights(w, avals, params, _features_last(params["dimension_numbers"].rhs_spec))
    return depthwise_p.bind1(x, turned, work=depthwise.described(avals, given))


def _why_not_direct(avals: Avals, params: Params) -> str | None:
    return _why_no_registers(avals) or registers.why_few() or direct.why_not(avals, params, _lanes(avals[0]))


def _direct(x: Any, w: Any, avals: Avals, params: Params) -> Any:
    turned, avals, given = _turned_weights(w, avals, params, _features_last(params["dimension_numbers"].rhs_spec))
    return direct_p.bind1(x, turned, work=direct.described(avals, given, _lanes(x)))


def _why_no_filters(avals: Avals, params: Params) -> str | None:
    reason = _why_no_registers(avals) or filters.why_not(avals, params, _lanes(avals[0]))
    return reason or (None if registers.many() else filters.why_many(avals, params))


def _filters(x: Any, w: Any, avals: Avals, params: Params) -> Any:
    """With the result in another order."""
    _, rhs, out = params["dimension_numbers"]
    turned, avals, given = _turned_weights(w, avals, params, [*(d for d in range(w.ndim) if d != rhs[0]), rhs[0]])
    y = filters_p.bind1(x, turned, work=filters.described(avals, given, _lanes(x)))
    return transpose(y, _moved(range(len(out)), [*out[2:], out[0], out[1]]))


def _native(function: Callable[[str, Any], LoadedCode]) -> Callable[[Avals, Avals, Params], tuple[int, Windowed]]:
    """By the function of the kind that is wanted."""

    def native(args: Avals, outs: Avals, params: Params) -> tuple[int, Windowed]:
        work: Windowed = params["work"]
        return function(registers.TYPES[args[0].dtype.name], work.kind).address("convolve"), work

    return native


def _in_planes(x: Any, w: Any, shapes: Shapes) -> Any:
    block = blocks.of(registers.TYPES[x.dtype.name], shapes.features)
    packed = packed_p.bind1(w, work=planes.packed(shapes, block.features))
    return planes_p.bind1(x, packed, work=planes.described(shapes, block, x.dtype.itemsize))


def _native_planes(args: Avals, outs: Avals, params: Params) -> tuple[int, Planes]:
    work: Planes = params["work"]
    kind = blocks.BlockKind(registers.TYPES[args[0].dtype.name], work.features, *work.together)
    return blocks.function(kind).address("convolve"), work


def _native_packing(args: Avals, outs: Avals, params: Params) -> tuple[int, PackedWeights]:
    work: PackedWeights = params["work"]
    return blocks.packing(registers.TYPES[args[0].dtype.name], work.shape[-1]).address("pack"), work


# --- windows of one place --------------------------------------------------------------------------------------------


def _is_product(avals: Avals, params: Params) -> bool:
    """Whether each place is multiplied by the weights alone, with features last: no digit of a place is looked at."""
    lhs, rhs, out = params["dimension_numbers"]
    x, w = avals
    ones = [w.shape[n] for n in rhs[2:]], params["window_strides"], params["lhs_dilation"]
    alone = params["feature_group_count"] == params["batch_group_count"] == 1 and not any(map(any, params["padding"]))
    last = lhs[1] == out[1] == x.ndim - 1 and [lhs[0], *lhs[2:]] == [out[0], *out[2:]]
    return alone and last and all(n == 1 for given in ones for n in given)


def _product(x: Any, w: Any, params: Params) -> Any:
    features, channels, *_ = params["dimension_numbers"].rhs_spec
    numbers = (((x.ndim - 1,), (channels,)), ((), ()))
    y = dot_general(x, w, numbers, params["precision"], params["preferred_element_type"])
    return reshape(y, (*x.shape[:-1], w.shape[features]))


# --- programs --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def programs(avals: tuple[ShapedArray, ...], params: tuple[tuple[str, Any], ...]) -> ClosedJaxpr:
    given = dict(params)
    if _is_product(avals, given):
        return trace_to_jaxpr(lambda x, w: [_product(x, w, given)], avals)
    if _why_not_depthwise(avals, given) is None:
        return trace_to_jaxpr(lambda x, w: [_depthwise(x, w, avals, given)], avals)
    if _why_not_direct(avals, given) is None:
        return trace_to_jaxpr(lambda x, w: [_direct(x, w, avals, given)], avals)
    if why_no_planes(avals, given) is None:
        return trace_to_jaxpr(lambda x, w: [_in_planes(x, w, Shapes(avals, given))], avals)
    if _why_no_filters(avals, given) is None:
        return trace_to_jaxpr(lambda x, w: [_filters(x, w, avals, given)], avals)
    return trace_to_jaxpr(lambda x, w: [_in_order(x, w, _geometry(avals, given), given)], avals)


def _why_no_sums(avals: Avals, params: Params) -> str | None:
    reason = why_no_planes(avals, params)
    others = _why_not_depthwise, _why_not_direct, _why_no_filters
    return reason if all(why_not(avals, params) for why_not in others) else None


def _replaced(avals: Avals, **params: Any) -> ClosedJaxpr:
    if overlaps.why_not(avals, params) is None:
        return overlaps.program(avals, **params)
    if _why_no_sums(avals, params) is not None and phases.why_not(avals, params) is None:
        return phases.program(avals, **params)
    return programs(tuple(avals), tuple(params.items()))


def lowerings(why_no_product: WhyNot) -> dict[Primitive, Lowering]:
    """For a library that says which operands it has a product of."""

    def why_not(avals: Avals, params: Params) -> str | None:
        if phases.why_not(avals, params) is None:
            return None
        if (reason := why_no_product(avals, params)) is not None or _why_no_sums(avals, params) is None:
            return reason
        return _why_narrow(avals, params)

    return {
        conv_general_dilated_p: Replace(_replaced, why_not),
        tiled_p: Call(native=tiles.describe),
        planes_p: Call(native=_native_planes),
        depthwise_p: Call(native=_native(depthwise.function)),
        direct_p: Call(native=_native(direct.function)),
        filters_p: Call(native=_native(filters.function)),
        packed_p: Call(native=_native_packing),
    }
