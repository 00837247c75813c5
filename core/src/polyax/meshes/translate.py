"""Saying with the axes of one mesh how an array lies on another one of the same devices."""

from __future__ import annotations

from typing import Any

from polyax.meshes.axes import MeshAxes
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import Cuts


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
    names = {axis: _axes_between(mesh, *_range(sharding.mesh, axis)) for c in cuts for axis in c}
    if None in names.values():
        return None
    return tuple(tuple(n for axis in c for n in names[axis] or ()) for c in cuts)


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
