"""Convolutions of any layout, with strides, dilations and groups; their gradients are convolutions again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.dims import dim_index
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.factors import Factors, Place, factors
from polyax.meshes.resharding import with_out_sharding
from polyax.ops import conv_shapes
from polyax.ops.accumulators import accumulated, refuse_other_kinds
from polyax.ops.basis import convert, move_axis, reshape
from polyax.ops.conv_shapes import (
    ConvDimensionNumbers,
    Sizes,
    conv_dimension_numbers,
    padtype_to_pads,
    repeated,
    spatial,
)
from polyax.ops.define import bilinear_jvp, check_same_dtype
from polyax.ops.precision import canonicalize_precision
from polyax.ops.shape import rev
from polyax.ops.zeros import zero_cotangents
from polyax.trace.symbolic import Zero, is_undef

conv_general_dilated_p = Primitive("conv_general_dilated", unset=["out_sharding"])
conv_general_dilated_p.linear_in = (0, 1)


@with_out_sharding
def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Slides the window ``rhs`` over ``lhs`` and sums products over window and input features (cross-correlation).

    Args:
      padding: ``'SAME'``, ``'SAME_LOWER'``, ``'VALID'``, or (low, high) per spatial dimension.
      lhs_dilation: distance of neighbours in the (thereby larger) left operand: a transposed convolution.
      rhs_dilation: distance of neighbours in the window: an atrous convolution.
      dimension_numbers: None for ``NC...``, ``OI...``, ``NC...``; three such strings; or ``ConvDimensionNumbers``.
      feature_group_count: input features are divided into so many groups, each with its own part of the output's.
      batch_group_count: likewise for the batch.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.conv_general_dilated(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 3)), (1,), "SAME").tolist()
    [[[2.0, 3.0, 3.0, 2.0]]]
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers) and np.ndim(lhs) != np.ndim(rhs):
        raise ValueError(
            "conv_general_dilated lhs and rhs must have the same number of dimensions, "
            f"but got {np.shape(lhs)} and {np.shape(rhs)}."
        )
    numbers = conv_dimension_numbers(np.shape(lhs), np.shape(rhs), dimension_numbers)
    n = len(numbers.lhs_spec) - 2
    strides, ld, rd = (repeated(v, n) for v in (window_strides, lhs_dilation, rhs_dilation))
    if len(strides) != n:
        raise ValueError(
            "conv_general_dilated window and window_strides must have the same number of dimensions, "
            f"but got {n} and {len(strides)}"
        )
    if isinstance(padding, str):
        _check_positive("window_strides", strides)
        padding = _named_padding(padding, np.shape(lhs), np.shape(rhs), numbers, strides, ld, rd)
    elif any(np.ndim(pair) != 1 for pair in padding):
        raise ValueError(
            "padding argument to conv_general_dilated should be a string or a sequence of (low, high) pairs, "
            f"got {padding}"
        )
    slide = partial(
        conv_general_dilated_p.bind1,
        lhs,
        rhs,
        window_strides=strides,
        padding=tuple((dim_index(lo), dim_index(hi)) for lo, hi in padding),
        lhs_dilation=ld,
        rhs_dilation=rd,
        dimension_numbers=numbers,
        feature_group_count=int(feature_group_count),
        batch_group_count=int(batch_group_count),
        precision=canonicalize_precision(precision),
    )
    return accumulated(slide, aval_of(lhs).dtype, preferred_element_type, refuse_other_kinds)


def _named_padding(
    padding: str, lhs: Sequence[int], rhs: Sequence[int], numbers: Any, strides: Any, ld: Any, rd: Any
) -> Any:
    """What a word such as ``'SAME'`` means for operands of these shapes."""
    if any(d != 1 for d in ld):
        raise ValueError(
            "String padding is not implemented for transposed convolution using this op. Please either exactly "
            f"specify the required padding or use conv_transpose. Got padding {padding!r}, lhs_dilation {ld}."
        )
    window = [conv_shapes.dilated(s, d) for s, d in zip(spatial(rhs, numbers.rhs_spec), rd, strict=True)]
    return padtype_to_pads(spatial(lhs, numbers.lhs_spec), window, strides, padding)


def _check_positive(name: str, steps: Sequence[int]) -> None:
    if not all(n > 0 for n in steps):
        kind = "strides" if name == "window_strides" else "dilations"
        raise TypeError(f"All {kind} must be positive, got {steps} as {name} of conv_general_dilated.")


_GEOMETRY = ("window_strides", "padding", "lhs_dilation", "rhs_dilation")


def _geometry(lhs: Sizes, rhs: Sizes, d: ConvDimensionNumbers, params: dict[str, Any]) -> Any:
    """What formulas about spatial dimensions begin with: sizes of operand and window, and how the window moves."""
    return spatial(lhs, d.lhs_spec), spatial(rhs, d.rhs_spec), *(params[name] for name in _GEOMETRY)


# --- type -----------------------------------------------------------------------------------------------------------


@def_rule(conv_general_dilated_p, "abstract_eval")
def _abstract(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    preferred_element_type: Any,
    **params: Any,
) -> list[ShapedArray]:
    d = dimension_numbers
    check_same_dtype("conv_general_dilated", (lhs, rhs))
    for name in _GEOMETRY:
        if name != "padding":
            _check_positive(name, params[name])
        if name == "padding" and len(params[name]) != lhs.ndim - 2:
            raise TypeError(
                f"Wrong number of explicit pads for convolution: expected {lhs.ndim - 2}, got {len(params[name])}."
            )
        if len(params[name]) != lhs.ndim - 2:
            raise TypeError(
                f"conv_general_dilated {name} must have length {lhs.ndim - 2}, one per spatial dimension, "
                f"got {params[name]}."
            )
    _check_groups(lhs, rhs, d, feature_group_count, batch_group_count)
    sizes = conv_shapes.output_sizes(*_geometry(lhs.shape, rhs.shape, d, params))
    shape = [0] * lhs.ndim
    canonical = (lhs.shape[d.lhs_spec[0]] // batch_group_count, rhs.shape[d.rhs_spec[0]], *sizes)
    for position, size in zip(d.out_spec, canonical, strict=True):
        shape[position] = size
    weak = lhs.weak_type and rhs.weak_type and preferred_element_type is None
    return [ShapedArray(tuple(shape), preferred_element_type or lhs.dtype, weak)]


def _check_groups(lhs: ShapedArray, rhs: ShapedArray, d: ConvDimensionNumbers, features: int, batches: int) -> None:
    for name, groups in (("feature_group_count", features), ("batch_group_count", batches)):
        if groups < 1:
            raise ValueError(f"conv_general_dilated {name} must be a positive integer, got {groups}.")
    if features > 1 and batches > 1:
        raise ValueError(
            "At most one of batch_group_count and feature_group_count may be > 1, "
            f"got batch_group_count={batches} and feature_group_count={features}."
        )
    if lhs.shape[d.lhs_spec[0]] % batches:
        raise ValueError(
            "conv_general_dilated batch_group_count must divide lhs batch dimension size, "
            f"but {batches} does not divide {lhs.shape[d.lhs_spec[0]]}."
        )
    lhs_features, rhs_features, out_features = (
        lhs.shape[d.lhs_spec[1]],
        rhs.shape[d.rhs_spec[1]],
        rhs.shape[d.rhs_spec[0]],
    )
    if lhs_features != rhs_features * features:
        raise ValueError(
            "conv_general_dilated lhs feature dimension size divided by feature_group_count must equal the rhs input "
            f"feature dimension size, but {lhs_features} // {features} != {rhs_features}."
        )
    for name, groups in (("feature_group_count", features), ("batch_group_count", batches)):
        if out_features % groups:
            raise ValueError(
                "conv_general_dilated rhs output feature dimension size must be a multiple of "
                f"{name}, but {out_features} is not a multiple of {groups}."
            )


# --- cutting ---------------------------------------------------------------------------------------------------------

_BATCH, _IN, _OUT, _FEATURE_GROUPS, _BATCH_GROUPS = range(5)


@def_rule(conv_general_dilated_p, "factors")
def _factors(lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers: ConvDimensionNumbers, **params: Any) -> Factors:
    """Batch and features; input features are summed. Groups are the outer parts of the dimensions that they divide."""
    d, features, batches = dimension_numbers, params["feature_group_count"], params["batch_group_count"]
    outs = (_FEATURE_GROUPS, _BATCH_GROUPS, _OUT)
    sizes = {
        _BATCH: lhs.shape[d.lhs_spec[0]] // batches,
        _IN: rhs.shape[d.rhs_spec[1]],
        _OUT: rhs.shape[d.rhs_spec[0]] // (features * batches),
        _FEATURE_GROUPS: features,
        _BATCH_GROUPS: batches,
    }
    of_lhs = _placed(d.lhs_spec, (_BATCH_GROUPS, _BATCH), (_FEATURE_GROUPS, _IN))
    of_rhs, of_out = _placed(d.rhs_spec, outs, (_IN,)), _placed(d.out_spec, (_BATCH,), outs)
    return factors([of_lhs, of_rhs], [of_out], reduced={_IN: "sum"}, sizes=sizes, local=_local)


def _placed(spec: Sizes, first: Sizes, second: Sizes) -> list[Sizes]:
    """The factors of each dimension, from those of the first two of ``spec``; spatial ones stay whole."""
    found = {spec[0]: first, spec[1]: second}
    return [found.get(i, ()) for i in range(len(spec))]


def _local(place: Place, lhs: Any, rhs: Any, **params: Any) -> list[Any]:
    """There are as many groups as the sizes of the blocks say."""
    d: ConvDimensionNumbers = params["dimension_numbers"]
    features = np.shape(lhs)[d.lhs_spec[1]] // np.shape(rhs)[d.rhs_spec[1]]
    batches = np.shape(lhs)[d.lhs_spec[0]] // place.shape(0)[d.out_spec[0]]
    groups = {"feature_group_count": features, "batch_group_count": batches}
    return conv_general_dilated_p.bind_all(lhs, rhs, **{**params, **groups})


# --- derivatives -----------------------------------------------------------------------------------------------------


conv_general_dilated_p.jvp = bilinear_jvp(conv_general_dilated_p)


@def_rule(conv_general_dilated_p, "transpose")
def _transpose(cts: Any, lhs: Any, rhs: Any, **params: Any) -> list[Any]:
    (ct,) = cts
    if type(ct) is Zero:
        return zero_cotangents(lhs, rhs)
    if is_undef(lhs):
        return [convert(_to_lhs(ct, lhs.aval, convert(rhs, aval_of(ct).dtype), **params), lhs.aval.dtype), None]
    return [None, convert(_to_rhs(ct, convert(lhs, aval_of(ct).dtype), rhs.aval, **params), rhs.aval.dtype)]


def _to_lhs(ct: Any, lhs: ShapedArray, rhs: Any, **params: Any) -> Any:
    """The cotangents, spread by the strides, meet the reversed window with in and out features exchanged."""
    d: ConvDimensionNumbers = params["dimension_numbers"]
    batches = params["batch_group_count"]
    groups = max(params["feature_group_count"], batches)
    geometry = _geometry(lhs.shape, np.shape(rhs), d, params)
    padding = conv_shapes.padding_for_lhs(*geometry, out=spatial(np.shape(ct), d.out_spec))
    if groups > 1:
        rhs = _fold(_unfold(rhs, d.rhs_spec[0], groups), d.rhs_spec[0], d.rhs_spec[1])
    result = conv_general_dilated_p.bind1(
        ct,
        rev(rhs, d.rhs_spec[2:]),
        window_strides=params["lhs_dilation"],
        padding=padding,
        lhs_dilation=params["window_strides"],
        rhs_dilation=params["rhs_dilation"],
        dimension_numbers=ConvDimensionNumbers(d.out_spec, conv_shapes.swapped(d.rhs_spec), d.lhs_spec),
        feature_group_count=groups,
        batch_group_count=1,
        precision=params["precision"],
        preferred_element_type=None,
    )
    if batches > 1:
        result = _fold(_unfold(result, d.lhs_spec[1], batches), d.lhs_spec[1], d.lhs_spec[0])
    return result


def _to_rhs(ct: Any, lhs: Any, rhs: ShapedArray, **params: Any) -> Any:
    """The left operand meets the cotangents as window; batch and features change places, and so do kinds of groups."""
    d: ConvDimensionNumbers = params["dimension_numbers"]
    geometry = _geometry(np.shape(lhs), rhs.shape, d, params)
    padding = conv_shapes.padding_for_rhs(*geometry, out=spatial(np.shape(ct), d.out_spec))
    return conv_general_dilated_p.bind1(
        lhs,
        ct,
        window_strides=params["rhs_dilation"],
        padding=padding,
        lhs_dilation=params["lhs_dilation"],
        rhs_dilation=params["window_strides"],
        dimension_numbers=ConvDimensionNumbers(*map(conv_shapes.swapped, (d.lhs_spec, d.out_spec, d.rhs_spec))),
        feature_group_count=params["batch_group_count"],
        batch_group_count=params["feature_group_count"],
        precision=params["precision"],
        preferred_element_type=None,
    )


# --- batching --------------------------------------------------------------------------------------------------------


def _unfold(x: Any, axis: int, n: int) -> Any:
    """Splits a dimension into (n, rest)."""
    shape = np.shape(x)
    return reshape(x, (*shape[:axis], n, shape[axis] // n, *shape[axis + 1 :]))


def _fold(x: Any, source: int, target: int) -> Any:
    """Makes dimension ``source`` the outer part of ``target``, which counts dimensions without ``source``."""
    x = move_axis(x, source, target)
    shape = np.shape(x)
    return reshape(x, (*shape[:target], shape[target] * shape[target + 1], *shape[target + 2 :]))


def _fold_in_groups(x: Any, source: int, target: int, groups: int) -> Any:
    """As ``_fold``, inside each of the groups that ``target`` consists of."""
    if groups == 1:
        return _fold(x, source, target)
    x = _unfold(move_axis(x, source, 0), target + 1, groups)
    return _fold(_fold(x, 0, target + 1), target, target)


def _unfold_from_groups(x: Any, axis: int, groups: int, n: int) -> Any:
    """The batch axis, in front, that ``_fold_in_groups`` had put into ``axis``."""
    if groups == 1:
        return move_axis(_unfold(x, axis, n), axis, 0)
    x = move_axis(_unfold(_unfold(x, axis, groups), axis + 1, n), axis + 1, 0)
    return _fold(x, axis + 1, axis + 1)


@def_rule(conv_general_dilated_p, "batch")
def _batch(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
    """Examples of one operand become part of its batch or output features; of both, groups."""
    (lhs, rhs), (ld, rd) = args, dims
    d: ConvDimensionNumbers = params["dimension_numbers"]
    features, batches = params["feature_group_count"], params["batch_group_count"]
    if ld is None:
        rhs = _fold_in_groups(rhs, rd, d.rhs_spec[0], max(features, batches))
        out = conv_general_dilated_p.bind1(lhs, rhs, **params)
        return [_unfold_from_groups(out, d.out_spec[1], max(features, batches), axis.size)], [0]
    if rd is None:
        lhs = _fold_in_groups(lhs, ld, d.lhs_spec[0], batches)
        out = conv_general_dilated_p.bind1(lhs, rhs, **params)
        return [move_axis(_unfold(out, d.out_spec[0], axis.size), d.out_spec[0], 0)], [0]
    group = "batch_group_count" if batches > 1 else "feature_group_count"
    params[group] *= axis.size
    lhs = _fold(lhs, ld, d.lhs_spec[0] if batches > 1 else d.lhs_spec[1])
    out = conv_general_dilated_p.bind1(lhs, _fold(rhs, rd, d.rhs_spec[0]), **params)
    return [move_axis(_unfold(out, d.out_spec[1], axis.size), d.out_spec[1], 0)], [0]
