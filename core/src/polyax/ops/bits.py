"""Random bits: the counter-based generator threefry2x32.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.dtypes import full_name
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.factors import Factors, elementwise
from polyax.ops.define import align, broadcast_shape, flat_jvp

threefry2x32_p = Primitive("threefry2x32", multiple_results=True)


def threefry2x32(key0: Any, key1: Any, count0: Any, count1: Any) -> list[Any]:
    """Twenty rounds of threefry on two words of key and two of counter.

    All are ``uint32`` and broadcast as elementwise operands do; the results are two arrays of the common shape.
    """
    return threefry2x32_p.bind(key0, key1, count0, count1)


@def_rule(threefry2x32_p, "abstract_eval")
def _abstract(*avals: ShapedArray) -> list[ShapedArray]:
    if any(a.dtype != np.uint32 for a in avals):
        raise TypeError(f"Arguments to threefry2x32 must have uint32 type, got {[full_name(a.dtype) for a in avals]}")
    shape = broadcast_shape("threefry2x32", [a.shape for a in avals])
    return [ShapedArray(shape, avals[0].dtype)] * 2


@def_rule(threefry2x32_p, "factors")
def _factors(*avals: ShapedArray) -> Factors:
    found = elementwise(*avals)
    return replace(found, outs=found.outs * 2)


threefry2x32_p.jvp = flat_jvp(threefry2x32_p)
threefry2x32_p.never("transpose", "random bits are integers, which have no cotangents")


@def_rule(threefry2x32_p, "batch")
def _batch(axis: Any, args: Any, dims: Any) -> Any:
    operands, dim = align(args, dims)
    return threefry2x32_p.bind(*operands), [dim, dim]
