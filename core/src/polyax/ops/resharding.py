"""The rules of ``reshard``, which changes what types tell of how a value is cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import def_rule
from polyax.meshes.explicit import cotangent_type, cuts_of
from polyax.meshes.factors import elementwise
from polyax.meshes.resharding import reshard_p, resharded, retyped, untyped
from polyax.meshes.sharding import NamedSharding, with_entry
from polyax.meshes.spec import PartitionSpec
from polyax.ops.define import linear

__all__ = ["reshard_p", "retyped"]


def _brought_back(ct: Any, x: ShapedArray, sharding: NamedSharding | None) -> Any:
    """Where types tell all of how values lie, what isn't cut is brought together again."""
    told = cotangent_type(x)
    if told.told is None and sharding is not None and sharding.mesh.are_all_axes_explicit:
        return resharded(ct, sharding.update(spec=PartitionSpec()))
    return retyped(ct, told)


linear(reshard_p, _brought_back)
reshard_p.decompose = lambda x, **_: [x]
reshard_p.factors = lambda x, **_: replace(elementwise(x), local=lambda place, block, **_: [block])
reshard_p.pretty = lambda **_: {}  # the type of the result tells it


@def_rule(reshard_p, "batch")
def _batch(axis: Any, args: Any, dims: Any, *, sharding: NamedSharding | None) -> Any:
    """The mapped dimension stays cut as it is."""
    (x,), (dim,) = args, dims
    if sharding is None:
        return [untyped(x)], [dim]
    return [resharded(x, with_entry(sharding, dim, cuts_of(aval_of(x))[dim] or axis.cut))], [dim]
