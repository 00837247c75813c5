"""Comparisons, choices (select_n, clamp), logic and bit operations on integers. What gives or takes booleans."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.dtypes import BOOL, full_name, is_integer
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.factors import elementwise as elementwise_factors
from polyax.ops.basis import (
    binary,
    broadcast_in_dim,
    eq_p,
    full_like,
    match_axis,
    same_dtype,
    select_n,
    select_n_p,
    unary,
    zeros,
)
from polyax.ops.define import (
    ANY_OR_KEY,
    INT_OR_BOOL,
    INTEGER,
    ORDERED,
    Accepts,
    check_same_dtype,
    elementwise,
    linear_jvp,
)
from polyax.ops.zeros import add_tangents, zero_cotangents
from polyax.trace.symbolic import Zero, is_undef

__all__ = [
    "and_p", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "clamp", "clamp_p", "clz", "clz_p", "eq_to_p",
    "ge", "ge_p", "gt", "gt_p", "le", "le_p", "le_to_p", "lt", "lt_p", "lt_to_p", "mulhi", "mulhi_p", "ne", "ne_p",
    "not_p", "or_p", "population_count", "population_count_p", "select", "shift_left", "shift_left_p",
    "shift_right_arithmetic", "shift_right_arithmetic_p", "shift_right_logical", "shift_right_logical_p", "xor_p",
]  # fmt: skip

# --- comparisons ----------------------------------------------------------------------------------------------------


def _to_bool(*dtypes: Any) -> Any:
    return np.dtype(bool)


def _comparison(name: str | Primitive, accepts: Accepts) -> Primitive:
    return elementwise(name, (accepts, accepts), out=_to_bool)


_comparison(eq_p, ANY_OR_KEY)
ne_p = _comparison("ne", ANY_OR_KEY)
ge_p = _comparison("ge", ORDERED)
gt_p = _comparison("gt", ORDERED)
le_p = _comparison("le", ORDERED)
lt_p = _comparison("lt", ORDERED)

ne = binary(ne_p, "Elementwise ``x != y``.")
ge = binary(ge_p, "Elementwise ``x >= y``.")
gt = binary(gt_p, "Elementwise ``x > y``.")
le = binary(le_p, "Elementwise ``x <= y``.")
lt = binary(lt_p, "Elementwise ``x < y``.")

# The total order -NaN < -inf < ... < -0 < +0 < ... < inf < NaN, in which sorts compare.
eq_to_p = _comparison("eq_to", ORDERED)
le_to_p = _comparison("le_to", ORDERED)
lt_to_p = _comparison("lt_to", ORDERED)

# --- logic and bits -------------------------------------------------------------------------------------------------

and_p = elementwise("and", (INT_OR_BOOL, INT_OR_BOOL))
or_p = elementwise("or", (INT_OR_BOOL, INT_OR_BOOL))
xor_p = elementwise("xor", (INT_OR_BOOL, INT_OR_BOOL))
not_p = elementwise("not", INT_OR_BOOL)
shift_left_p = elementwise("shift_left", (INTEGER, INTEGER))
shift_right_arithmetic_p = elementwise("shift_right_arithmetic", (INTEGER, INTEGER))
shift_right_logical_p = elementwise("shift_right_logical", (INTEGER, INTEGER))
population_count_p = elementwise("population_count", INTEGER)
clz_p = elementwise("clz", INTEGER)
mulhi_p = elementwise("mulhi", (INTEGER, INTEGER))

bitwise_and = binary(and_p, "Elementwise and, of bits or booleans.", "bitwise_and")
bitwise_or = binary(or_p, "Elementwise or, of bits or booleans.", "bitwise_or")
bitwise_xor = binary(xor_p, "Elementwise exclusive or, of bits or booleans.", "bitwise_xor")
bitwise_not = unary(not_p, "Elementwise complement, of bits or booleans.", "bitwise_not")
shift_left = binary(shift_left_p, "``x << y``; 0 for shifts of the width or more.")
shift_right_arithmetic = binary(shift_right_arithmetic_p, "``x >> y``, copying the sign bit.")
shift_right_logical = binary(
    shift_right_logical_p, "``x >> y``, filling with zeros; 0 for shifts of the width or more."
)
population_count = unary(population_count_p, "The number of set bits.")
clz = unary(clz_p, "The number of zero bits above the highest set bit.")
mulhi = binary(mulhi_p, "The upper half of the product of two integers.")

# --- select_n -------------------------------------------------------------------------------------------------------


@def_rule(select_n_p, "abstract_eval")
def _select_abstract(which: ShapedArray, *cases: ShapedArray) -> list[ShapedArray]:
    first = cases[0]
    if any(c.shape != first.shape for c in cases):
        listed = ", ".join(str(c.shape) for c in cases)
        raise TypeError(f"select cases must have the same shapes, got [{listed}].")
    if which.shape not in ((), first.shape):
        raise TypeError(
            "select `which` must be scalar or have the same shape as cases, "
            f"got `which` shape {which.shape} but case shape {first.shape}."
        )
    check_same_dtype("select", cases)
    if not (which.dtype in BOOL or is_integer(which.dtype)):
        raise TypeError(f"select `which` must be boolean or integer type, got {full_name(which.dtype)}.")
    if which.dtype in BOOL and len(cases) > 2:
        raise TypeError("select with boolean `which` cannot have > 2 cases.")
    return [ShapedArray(first.shape, first.dtype, all(c.weak_type for c in cases))]


@def_rule(select_n_p, "transpose")
def _select_transpose(cts: Any, which: Any, *cases: Any) -> list[Any]:
    (ct,) = cts
    if type(ct) is Zero:
        return [None, *zero_cotangents(*cases)]
    zero = zeros(ct.aval) if hasattr(ct, "aval") else full_like(ct, 0)

    def of(i: int, case: Any) -> Any:
        if not is_undef(case):
            return None
        return select_n_p.bind1(which, *(ct if i == j else zero for j in range(len(cases))))

    return [None, *(of(i, c) for i, c in enumerate(cases))]


select_n_p.elementwise = True
select_n_p.jvp = linear_jvp(select_n_p, slice(1, None))
select_n_p.factors = elementwise_factors
select_n_p.linear_in = ()  # jointly linear in its cases, not in one of them


@def_rule(select_n_p, "batch")
def _select_batch(axis: Any, args: Any, dims: Any) -> Any:
    which, *cases = args
    if dims[0] is None and np.ndim(which) == 0 and len(set(dims[1:])) == 1:
        return select_n_p.bind_all(which, *cases), [dims[1]]
    cases = [match_axis(axis, d, 0, c) for c, d in zip(cases, dims[1:], strict=True)]
    if dims[0] is None and np.ndim(which) == 0:
        return select_n_p.bind_all(which, *cases), [0]
    which = match_axis(axis, dims[0], 0, which)
    return select_n_p.bind_all(_stretch(which, np.shape(cases[0])), *cases), [0]


def _stretch(which: Any, shape: tuple[int, ...]) -> Any:
    """One choice per example, as one per element."""
    return which if np.shape(which) == shape else broadcast_in_dim(which, shape, range(np.ndim(which)))


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """Elementwise ``on_true if pred else on_false``; ``pred`` is boolean, of their shape or scalar."""
    return select_n(pred, on_false, on_true)


# --- clamp ----------------------------------------------------------------------------------------------------------

clamp_p = Primitive("clamp")


def clamp(min: Any, x: Any, max: Any) -> Any:
    """``x`` limited to [``min``, ``max``]; both scalars or of the shape of ``x``.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.clamp(0, jnp.array([-1, 3, 9]), 5).tolist()
    [0, 3, 5]
    """
    x, min, max = same_dtype(x, min, max)
    return clamp_p.bind1(min, x, max)


@def_rule(clamp_p, "abstract_eval")
def _clamp_abstract(low: ShapedArray, x: ShapedArray, high: ShapedArray) -> list[ShapedArray]:
    for name, bound in (("min", low), ("max", high)):
        if bound.shape not in ((), x.shape):
            raise TypeError(
                f"clamp requires {name}.shape == operand.shape or {name}.shape == (), "
                f"got {name}.shape={bound.shape}, operand.shape={x.shape}."
            )
    check_same_dtype("clamp", (low, x, high))
    return [ShapedArray(x.shape, x.dtype, low.weak_type and x.weak_type and high.weak_type)]


@def_rule(clamp_p, "jvp")
def _clamp_jvp(primals: Any, tangents: Any) -> Any:
    """The tangent of whichever operand the result comes from; of ``x`` only strictly inside the bounds."""
    low, x, high = primals
    y = clamp_p.bind1(low, x, high)
    from_low = bitwise_and(gt(low, x), lt(low, high))
    from_x = bitwise_and(gt(x, low), lt(x, high))
    from_high = bitwise_or(lt(high, x), bitwise_and(lt(high, low), lt(x, low)))
    total: Any = Zero.of(y)
    for chosen, t in zip((from_low, from_x, from_high), tangents, strict=True):
        if type(t) is not Zero:
            t = broadcast_in_dim(t, np.shape(y), ()) if np.ndim(t) < np.ndim(y) else t
            total = add_tangents(total, select(chosen, t, full_like(t, 0)))
    return [y], [total]


clamp_p.never("transpose", "clamp is not linear")
clamp_p.factors = elementwise_factors


@def_rule(clamp_p, "batch")
def _clamp_batch(axis: Any, args: Any, dims: Any) -> Any:
    low, x, high = args
    if dims[0] is None and dims[2] is None and np.ndim(low) == np.ndim(high) == 0:
        return clamp_p.bind_all(low, x, high), [dims[1]]
    x = match_axis(axis, dims[1], 0, x)
    bounds = [_clamp_bound(axis, b, d, np.shape(x)) for b, d in ((low, dims[0]), (high, dims[2]))]
    return clamp_p.bind_all(bounds[0], x, bounds[1]), [0]


def _clamp_bound(axis: Any, bound: Any, dim: int | None, shape: tuple[int, ...]) -> Any:
    if dim is None and np.ndim(bound) == 0:
        return bound
    return _stretch(match_axis(axis, dim, 0, bound), shape)
