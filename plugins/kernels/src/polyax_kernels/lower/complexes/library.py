"""Library calls on complex numbers: they see words as what these are, and know of nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.effects import Effects
from polyax.ir.jaxpr import Eqn
from polyax.ir.primitive import Primitive, def_rule
from polyax_kernels.lower.complexes.pair import AFTERWARDS, Pair, as_words, is_complex

library_p = Primitive("library")
"""What ``eqn`` computes, on the words of complex numbers."""
for _rule in ("jvp", "transpose", "batch", "factors"):
    library_p.never(_rule, AFTERWARDS)


@def_rule(library_p, "abstract_eval")
def _abstract_eval(*_: ShapedArray, eqn: Eqn) -> tuple[list[ShapedArray], Effects]:
    return [as_words(v.aval) for v in eqn.outvars], eqn.effects


def called(eqn: Eqn, args: Sequence[Any]) -> list[Any]:
    """The results of an equation that a library computes."""
    outs = library_p.bind_all(*[x.words if isinstance(x, Pair) else x for x in args], eqn=eqn)
    return [Pair(words=x) if is_complex(v.aval) else x for x, v in zip(outs, eqn.outvars, strict=True)]


def behind(eqn: Eqn) -> Eqn:
    """The equation that a library computes; any other is itself."""
    return eqn.params["eqn"] if eqn.primitive is library_p else eqn


def types(eqn: Eqn) -> tuple[tuple[ShapedArray, ...], tuple[ShapedArray, ...]]:
    """Of its operands and its results."""
    return tuple([a.aval for a in eqn.invars]), tuple([v.aval for v in eqn.outvars])
