"""Products and recurrences of many complex numbers, as products of a few arrays of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.ops.basis import add, squeeze
from polyax.ops.recurrence import shifted
from polyax.ops.slicing import pad, slice_in_dim
from polyax_kernels.lower.complexes.formulas import Parts, formula, number, times

Arrays = tuple[Any, ...]


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
    return _doubling(times, z, (1.0, 0.0), axis, reverse)


@formula("linear_recurrence")
def _recurrence(a: Parts, b: Parts, *, axis: int, reverse: bool) -> Parts:
    return _doubling(_one_after_the_other, (*a, *b), (1.0, 0.0, 0.0, 0.0), axis, reverse)[2:]


def _one_after_the_other(first: Arrays, then: Arrays) -> Arrays:
    """Of functions ``y -> a y + b``."""
    product = times(then[:2], first[2:])
    return *times(then[:2], first[:2]), add(product[0], then[2]), add(product[1], then[3])


def _doubling(
    combine: Callable[[Arrays, Arrays], Arrays], z: Arrays, identity: Sequence[float], axis: int, reverse: bool
) -> Arrays:
    """What ``combine`` makes of everything up to each place along ``axis``: each step reaches twice as far."""
    step = 1
    while step < z[0].shape[axis]:
        before = tuple([shifted(x, e, step, axis, reverse) for x, e in zip(z, identity, strict=True)])
        z = combine(before, z)
        step *= 2
    return z
