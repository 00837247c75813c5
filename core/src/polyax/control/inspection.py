"""``inspect_sharding[callback] x``: ``callback`` is told how ``x`` lies, when the program is compiled for the devices
that run it. Of what they run, it is no part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.effects import Effects, debug_effect
from polyax.ir.jaxpr import ClosedJaxpr, walk_eqns
from polyax.ir.primitive import Primitive, def_rule

Look = Callable[[Any], None]
"""What is called with a sharding."""

inspect_sharding_p = Primitive("inspect_sharding", multiple_results=True)
inspect_sharding_p.never("transpose", "it has no result")
inspect_sharding_p.never("factors", "it does nothing with its operand")


def looks_in(program: ClosedJaxpr) -> list[Look]:
    """Those who want to know how values of the program lie."""
    if debug_effect not in program.effects:
        return []
    return [e.params["callback"] for e in walk_eqns(program.jaxpr) if e.primitive is inspect_sharding_p]


@def_rule(inspect_sharding_p, "abstract_eval")
def _abstract(_: ShapedArray, **__: Any) -> tuple[list[ShapedArray], Effects]:
    return [], frozenset({debug_effect})


@def_rule(inspect_sharding_p, "decompose")
def _nothing(_: Any, **__: Any) -> list[Any]:
    return []


@def_rule(inspect_sharding_p, "jvp")
def _jvp(primals: Sequence[Any], _: Any, **params: Any) -> Any:
    return inspect_sharding_p.bind(*primals, **params), []


@def_rule(inspect_sharding_p, "batch")
def _batch(_: Any, args: Sequence[Any], __: Any, **params: Any) -> Any:
    """Told of is how all examples lie."""
    return inspect_sharding_p.bind(*args, **params), []
