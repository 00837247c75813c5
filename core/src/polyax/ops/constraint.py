"""``sharding_constraint[sharding] x``: ``x``, lying on the devices of a mesh as it says, with the same values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.explicit import cuts_of, told
from polyax.meshes.factors import elementwise
from polyax.meshes.sharding import NamedSharding, with_entry
from polyax.meshes.spec import axes_of, open_cuts, spec_of
from polyax.ops.define import linear

__all__ = ["constrain", "sharding_constraint_p"]

sharding_constraint_p = Primitive("sharding_constraint")


def constrain(x: Any, sharding: NamedSharding) -> Any:
    """``x``, cut as ``sharding`` says wherever a partitioned program has it; dimensions that the spec leaves
    unconstrained are the partitioner's."""
    return sharding_constraint_p.bind1(x, sharding=sharding)


linear(sharding_constraint_p, lambda ct, _, sharding: constrain(ct, sharding))
sharding_constraint_p.decompose = lambda x, **_: [x]
sharding_constraint_p.factors = lambda x, **_: replace(elementwise(x), local=lambda place, block, **_: [block])
sharding_constraint_p.pretty = lambda sharding, **_: {"sharding": sharding}


@def_rule(sharding_constraint_p, "abstract_eval")
def _abstract_eval(x: ShapedArray, *, sharding: NamedSharding) -> list[ShapedArray]:
    sharding.cuts(x.ndim)
    return [x]


@def_rule(sharding_constraint_p, "explicit")
def _explicit(ins: Sequence[ShapedArray], _: Any, *, sharding: NamedSharding) -> list[ShapedArray]:
    (x,) = ins
    known = [c if o is None else o for c, o in zip(cuts_of(x), open_cuts(sharding.spec, x.ndim), strict=True)]
    return [told(x, sharding.update(spec=spec_of(tuple(known))))]


@def_rule(sharding_constraint_p, "batch")
def _batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], *, sharding: NamedSharding) -> Any:
    """The mapped dimension is open, or cut along the axes that ``spmd_axis_name`` gives."""
    (x,), (dim,) = args, dims
    names = axes_of(axis.spmd_name or axis.cut or None)
    if taken := {a for c in sharding.spec.cuts(0) for a in c}.intersection(names):
        raise ValueError(
            f"vmap spmd_axis_name {names} cannot appear in with_sharding_constraint spec, but got spec "
            f"{sharding.spec}, which names {', '.join(map(repr, sorted(taken)))}, for {aval_of(x)}, mapped along "
            f"dimension {dim}: name an axis of the mesh that it leaves free"
        )
    return [constrain(x, with_entry(sharding, dim, names))], [dim]
