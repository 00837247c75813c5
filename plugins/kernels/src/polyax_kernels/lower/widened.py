"""Products of narrow floating numbers as products of float32, rounded once.

Libraries have no others, and loops would widen each number as often as it is multiplied, and round each product.
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


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    """Why a product isn't widened, if so."""
    wanted = params.get("preferred_element_type")
    kinds = {a.dtype for a in avals}
    if len(kinds) > 1 or not kinds <= set(NARROW):
        return "its numbers aren't narrow, or not of one type"
    if wanted is not None and np.dtype(wanted) not in (*kinds, FLOAT32):
        return f"its sums are to be of {np.dtype(wanted)}"
    return None


@lru_cache(maxsize=256)
def _program(primitive: Primitive, avals: tuple[ShapedArray, ...], params: tuple[tuple[str, Any], ...]) -> ClosedJaxpr:
    given = dict(params)
    dtype = np.dtype(given["preferred_element_type"] or avals[0].dtype)
    wide = given | {"preferred_element_type": FLOAT32}

    def compute(x: Any, y: Any) -> list[Any]:
        return [convert(primitive.bind1(convert(x, FLOAT32), convert(y, FLOAT32), **wide), dtype)]

    return trace_to_jaxpr(compute, avals)


def _widened(primitive: Primitive) -> Replace:
    program = lambda avals, **params: _program(primitive, tuple(avals), tuple(params.items()))
    return Replace(program, why_not)


LOWERINGS: Mapping[Primitive, LoweringKind] = {p: _widened(p) for p in (dot_general_p, conv_general_dilated_p)}
