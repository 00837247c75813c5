"""What has effects, or is computed outside of programs, happens on one device: the first along each axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.control.flow.cond import cond_p
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.jaxpr import Eqn
from polyax.ops.basis import convert_element_type, eq
from polyax.ops.collective import axis_index, axis_size
from polyax.ops.exchange import pbroadcast
from polyax.ops.zeros import zeros_like_aval
from polyax.partition.shares import Names
from polyax.trace.recording import trace_to_jaxpr

Sent = list[tuple[ShapedArray, Any, int]]
"""Of each exchange the type of what a device hands in, the axis, and the bytes that it sends."""


def on_the_first(eqn: Eqn, args: Sequence[Any], axes: Names) -> tuple[list[Any], Sent]:
    """The results of ``eqn`` for whole operands, which the first device computes and tells the others."""
    if not axes:
        return eqn.apply(args), []
    avals = [aval_of(x) for x in args]
    outs = [v.aval for v in eqn.outvars]
    do = trace_to_jaxpr(lambda *xs: eqn.apply(xs), avals)
    skip = trace_to_jaxpr(lambda *_: [zeros_like_aval(a) for a in outs], avals)
    first = convert_element_type(eq(axis_index(axes), np.int32(0)), "int32")
    results = cond_p.bind(first, *args, branches=(skip, do))
    sent: Sent = []
    for axis in axes:
        results = [pbroadcast(x, axis, 0) for x in results]
        sent += [(a, axis, a.nbytes * (axis_size(axis) - 1)) for a in outs]
    return results, sent
