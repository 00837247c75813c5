"""Values with names: what ``checkpoint`` saves can be told by them. A name changes nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.factors import elementwise

name_p = Primitive("name")
"""``name[name=...] x``: ``x``, under a name that policies know."""
name_p.linear_in = (0,)
name_p.factors = elementwise


@def_rule(name_p, "abstract_eval")
def _abstract_eval(x: ShapedArray, *, name: str) -> list[ShapedArray]:
    return [x]


@def_rule(name_p, "jvp")
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, name: str) -> Any:
    return [name_p.bind1(*primals, name=name)], list(tangents)


@def_rule(name_p, "batch")
def _batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, name: str) -> Any:
    return name_p.bind_all(*args, name=name), list(dims)


@def_rule(name_p, "transpose")
def _transpose(cts: Sequence[Any], x: Any, *, name: str) -> list[Any]:
    return list(cts)
