"""Convolutions as matrix products: windows of the left operand are rows (or columns) of a matrix that nobody stores.

Gradients are convolutions of other layouts, and products as well. Knows nothing of how products are computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ops.conv import conv_general_dilated_p
from polyax_kernels.gpu.products.matrices import Digit, Gathered, Matrices, size
from polyax_kernels.gpu.products.multiply import by_tiles
from polyax_kernels.gpu.products.product import Product

Digits = tuple[Digit[int], ...]


def describe(avals: Sequence[ShapedArray], out: ShapedArray, params: Mapping[str, Any]) -> Product:
    """The product that a ``conv_general_dilated`` is.

    Where features are the last dimension of the result, its rows are positions; else features are the rows, positions
    behind them in memory the columns, and those before them a batch.
    """
    conv = _Convolution(avals, out, params)
    before, after = conv.positions()
    features, groups = conv.features, conv.groups
    rows, columns = size(before), size(after)
    dtypes = np.dtype(avals[0].dtype), np.dtype(out.dtype)
    if not after:
        matrices = conv.patches((), before), conv.weights(1)
        return Product(groups, rows, features, conv.depth, *matrices, *dtypes, groups * features, features)
    matrices, step = (conv.weights(rows), conv.patches(before, after)), features * columns
    return Product(rows * groups, features, columns, conv.depth, *matrices, *dtypes, columns, step, order=(1, 0))


class _Convolution:
    """Sizes and steps, by the names that the formula in lowerings/convolve.py has."""

    def __init__(self, avals: Sequence[ShapedArray], out: ShapedArray, params: Mapping[str, Any]) -> None:
        self.lhs, self.rhs = (a.shape for a in avals)
        self.out, self.params = out.shape, params
        self.numbers = params["dimension_numbers"]
        self.groups = params["feature_group_count"] * params["batch_group_count"]
        self.features = self.rhs[self.numbers.rhs_spec[0]] // self.groups

    @property
    def depth(self) -> int:
        """How many products an element of the result is the sum of."""
        return prod(self.rhs[dim] for dim in self.numbers.rhs_spec[1:])

    def positions(self) -> tuple[Digits, Digits]:
        """What moves windows over the left operand: the dimensions of the result before and behind its features."""
        batch, feature, *spatial = self.numbers.out_spec
        moves = {batch: Digit(self.out[batch], _step(self.lhs, self.numbers.lhs_spec[0]))}
        for n, dim in enumerate(spatial):
            moves[dim] = Digit(self.out[dim], self.params["window_strides"][n], n)
        dims = [dim for dim in sorted(moves) if self.out[dim] != 1]
        return tuple(moves[d] for d in dims if d < feature), tuple(moves[d] for d in dims if d > feature)

    def patches(self, batch: Digits, lanes: Digits) -> Matrices:
        """The left operand, as what windows see."""
        steps = [_step(self.lhs, dim) for dim in self.numbers.lhs_spec]
        if self.params["feature_group_count"] > 1:
            group = Digit(self.groups, steps[1] * self.rhs[self.numbers.rhs_spec[1]])
        else:
            group = Digit(self.groups, steps[0] * (self.lhs[self.numbers.lhs_spec[0]] // self.groups))
        channels, *window = (self.rhs[dim] for dim in self.numbers.rhs_spec[1:])
        digits = [Digit(channels, steps[1])]
        digits += [Digit(size, self.params["rhs_dilation"][n], n) for n, size in enumerate(window)]
        windows = tuple(
            Gathered(self.lhs[dim], _step(self.lhs, dim), -self.params["padding"][n][0], self.params["lhs_dilation"][n])
            for n, dim in enumerate(self.numbers.lhs_spec[2:])
        )
        return Matrices((*batch, group), lanes, tuple(digits[n] for n in self._order()), windows).simplified()

    def weights(self, repeated: int) -> Matrices:
        """The right operand, the same for each of ``repeated`` items of a batch."""
        feature, *rest = self.numbers.rhs_spec
        step = _step(self.rhs, feature)
        digits = [Digit(self.rhs[dim], _step(self.rhs, dim)) for dim in rest]
        batch = Digit(repeated, 0), Digit(self.groups, self.features * step)
        depth = tuple(digits[n] for n in self._order())
        return Matrices(batch, (Digit(self.features, step),), depth).simplified()

    def _order(self) -> list[int]:
        """Input features and the window's dimensions, as they follow each other in the left operand's memory."""
        dims = self.numbers.lhs_spec[1:]
        return sorted(range(len(dims)), key=lambda n: dims[n])


def _step(shape: Sequence[int], dim: int) -> int:
    return prod(shape[dim + 1 :])


def _product(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> Product:
    (out,) = conv_general_dilated_p.rule("abstract_eval")(*avals, **params)
    return describe(avals, out, params)


CONVOLUTION = by_tiles(_product)
