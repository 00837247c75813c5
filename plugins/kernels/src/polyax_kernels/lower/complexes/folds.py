"""Products of many complex numbers, as products of a few arrays of them."""

from __future__ import annotations

from collections.abc import Sequence

from polyax.ops.basis import squeeze
from polyax.ops.cumulative import doubling
from polyax.ops.slicing import pad, slice_in_dim
from polyax_kernels.lower.complexes.formulas import Parts, formula, number, times


@formula("reduce_prod")
def _product(z: Parts, *, axes: Sequence[int]) -> Parts:
    """One half by the other, until there is one number."""
    for axis in axes:
        z = _without(z, axis)
    return squeeze(z[0], tuple(axes)), squeeze(z[1], tuple(axes))


def _without(z: Parts, axis: int) -> Parts:
    while (n := z[0].shape[axis]) > 1:
        product = times(_part(z, 0, n // 2, axis), _part(z, n // 2, 2 * (n // 2), axis))
        z = product if n % 2 == 0 else _times_first(product, _part(z, n - 1, n, axis), axis)
    return z if n else _padded(z, axis, 1)


def _times_first(z: Parts, last: Parts, axis: int) -> Parts:
    """The first number along an axis, times another one."""
    n = z[0].shape[axis]
    return times(z, _padded(last, axis, n - 1))


def _part(z: Parts, start: int, stop: int, axis: int) -> Parts:
    return slice_in_dim(z[0], start, stop, axis=axis), slice_in_dim(z[1], start, stop, axis=axis)


def _padded(z: Parts, axis: int, count: int) -> Parts:
    """With so many ones behind."""
    widths = [(0, count if d == axis else 0, 0) for d in range(len(z[0].shape))]
    return pad(z[0], number(z[0], 1), widths), pad(z[1], number(z[1], 0), widths)


@formula("cumprod")
def _products(z: Parts, *, axis: int, reverse: bool) -> Parts:
    return doubling(times, z, (1.0, 0.0), axis, reverse)
