"""Saying with the axes of one mesh how an array lies on another one of the same devices."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from polyax.meshes.axes import MeshAxes
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import Cuts, OpenCuts, open_cuts, summands, sums_of, trimmed_spec


def cuts_on(mesh: MeshAxes, sharding: NamedSharding, ndim: int) -> Cuts | None:
    """How ``sharding`` cuts an array of ``ndim`` dimensions, by the axes of ``mesh``, whose devices are in the same
    order; None if those can't say it.

    >>> from polyax.meshes.axes import AbstractMesh
    >>> from polyax.meshes.spec import PartitionSpec
    >>> eight, grid = AbstractMesh((8,), ("i",)), AbstractMesh((4, 2), ("x", "y"))
    >>> cuts_on(grid, NamedSharding(eight, PartitionSpec(None, "i")), 2)
    ((), ('x', 'y'))
    """
    cuts = sharding.cuts(ndim)
    if sharding.mesh == mesh or sharding.mesh.axes == mesh.axes:
        return cuts
    named = (*cuts, sums_of(cuts))
    names = {axis: _axes_between(mesh, *_range(sharding.mesh, axis)) for c in named for axis in c}
    if None in names.values():
        return None
    *found, sums = [tuple([n for axis in c for n in names[axis] or ()]) for c in named]
    return summands(found, sums)


def open_cuts_on(mesh: MeshAxes, sharding: NamedSharding, ndim: int, said: OpenCuts | None = None) -> OpenCuts | None:
    """The same; dimensions that the spec leaves unconstrained, or those not in ``said``, are open."""
    said = open_cuts(sharding.spec, ndim) if said is None else said
    if sharding.mesh.axes == mesh.axes:
        return said
    cuts = cuts_on(mesh, sharding, ndim)
    if cuts is None:
        return None
    return summands([None if s is None else c for c, s in zip(cuts, said, strict=True)], sums_of(cuts))


def renamed(mesh: Mesh, sharding: NamedSharding, ndim: int) -> NamedSharding:
    """The same sharding by the axes of ``mesh``, if they can say it."""
    cuts = None if sharding.mesh == mesh else cuts_on(mesh, sharding, ndim)
    return sharding if cuts is None else NamedSharding(mesh, trimmed_spec(cuts))


def finest(mesh: Mesh, others: Iterable[MeshAxes]) -> Mesh:
    """``mesh``, or one of its devices with parts of its axes as axes, where only those can say how arrays lie on
    ``others``.

    Raises:
      ValueError: no mesh can say that, as with axes of 2 times 3 devices and 3 times 2.
    """
    marks = _marks(mesh)
    for other in others:
        more = _marks(other)
        if other.size != mesh.size or more <= marks:
            continue
        marks |= more
        if any(high % low for low, high in pairwise(sorted(marks))):
            raise ValueError(
                f"a program has arrays on {mesh} and on {other}, which fall into blocks that don't fit each other: "
                "choose axes of which some are products of others, or put all on one mesh with polyax.device_put"
            )
    return mesh if marks == _marks(mesh) else _split(mesh, sorted(marks, reverse=True))


def _marks(mesh: MeshAxes) -> set[int]:
    """After how many devices an axis takes its next step."""
    return {1, *(_range(mesh, axis)[1] for axis in mesh.axis_names)}


def _split(mesh: Mesh, marks: list[int]) -> Mesh:
    whole = {_range(mesh, name): name for name, size in mesh.axes if size > 1}
    parts = [(low, high) for high, low in pairwise(marks)]
    names = [whole.get(part) or _part_name(whole, *part) for part in parts]
    return Mesh(mesh.devices.reshape([high // low for low, high in parts]), names, mesh.axis_types[0])


def _part_name(whole: dict[tuple[int, int], Any], low: int, high: int) -> str:
    outer = next(name for (a, b), name in whole.items() if a <= low and high <= b)
    return f"{outer}[{low}:{high}]"


def _range(mesh: MeshAxes, axis: Any) -> tuple[int, int]:
    """How far apart neighbours along an axis are in the list of devices, and after how many the axis begins anew."""
    stride = 1
    for name, size in reversed(mesh.axes):
        if name == axis:
            return stride, stride * size
        stride *= size
    raise ValueError(f"{mesh} has no axis {axis!r}")


def _axes_between(mesh: MeshAxes, low: int, high: int) -> tuple[Any, ...] | None:
    """The axes that together have this range."""
    found = {name: _range(mesh, name) for name, size in mesh.axes if size > 1}
    inside = [name for name, (a, b) in found.items() if low <= a and b <= high]
    product = 1
    for name in inside:
        product *= found[name][1] // found[name][0]
    return tuple(inside) if low * product == high else None
