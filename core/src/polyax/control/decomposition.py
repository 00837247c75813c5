"""Primitives in terms of others: the program that takes an equation's place where nothing runs it as it is.

Must not know which primitives these are: they carry a ``decompose`` rule.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from polyax.ir.config import config
from polyax.ir.jaxpr import ClosedJaxpr, Eqn
from polyax.ir.primitive import ambient
from polyax.ir.source import Source
from polyax.trace.recording import trace_to_jaxpr


def decomposition(eqn: Eqn) -> ClosedJaxpr:
    """What ``eqn`` is made of, whose primitive has a ``decompose`` rule; its constants are NumPy arrays.

    Raises:
      TypeError: the rule gives results of other types than the primitive has.
    """
    primitive, avals = eqn.primitive, tuple([a.aval for a in eqn.invars])
    key = primitive.decompose, primitive.name, avals, tuple(eqn.params.items()), eqn.source, config.trace_key()
    try:
        hash(key)
    except TypeError:  # an unhashable parameter: traced each time, as nothing tells it from another
        closed = _traced.__wrapped__(*key)
    else:
        closed = _traced(*key)
    found, wanted = closed.out_avals, [v.aval for v in eqn.outvars]
    if [(a.shape, a.dtype) for a in found] != [(a.shape, a.dtype) for a in wanted]:
        types = [" ".join(a.str_short() for a in some) or "no results" for some in (found, wanted)]
        raise TypeError(f"the decomposition of {primitive.name!r} gives {types[0]}, its abstract evaluation {types[1]}")
    return closed


@lru_cache(256)
def _traced(rule: Any, name: str, avals: Any, params: Any, source: Source | None, settings: int) -> ClosedJaxpr:
    def fun(*args: Any) -> list[Any]:
        ambient.source = source  # the line that asked for the primitive asked for all of this
        return rule(*args, **dict(params))

    closed = trace_to_jaxpr(fun, avals, name=name)
    return ClosedJaxpr(closed.jaxpr, [np.asarray(x) for x in closed.consts])
