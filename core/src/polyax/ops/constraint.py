"""``sharding_constraint[cuts sharding] x``: ``x``, lying on the devices of a mesh as it says, with the same values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.explicit import cuts_of, typed
from polyax.meshes.factors import elementwise
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import UNCONSTRAINED, OpenCuts, PartitionSpec, axes_of, open_cuts, spec_of
from polyax.ops.define import linear

__all__ = ["constrain", "sharding_constraint_p"]

sharding_constraint_p = Primitive("sharding_constraint")


def constrain(x: Any, sharding: NamedSharding) -> Any:
    """``x``, cut as ``sharding`` says wherever a partitioned program has it; dimensions that the spec leaves
    unconstrained are the partitioner's."""
    return sharding_constraint_p.bind1(x, cuts=open_cuts(sharding.spec, aval_of(x).ndim), sharding=sharding)


def _again(x: Any, params: dict[str, Any]) -> Any:
    return sharding_constraint_p.bind1(x, **params)


linear(sharding_constraint_p, lambda ct, _, **params: _again(ct, params))
sharding_constraint_p.decompose = lambda x, **_: [x]
sharding_constraint_p.factors = lambda x, **_: elementwise(x)
sharding_constraint_p.pretty = lambda sharding, **_: {"sharding": sharding}


@def_rule(sharding_constraint_p, "abstract_eval")
def _abstract_eval(x: ShapedArray, *, cuts: OpenCuts, sharding: NamedSharding) -> list[ShapedArray]:
    sharding.cuts(x.ndim)
    return [x]


@def_rule(sharding_constraint_p, "explicit")
def _explicit(ins: Sequence[ShapedArray], _: Any, *, cuts: OpenCuts, sharding: NamedSharding) -> list[ShapedArray]:
    (x,) = ins
    told = [c if o is None else o for c, o in zip(cuts_of(x), cuts, strict=True)]
    return [typed(x, sharding.update(spec=spec_of(tuple(told))))]


@def_rule(sharding_constraint_p, "batch")
def _batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], *, cuts: OpenCuts, sharding: NamedSharding) -> Any:
    """The mapped dimension is open, or cut along the axes that ``spmd_axis_name`` gives."""
    (x,), (dim,) = args, dims
    entry = axis.spmd_name or UNCONSTRAINED
    names = axes_of(entry)
    if taken := {a for c in cuts for a in c or ()}.intersection(names):
        raise ValueError(
            f"vmap's spmd_axis_name {entry!r} names {', '.join(map(repr, taken))}, along which the constraint "
            f"{sharding.spec} inside cuts {x} already: name an axis of the mesh that it leaves free"
        )
    entries = [UNCONSTRAINED if c is None else c or None for c in cuts]
    spec = PartitionSpec(*entries[:dim], entry, *entries[dim:])
    wider = sharding.update(spec=spec)
    return [constrain(x, wider)], [dim]
