"""The last resort of a primitive without kernels: the NumPy reference rules, on the host. Never silent unless asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.engines.host import why_not_on_host
from polyax.ir.primitive import Primitive
from polyax.reference.interpreter import run_on_host
from polyax.reference.rules import RULES
from polyax.reference.rules_collective import reduce_into
from polyax.reference.rules_together import TOGETHER
from polyax_kernels.lower.lowering import Call, CallContext


def host_rule(backend: str, library: frozenset[str] = frozenset()) -> Callable[[Primitive], Call | str]:
    """For ``Rules``: the fallback of a primitive, or why there is none. Those in ``library`` may always be used."""

    def choose(primitive: Primitive) -> Call | str:
        if primitive.name in library and primitive in RULES:
            return on_host(primitive)
        if primitive not in RULES:
            return "no NumPy rule"
        if why_not := why_not_on_host(backend, primitive.name, "it has no kernel for these types"):
            return why_not
        return on_host(primitive)

    return choose


REDUCTIONS = ("psum", "pmax", "pmin")
"""What members of a group write where it belongs, so that large sums are moved once."""


def on_host(primitive: Primitive) -> Call:
    """A call of the reference rule."""
    together = TOGETHER.get(primitive)
    if primitive.name in REDUCTIONS:
        return Call(
            lambda _, outs, args, **params: reduce_into(primitive.name, outs, args, **params), together=together
        )

    def run(_: CallContext, outs: Sequence[np.ndarray], args: Sequence[np.ndarray], **params: Any) -> None:
        results = run_on_host(primitive, args, params)
        for out, result in zip(outs, results, strict=True):
            out[...] = result

    return Call(run, together=together)
