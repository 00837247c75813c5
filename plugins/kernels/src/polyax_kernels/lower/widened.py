"""Products and running values of narrow floating numbers in float32, rounded once.

Libraries have no other products, and loops would widen each number as often as it is multiplied, and round each
product. Running sums would stand still where a summand is less than half the distance of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive
from polyax.ops.basis import convert
from polyax.ops.contract import dot_general_p
from polyax.ops.conv import conv_general_dilated_p
from polyax.trace.recording import trace_to_jaxpr
from polyax_kernels.ir.limits import FLOAT32, NARROW
from polyax_kernels.lower.lowering import LoweringKind, Replace


def in_float32(primitive: Primitive) -> Replace:
    """``primitive`` on operands that are all of one narrow type, as itself between conversions."""
    return Replace(
        lambda avals, **params: _program(primitive, tuple(avals), tuple(params.items()), avals[0].dtype),
        lambda avals, params: _why_not_narrow(avals),
    )


def _why_not_narrow(avals: Sequence[ShapedArray]) -> str | None:
    kinds = {a.dtype for a in avals}
    return None if len(kinds) == 1 and kinds <= set(NARROW) else "its numbers aren't narrow, or not of one type"


@lru_cache(maxsize=256)
def _program(
    primitive: Primitive, avals: tuple[ShapedArray, ...], params: tuple[tuple[str, Any], ...], dtype: np.dtype
) -> ClosedJaxpr:
    def compute(*xs: Any) -> list[Any]:
        return [convert(primitive.bind1(*[convert(x, FLOAT32) for x in xs], **dict(params)), dtype)]

    return trace_to_jaxpr(compute, avals)


def _product(primitive: Primitive) -> Replace:
    def program(avals: Sequence[ShapedArray], preferred_element_type: Any = None, **params: Any) -> ClosedJaxpr:
        given = (*params.items(), ("preferred_element_type", FLOAT32))
        return _program(primitive, tuple(avals), given, np.dtype(preferred_element_type or avals[0].dtype))

    return Replace(program, why_not)


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    """Why a product isn't widened, if so."""
    wanted = params.get("preferred_element_type")
    reason = _why_not_narrow(avals)
    if reason is None and wanted is not None and np.dtype(wanted) not in (avals[0].dtype, FLOAT32):
        return f"its sums are to be of {np.dtype(wanted)}"
    return reason


LOWERINGS: Mapping[Primitive, LoweringKind] = {p: _product(p) for p in (dot_general_p, conv_general_dilated_p)}
