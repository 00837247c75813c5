"""Linear recurrences of the first order along one dimension: derivatives of cumulative operations."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive
from polyax.meshes.factors import free_but
from polyax.ops.basis import add, mul
from polyax.ops.define import INEXACT, check_dtype, linear, materialize
from polyax.ops.slicing import pad
from polyax.ops.zeros import add_tangents
from polyax.trace.symbolic import Zero

linear_recurrence_p = Primitive("linear_recurrence")


def linear_recurrence(factors: Any, summands: Any, axis: int = 0, reverse: bool = False) -> Any:
    """``y[i] = factors[i] * y[i - 1] + summands[i]`` along ``axis``, with 0 before the first.

    Args:
      factors, summands: arrays of one shape and one floating or complex dtype.
      axis: the dimension.
      reverse: begin at its end, ``y[i] = factors[i] * y[i + 1] + summands[i]``.

    Raises:
      TypeError: they are of different types, or of integers.
      ValueError: they differ in shape, or have no such dimension.

    >>> from polyax.ops.recurrence import linear_recurrence
    >>> import numpy as np
    >>> linear_recurrence(np.array([9.0, 2.0, 3.0], np.float32), np.ones(3, np.float32)).tolist()
    [1.0, 3.0, 10.0]
    """
    return linear_recurrence_p.bind1(factors, summands, axis=index(axis), reverse=bool(reverse))


def shifted(x: Any, fill: Any, step: int, axis: int, reverse: bool) -> Any:
    """``x`` moved by ``step`` along ``axis``, away from where the recurrence begins, behind ``fill``."""
    config = [(0, 0, 0)] * np.ndim(x)
    config[axis] = (-step, step, 0) if reverse else (step, -step, 0)
    return pad(x, fill, config)


def _abstract_eval(factors: ShapedArray, summands: ShapedArray, *, axis: int, reverse: bool) -> list[ShapedArray]:
    check_dtype("linear_recurrence", factors, INEXACT)
    if factors.dtype != summands.dtype:
        raise TypeError(f"linear_recurrence needs factors and summands of one dtype, got {factors} and {summands}")
    if factors.shape != summands.shape:
        raise ValueError(f"linear_recurrence needs a factor for each summand, got {factors} and {summands}")
    if not 0 <= axis < factors.ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of shape {factors.shape}")
    return [summands]


def _batch(axis_data: Any, args: Sequence[Any], dims: Sequence[int | None], *, axis: int, reverse: bool) -> Any:
    moved = materialize(axis_data, args, dims)
    return linear_recurrence_p.bind_all(*moved, axis=axis + 1, reverse=reverse), [0]


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axis: int, reverse: bool) -> Any:
    """The tangents follow the same factors: ``dy[i] = a[i] dy[i-1] + (da[i] y[i-1] + db[i])``."""
    (a, b), (da, db) = primals, tangents
    y = linear_recurrence(a, b, axis, reverse)
    by_factors = da if type(da) is Zero else mul(da, shifted(y, 0.0, 1, axis, reverse))
    total = add_tangents(by_factors, db)
    return [y], [Zero.of(y) if type(total) is Zero else linear_recurrence(a, total, axis, reverse)]


def _transpose(ct: Any, aval: ShapedArray, a: Any, axis: int, reverse: bool) -> Any:
    """``db[i] = ct[i] + a[i+1] db[i+1]``."""
    return linear_recurrence(shifted(a, 0.0, 1, axis, not reverse), ct, axis, not reverse)


def _by_doubling(a: Any, b: Any, *, axis: int, reverse: bool) -> list[Any]:
    """Affine functions ``y -> a y + b`` combine associatively: log2(n) steps, each of twice the distance."""
    size, step = np.shape(a)[axis], 1
    while step < size:
        b = add(mul(a, shifted(b, 0.0, step, axis, reverse)), b)
        a = mul(a, shifted(a, 1.0, step, axis, reverse))
        step *= 2
    return [b]


linear(linear_recurrence_p, _transpose, operand=1)
linear_recurrence_p.abstract_eval, linear_recurrence_p.batch = _abstract_eval, _batch
linear_recurrence_p.jvp, linear_recurrence_p.decompose = _jvp, _by_doubling
linear_recurrence_p.factors = lambda a, b, *, axis, reverse: free_but([a, b], 1, (axis,))
