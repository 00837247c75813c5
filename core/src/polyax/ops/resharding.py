"""Changing what types tell of how values are cut, and ``out_sharding=``, with which a user says it of a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import def_rule
from polyax.meshes.axes import AbstractMesh
from polyax.meshes.current import get_abstract_mesh, mesh_in_force
from polyax.meshes.explicit import cuts_of, mesh_of
from polyax.meshes.factors import elementwise
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import UNCONSTRAINED, PartitionSpec
from polyax.ops.constraint import OpenCuts, open_cuts
from polyax.ops.define import linear
from polyax.trace.explicit import reshard_p, retyped, untyped

__all__ = ["placed_as", "reshard_p", "resharded", "sharding_for"]


def resharded(x: Any, sharding: NamedSharding) -> Any:
    """``x``, cut as ``sharding`` says, which its type tells along explicit axes."""
    return reshard_p.bind1(x, sharding=sharding, cuts=open_cuts(sharding, aval_of(x).ndim))


def placed_as(out_sharding: Any, compute: Callable[..., Any], *operands: Any, **params: Any) -> Any:
    """``compute(*operands, **params)``, cut as ``out_sharding`` says, however operands are cut."""
    sharding = sharding_for(out_sharding, [aval_of(x) for x in operands if hasattr(x, "aval")])
    return resharded(compute(*[untyped(x) if hasattr(x, "aval") else x for x in operands], **params), sharding)


def sharding_for(given: Any, avals: Sequence[ShapedArray], name: str = "out_sharding") -> NamedSharding:
    """What a user says of a result, on the mesh in force, or the one that types of operands tell of.

    Raises:
      ValueError: there is no mesh.
      TypeError: it is no sharding.
    """
    if isinstance(given, NamedSharding):
        return given
    if not isinstance(given, PartitionSpec):
        raise TypeError(f"`{name}` should be a NamedSharding or a PartitionSpec, got {given!r} of type {type(given)}")
    mesh = mesh_for_types(avals)
    if mesh is None:
        raise ValueError(
            f"Please set a mesh via `polyax.set_mesh` if a PartitionSpec is passed to `{name}`, got {given}, or pass a "
            "NamedSharding."
        )
    return NamedSharding(mesh, given)


def mesh_for_types(avals: Sequence[ShapedArray]) -> Mesh | AbstractMesh | None:
    """The mesh in force, with its devices if its axes have the types in force; else the one that types tell of."""
    abstract, mesh = get_abstract_mesh(), mesh_in_force()
    if mesh is not None and (mesh.abstract_mesh == abstract or abstract.empty):
        return mesh
    return mesh_of(avals) if abstract.empty else abstract


# --- rules of the primitive -----------------------------------------------------------------------------------------

linear(reshard_p, lambda ct, x, **_: retyped(ct, x))
reshard_p.decompose = lambda x, **_: [x]
reshard_p.factors = lambda x, **_: elementwise(x)
reshard_p.pretty = lambda sharding, **_: {} if sharding is None else {"sharding": sharding.spec}


@def_rule(reshard_p, "batch")
def _batch(axis: Any, args: Any, dims: Any, *, sharding: NamedSharding | None, cuts: OpenCuts) -> Any:
    """The mapped dimension stays cut as it is."""
    (x,), (dim,) = args, dims
    if sharding is None:
        return [untyped(x)], [dim]
    names = cuts_of(aval_of(x))[dim]
    entries = [UNCONSTRAINED if c is None else c or None for c in cuts]
    entry = names or UNCONSTRAINED
    wider = sharding.update(spec=PartitionSpec(*entries[:dim], entry, *entries[dim:]))
    return [resharded(x, wider)], [dim]
