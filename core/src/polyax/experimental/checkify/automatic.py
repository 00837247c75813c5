"""What is checked without being asked for at each place: a table of primitives, what they need to be enabled, and the
errors of their operands and results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.experimental.checkify.failures import (
    DivisionByZeroError,
    Errors,
    JaxException,
    NaNError,
    OOBError,
    div_checks,
    index_checks,
    nan_checks,
)
from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.ir.jaxpr import Eqn
from polyax.lax import lenient as lax
from polyax.lax import linalg
from polyax.ops.recurrence import linear_recurrence_p

Find = Callable[[Eqn, Sequence[Any], Sequence[Any]], tuple[Any, JaxException] | None]
"""``(equation, operands, results) -> (whether there is an error, which)``; None if there can't be one."""

FINDS: dict[Any, list[tuple[Errors, Find]]] = {}
"""By primitive, in the order in which errors are told: which kinds have to be enabled, and how errors are found."""


def found_by(find: Find, needs: Errors, names: str) -> None:
    """Has the primitives ``name_p`` of ``polyax.lax`` checked by ``find``."""
    for name in names.split():
        FINDS.setdefault(getattr(lax, f"{name}_p"), []).append((needs, find))


def _any(mask: Any) -> Any:
    return lax.reduce_or(mask, tuple(range(np.ndim(mask))))


# --- numbers


def _nan(eqn: Eqn, _: Sequence[Any], outs: Sequence[Any]) -> tuple[Any, JaxException] | None:
    parts = [part for x in outs for part in _real_parts(x)]
    if not parts:
        return None
    found = functools.reduce(lax.bitwise_or, [_any(lax.ne(x, x)) for x in parts])
    return found, NaNError(eqn.source, eqn.primitive.name)


def _real_parts(x: Any) -> list[Any]:
    """What of it may be NaN."""
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        return [lax.real(x), lax.imag(x)]
    return [x] if dtypes.is_inexact(dtype) else []


def _division_by_zero(eqn: Eqn, args: Sequence[Any], _: Sequence[Any]) -> tuple[Any, JaxException]:
    aval = aval_of(args[1])
    return _any(lax.eq(args[1], np.zeros(aval.shape, aval.dtype))), DivisionByZeroError(eqn.source)


# --- indices


def _outside(
    eqn: Eqn, shape: tuple[int, ...], indices: Any, axes: Sequence[int], last: Sequence[int]
) -> tuple[Any, JaxException] | None:
    """Index vectors, along the last dimension of ``indices``, with a component beyond 0 or ``last``: the first one."""
    if not aval_of(indices).size:
        return None
    dtype, width = aval_of(indices).dtype, len(axes)
    top = np.minimum(np.asarray(last, np.int64), np.iinfo(dtype).max).astype(dtype)
    limits = np.broadcast_to(top, aval_of(indices).shape)
    beyond = lax.bitwise_or(lax.lt(indices, np.zeros_like(limits)), lax.gt(indices, limits))
    flat, values = lax.reshape(beyond, (limits.size,)), lax.reshape(indices, (limits.size,))
    first = lax.argmax(flat, 0, np.int32)
    axis = _of(np.asarray(axes, np.int32), lax.rem(first, np.int32(width)))
    values = lax.convert_element_type(_of(values, first), np.int32)
    payload = lax.concatenate([lax.reshape(x, (1,)) for x in (values, axis, _of(np.asarray(shape, np.int32), axis))], 0)
    return _any(flat), OOBError(eqn.source, eqn.primitive.name, shape, payload)


def _of(table: Any, position: Any) -> Any:
    return lax.dynamic_index_in_dim(table, position, 0, keepdims=False)


def _dynamic_slice(eqn: Eqn, args: Sequence[Any], _: Sequence[Any]) -> tuple[Any, JaxException] | None:
    return _window(eqn, aval_of(args[0]).shape, args[1:], eqn.params["slice_sizes"])


def _dynamic_update_slice(eqn: Eqn, args: Sequence[Any], _: Sequence[Any]) -> tuple[Any, JaxException] | None:
    return _window(eqn, aval_of(args[0]).shape, args[2:], aval_of(args[1]).shape)


def _window(
    eqn: Eqn, shape: tuple[int, ...], starts: Sequence[Any], sizes: Sequence[int]
) -> tuple[Any, JaxException] | None:
    if not starts:
        return None
    vector = lax.concatenate([lax.reshape(x, (1,)) for x in starts], 0)
    return _outside(eqn, shape, vector, range(len(shape)), [n - k for n, k in zip(shape, sizes, strict=True)])


def _gather(eqn: Eqn, args: Sequence[Any], _: Sequence[Any]) -> tuple[Any, JaxException] | None:
    shape, axes = aval_of(args[0]).shape, eqn.params["dimension_numbers"].start_index_map
    sizes = eqn.params["slice_sizes"]
    return _outside(eqn, shape, args[1], axes, [shape[a] - sizes[a] for a in axes])


def _scatter(eqn: Eqn, args: Sequence[Any], _: Sequence[Any]) -> tuple[Any, JaxException] | None:
    operand, indices, updates = args
    shape, numbers = aval_of(operand).shape, eqn.params["dimension_numbers"]
    sizes, axes = numbers.window(shape, aval_of(updates).shape), numbers.scatter_dims_to_operand_dims
    return _outside(eqn, shape, indices, axes, [shape[a] - sizes[a] for a in axes])


_SCATTERS = "scatter scatter_add scatter_mul scatter_min scatter_max"

found_by(_division_by_zero, div_checks, "div")
found_by(_dynamic_slice, index_checks, "dynamic_slice")
found_by(_dynamic_update_slice, index_checks, "dynamic_update_slice")
found_by(_gather, index_checks, "gather")
found_by(_scatter, index_checks, _SCATTERS)
found_by(_nan, index_checks | nan_checks, _SCATTERS)  # what is written in bounds is new there only as JAX has it
found_by(
    _nan,
    nan_checks,
    "acos acosh add asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt conv_general_dilated cos cosh cumlogsumexp "
    "cummax cummin cumprod cumsum digamma div dot_general erf erf_inv erfc exp expm1 fft igamma igamma_grad_a igammac "
    "integer_pow lgamma linear_solve log log1p logistic mul pad pow psum reduce reduce_prod reduce_sum reduce_window "
    "reduce_window_sum regularized_incomplete_beta rem rsqrt sin sinh sqrt sub tan tanh",
)
FINDS[linear_recurrence_p] = [(nan_checks, _nan)]  # derivatives of cumulative operations
FINDS[linalg.triangular_solve_p] = [(nan_checks, _nan)]  # which equations are solved by, without one of their own
