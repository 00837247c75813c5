"""Convolutions as sums over window and features: what runs where no library does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax_kernels.ir.expr import Axis, Expr, cast, const, fold, index, op
from polyax_kernels.lower.lowering import Out, Read
from polyax_kernels.lower.rules.shape import all_of
from polyax_kernels.lower.rules.table import kernels

Conditions = list[Expr]


@kernels("conv_general_dilated")
def _conv(
    out: Out,
    x: Read,
    w: Read,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    **_: Any,
) -> Expr:
    """``out[n, o, i] = sum over c, k of x[n, c, i * stride + k * dilation - pad] * w[o, c, k]``, within groups."""
    d = dimension_numbers
    channels = Axis(w.shape[d.rhs_spec[1]], "c")
    window = [Axis(w.shape[dim], f"k{n}") for n, dim in enumerate(d.rhs_spec[2:])]
    batch, feature = (out.i[dim] for dim in d.out_spec[:2])
    outputs = w.shape[d.rhs_spec[0]]
    channel = index(channels)
    if feature_group_count > 1:
        channel = feature // (outputs // feature_group_count) * channels.extent + channel
    if batch_group_count > 1:
        size = x.shape[d.lhs_spec[0]] // batch_group_count
        batch = feature // (outputs // batch_group_count) * size + batch
    at_x: dict[int, Expr] = {d.lhs_spec[0]: batch, d.lhs_spec[1]: channel}
    at_w: dict[int, Expr] = {d.rhs_spec[0]: feature, d.rhs_spec[1]: index(channels)}
    inside: Conditions = []
    for n, k in enumerate(window):
        at_w[d.rhs_spec[2 + n]] = index(k)
        place = out.i[d.out_spec[2 + n]] * window_strides[n] + index(k) * rhs_dilation[n] + -padding[n][0]
        dim = d.lhs_spec[2 + n]
        at_x[dim] = source(place, x.shape[dim], lhs_dilation[n], inside)
    places = [at_x[dim] for dim in range(len(x.shape))]
    element = x(*places, mask=all_of(inside))
    weight = w(*[at_w[dim] for dim in range(len(w.shape))])
    times, plus = ("and", "or") if out.dtype == bool else ("mul", "add")
    product = op(times, cast(element, out.dtype), cast(weight, out.dtype))
    return fold(plus, (channels, *window), (const(0, out.dtype),), (product,))


def source(place: Expr, extent: int, dilation: int, inside: Conditions) -> Expr:
    """The index of the element at ``place`` of the dilated operand; says when there is one."""
    inside += [place >= 0, place < (extent - 1) * dilation + 1]
    if dilation == 1:
        return place
    inside.append(op("eq", place % dilation, const(0)))
    return place // dilation
