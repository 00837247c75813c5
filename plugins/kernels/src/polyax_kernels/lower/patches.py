"""Convolutions as products of matrices: what the window sees at each place is a row, ready for a library's product.

Gradients are convolutions of other layouts, and products as well. Rows are as long as the window has elements, so a
convolution whose rows take much memory is done in pieces, in a loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

from polyax.control.flow.looping import scan
from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.basis import add, broadcast_in_dim, move_axis, reshape, transpose
from polyax.ops.contract import dot_general
from polyax.ops.conv import conv_general_dilated_p
from polyax.trace.recording import trace_to_jaxpr
from polyax_kernels.ir.expr import Expr, const
from polyax_kernels.lower.lowering import Out, Read, Replace
from polyax_kernels.lower.rules.convolve import Conditions, source
from polyax_kernels.lower.rules.shape import all_of
from polyax_kernels.lower.rules.table import kernels

NARROW = 8
"""Rows, columns and elements of rows below which a product isn't faster than loops."""
PIECE = 1 << 25
"""Elements of all rows above which a convolution is done in pieces."""

patches_p = Primitive("patches")
"""Each dimension of the result is a digit ``(dim, size, step)``: it moves ``step`` places along ``dim`` of the operand.

``lows`` and ``dilations`` are those of the operand's dimensions: where the first place is, and how far neighbours are
apart. Elements outside are zero.
"""
AFTERWARDS = "programs are lowered once they have been transformed"
for _rule in ("jvp", "transpose", "batch", "factors"):
    patches_p.never(_rule, AFTERWARDS)

Digit = tuple[int, int, int]


@def_rule(patches_p, "abstract_eval")
def _patches(x: ShapedArray, *, digits: Sequence[Digit], **_: Any) -> list[ShapedArray]:
    return [ShapedArray(tuple(size for _, size, _ in digits), x.dtype)]


@kernels("patches")
def _read_patches(out: Out, x: Read, *, digits: Sequence[Digit], lows: Sequence[int], dilations: Sequence[int]) -> Expr:
    places: list[Expr] = [const(-low) for low in lows]
    for (dim, _, step), i in zip(digits, out.i, strict=True):
        places[dim] += i * step
    inside: Conditions = []
    for dim, (place, dilation) in enumerate(zip(places, dilations, strict=True)):
        if sum(d == dim for d, _, _ in digits) > 1:  # else it is a dimension that the window doesn't move along
            places[dim] = source(place, x.shape[dim], dilation, inside)
    return x(*places, mask=all_of(inside))


class _Convolution:
    """The parts of a convolution, as digits of rows and of their elements."""

    def __init__(self, avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> None:
        (self.out,) = conv_general_dilated_p.rule("abstract_eval")(*avals, **params)
        self.lhs, self.rhs = avals
        self.params, self.numbers = params, params["dimension_numbers"]
        self.features = self.rhs.shape[self.numbers.rhs_spec[0]]

    def rows(self) -> dict[int, Digit]:
        """By dimension of the result, in the order of its memory: which window it is."""
        lhs, out = self.numbers.lhs_spec, self.numbers.out_spec
        steps = (1, 1, *self.params["window_strides"])
        return {out[n]: (lhs[n], self.out.shape[out[n]], steps[n]) for n in sorted(self._but(1), key=lambda n: out[n])}

    def depth(self) -> dict[int, Digit]:
        """By dimension of the right operand, in the order of its memory: which element of the window it is."""
        lhs, rhs = self.numbers.lhs_spec, self.numbers.rhs_spec
        steps = (1, 1, *self.params["rhs_dilation"])
        return {rhs[n]: (lhs[n], self.rhs.shape[rhs[n]], steps[n]) for n in sorted(self._but(0), key=lambda n: rhs[n])}

    def _but(self, n: int) -> list[int]:
        return [k for k in range(len(self.lhs.shape)) if k != n]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many rows there are, how long they are, and how many columns the other matrix has."""
        rows, depth = (prod(size for _, size, _ in digits.values()) for digits in (self.rows(), self.depth()))
        return rows, depth, self.features

    def compute(self, x: Any, w: Any) -> Any:
        """The product of the patches with the weights, in the layout of the result."""
        rows, depth = self.rows(), self.depth()
        groups, last = [list(rows.values()), list(depth.values())], len(self.lhs.shape) - 1
        behind = any(dim == last for dim, _, _ in rows.values())  # they follow each other in memory: so they shall here
        digits = [*groups[behind], *groups[not behind]]
        summed = [n + (0 if behind else len(rows)) for n in range(len(depth))]
        product = dot_general(self._seen(x, digits), w, ((summed, list(depth)), ((), ())), self.params["precision"])
        dims = [*rows, self.numbers.out_spec[1]]
        return transpose(product, [dims.index(dim) for dim in range(len(dims))])

    def _seen(self, x: Any, digits: Sequence[Digit]) -> Any:
        lows, dilations = [0] * len(self.lhs.shape), [1] * len(self.lhs.shape)
        for n, dim in enumerate(self.numbers.lhs_spec[2:]):
            lows[dim], dilations[dim] = self.params["padding"][n][0], self.params["lhs_dilation"][n]
        order = [dim for dim, size, _ in digits if size != 1]
        order = [*(d for d in range(len(self.lhs.shape)) if d not in order), *order]
        if not any(lows) and set(dilations) == {1} and self._is_moved(digits, order):
            return reshape(transpose(x, order), [size for _, size, _ in digits])
        return patches_p.bind1(x, digits=tuple(digits), lows=tuple(lows), dilations=tuple(dilations))

    def _is_moved(self, digits: Sequence[Digit], order: Sequence[int]) -> bool:
        """Whether nothing but the order of dimensions changes: each of them is moved along by one digit, whole."""
        seen = {dim: (size, step) for dim, size, step in digits if size != 1}
        whole = ((n, 1) if n != 1 else None for n in self.lhs.shape)
        return len(order) == len(self.lhs.shape) and all(seen.get(dim) == n for dim, n in enumerate(whole))

    def pieces(self) -> int:
        """How many parts of the batch are done one after the other."""
        rows, depth, _ = self.sizes
        batch = self.lhs.shape[self._cut()]
        wanted = -(-rows * depth // PIECE)
        return next((n for n in range(min(wanted, batch), batch + 1) if batch % n == 0), 1) if batch else 1

    def _cut(self) -> int:
        """The dimension of the left operand that is cut: the larger of batch and features."""
        return max(self.numbers.lhs_spec[:2], key=lambda dim: self.lhs.shape[dim])

    def in_pieces(self, x: Any, w: Any, count: int) -> Any:
        """A loop over parts of the batch; or over parts of the features, which are added up."""
        if self._cut() == self.numbers.lhs_spec[0]:
            batch = self.numbers.out_spec[0]
            _, parts = scan(lambda _, part: (None, self._again(part, w)), None, _split(x, self._cut(), count))
            return reshape(move_axis(parts, 0, batch), self.out.shape)
        pairs = _split(x, self._cut(), count), _split(w, self.numbers.rhs_spec[1], count)
        zeros = broadcast_in_dim(self.out.dtype.type(0), self.out.shape, ())
        total, _ = scan(lambda total, pair: (add(total, self._again(*pair)), None), zeros, pairs)
        return total

    def _again(self, x: Any, w: Any) -> Any:
        return conv_general_dilated_p.bind1(x, w, **self.params)


def _split(x: Any, dim: int, count: int) -> Any:
    """The parts of ``x`` along a dimension, stacked."""
    sizes = (*x.shape[:dim], count, x.shape[dim] // count, *x.shape[dim + 1 :])
    return move_axis(reshape(x, sizes), dim, 0)


@lru_cache(maxsize=256)
def _program(avals: tuple[ShapedArray, ...], params: tuple[tuple[str, Any], ...]) -> ClosedJaxpr:
    conv = _Convolution(avals, dict(params))
    count = conv.pieces()
    compute = conv.compute if count == 1 else lambda x, w: conv.in_pieces(x, w, count)
    return trace_to_jaxpr(lambda x, w: [compute(x, w)], avals)


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    """Why a convolution isn't done as a product, if so."""
    if params["feature_group_count"] > 1 or params["batch_group_count"] > 1:
        return "each group of features would be a small product"
    sizes = _Convolution(avals, params).sizes
    if min(sizes) < NARROW:
        return f"a product of {sizes[0]} x {sizes[1]} and {sizes[1]} x {sizes[2]} is narrow"
    return None


def program(avals: Sequence[ShapedArray], **params: Any) -> ClosedJaxpr:
    """The program that computes a convolution by a product."""
    return _program(tuple(avals), tuple(params.items()))


def by_products(why_no_product: Any) -> Replace:
    """The lowering, for a library that says which operands it has a product of."""
    return Replace(program, lambda avals, params: why_no_product(avals, params) or why_not(avals, params))
