"""Sharding in types: what a type tells of how an array lies on a mesh, which is how it is cut along explicit axes.

A type in which nothing is cut tells nothing: what it has ``told`` is None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from polyax.ir.aval import NO_SUMS, ShapedArray
from polyax.ir.config import config
from polyax.meshes.axes import AbstractMesh, seen
from polyax.meshes.current import get_abstract_mesh
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import (
    NO_AXES,
    UNCONSTRAINED,
    Cuts,
    PartitionSpec,
    Sums,
    axes_of,
    spec_of,
    summands,
    sums_of,
    uncut,
)

__all__ = [
    "as_told",
    "cotangent_type",
    "cuts_of",
    "fixed_cuts",
    "in_types",
    "mesh_here",
    "mesh_of",
    "reduced_in",
    "seen",
    "sharding_in_type",
    "sharding_of",
    "told",
    "typed",
    "with_dim",
    "without_dim",
]  # fmt: skip


def in_types(sharding: NamedSharding, ndim: int) -> NamedSharding | None:
    """What the types of arrays that lie so tell."""
    return _in_types(sharding, ndim, config.get("remove_size_one_mesh_axis_from_type"))


@lru_cache(4096)
def _in_types(sharding: NamedSharding, ndim: int, without_ones: bool) -> NamedSharding | None:
    mesh: AbstractMesh = sharding.mesh.abstract_mesh
    explicit = set(mesh.explicit_axes) - (ones_in(mesh) if without_ones else NO_AXES)
    if not explicit:
        return None
    cuts = [tuple([a for a in names if a in explicit]) for names in sharding.cuts(ndim)]
    spec = sharding.spec
    return sharding_in_type(mesh, summands(cuts, spec.unreduced & explicit), spec.reduced & explicit)


def ones_in(mesh: Mesh | AbstractMesh) -> frozenset[Any]:
    """The axes of one device."""
    return frozenset(a for a, size in mesh.axes if size == 1)


def as_told(sharding: NamedSharding) -> PartitionSpec:
    """What the spec says of axes that types tell of: not those of one device, if these are left out of types."""
    ones = ones_in(sharding.mesh) if config.get("remove_size_one_mesh_axis_from_type") else NO_AXES
    spec = sharding.spec
    if not ones:
        return spec
    left = [p if p is UNCONSTRAINED else tuple([a for a in axes_of(p) if a not in ones]) for p in spec.partitions]
    return PartitionSpec(*left, unreduced=spec.unreduced - ones, reduced=spec.reduced - ones)


def sharding_in_type(mesh: AbstractMesh, cuts: Cuts, reduced: Sums = NO_AXES) -> NamedSharding | None:
    """The field ``sharding`` of the type of arrays that are cut so along explicit axes."""
    if not any(cuts) and not sums_of(cuts) and not reduced:
        return None
    return NamedSharding(mesh, spec_of(cuts, reduced))


def _fitted(shape: tuple[int, ...], sharding: Any) -> Any:
    """With an entry for each dimension.

    Raises:
      ValueError: a dimension doesn't fall into equal blocks, or the mesh has devices, of which types don't tell.
    """
    return _fitting(shape, sharding) if isinstance(sharding, NamedSharding) else sharding


@lru_cache(4096)
def _fitting(shape: tuple[Any, ...], sharding: NamedSharding) -> NamedSharding:
    if isinstance(sharding.mesh, Mesh):
        raise ValueError(f"Mesh of an aval must be an AbstractMesh. Got {sharding.mesh} of type {type(sharding.mesh)}")
    sharding = sharding.of_rank(len(shape))
    sizes, cuts, free = sharding.mesh.shape, sharding.cuts(len(shape)), sharding.mesh.auto_axes
    if any(a in free for names in cuts for a in names):  # types don't tell of what is the partitioner's
        told = [tuple([a for a in names if a not in free]) for names in cuts]
        cuts, sharding = told, sharding.update(spec=spec_of(summands(told, sums_of(cuts)), sharding.spec.reduced))
    for d, (n, names) in enumerate(zip(shape, cuts, strict=True)):
        parts = math.prod(sizes[a] for a in names)
        if isinstance(n, int) and n % parts:
            raise ValueError(
                f"Sharding spec {names} implies that array axis {d} is partitioned {parts} times, but does not evenly "
                f"divide the dimension size {n}. Got shape: {shape} and sharding {sharding}"
            )
    missing = len(shape) - len(sharding.spec)
    entries = (*sharding.spec.partitions, *[None] * missing)
    return sharding.update(spec=sharding.spec.update(partitions=entries)) if missing else sharding


@lru_cache(512)
def _uncut_on(mesh: AbstractMesh, ndim: int) -> NamedSharding:
    return NamedSharding(mesh, PartitionSpec(*[None] * ndim))


ShapedArray.fitted = staticmethod(_fitted)
ShapedArray.uncut = staticmethod(lambda ndim: _uncut_on(get_abstract_mesh(), ndim))


def sharding_of(x: Any) -> Any:
    """How something lies, or is to lie: an array, a type, or what has no more than a shape; None if nothing is said."""
    return x.told if isinstance(x, ShapedArray) else getattr(x, "sharding", None)


def typed(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """The type of an array that lies as ``sharding`` says."""
    told = in_types(sharding, aval.ndim) if isinstance(sharding, NamedSharding) else None
    return aval if told is aval.told and aval.placed else aval.update(sharding=told)


def told(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """``typed``, by the types that the axes of the mesh have where this is asked: within ``auto_axes``, say."""
    if not seen.any or not isinstance(sharding, NamedSharding):
        return aval if aval.told is None else aval.update(sharding=None)
    mesh = mesh_here(sharding.mesh)
    return typed(aval, sharding if mesh is sharding.mesh else NamedSharding(mesh, sharding.spec))


def mesh_here(mesh: Mesh | AbstractMesh) -> Mesh | AbstractMesh:
    """The mesh, with its axes of the types that they have where this is asked."""
    here = get_abstract_mesh()
    return here if here.axes == mesh.axes and here != mesh.abstract_mesh else mesh


def cuts_of(aval: ShapedArray) -> Cuts:
    """For each dimension the explicit axes that its type says it is cut along."""
    return uncut(aval.ndim) if aval.told is None else aval.told.cuts(aval.ndim)


def fixed_cuts(aval: ShapedArray) -> tuple[tuple[Any, ...] | None, ...] | None:
    """What a type says of how each dimension is cut; None where that is the partitioner's, who has the other axes."""
    if aval.told is None:
        return None
    nothing = () if aval.told.mesh.are_all_axes_explicit else None
    cuts = cuts_of(aval)
    return summands([names or nothing for names in cuts], sums_of(cuts))


def mesh_of(avals: Sequence[ShapedArray]) -> AbstractMesh | None:
    """The mesh that types tell of, if any does."""
    return next((a.told.mesh for a in avals if a.told is not None), None)


def with_dim(
    aval: ShapedArray, dim: int, size: int, names: tuple[Any, ...] = (), mesh: AbstractMesh | None = None
) -> ShapedArray:
    """The type with a further dimension, cut along ``names`` of the mesh."""
    wider = aval.with_shape((*aval.shape[:dim], size, *aval.shape[dim:]))
    mesh = mesh_of([aval]) or mesh
    if mesh is None:
        return wider
    cuts = cuts_of(aval)
    more = summands((*cuts[:dim], names, *cuts[dim:]), sums_of(cuts))
    return wider.update(sharding=sharding_in_type(mesh, more, reduced_in(aval)))


def without_dim(aval: ShapedArray, dim: int) -> ShapedArray:
    """The type without a dimension."""
    narrower = aval.with_shape((*aval.shape[:dim], *aval.shape[dim + 1 :]))
    if aval.told is None:
        return narrower
    cuts = cuts_of(aval)
    fewer = summands((*cuts[:dim], *cuts[dim + 1 :]), sums_of(cuts))
    return narrower.update(sharding=sharding_in_type(aval.told.mesh, fewer, reduced_in(aval)))


def reduced_in(aval: ShapedArray) -> Sums:
    """The explicit axes along which cotangents are sums still to be made."""
    return NO_AXES if aval.told is None else aval.told.spec.reduced


def cotangent_type(aval: ShapedArray) -> ShapedArray:
    """The type of cotangents: what is the same along an axis has a sum as its cotangent, and the other way round."""
    if aval.sums != NO_SUMS:
        aval = aval.update(sums=aval.sums[::-1])
    if aval.told is None or not (aval.told.spec.unreduced or aval.told.spec.reduced):
        return aval
    spec = aval.told.spec
    swapped = spec.update(unreduced=spec.reduced, reduced=spec.unreduced)
    return aval.update(sharding=aval.told.update(spec=swapped))
