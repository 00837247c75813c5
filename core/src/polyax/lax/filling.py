"""``full`` and ``full_like`` with a place for what they make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.api.arguments import shaped
from polyax.ir.aval import is_array_like
from polyax.meshes.current import mesh_in_force
from polyax.meshes.explicit import sharding_of
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding
from polyax.ops import basis
from polyax.runtime.arrays.array import is_concrete
from polyax.runtime.arrays.placing import beside, device_put

__all__ = ["full", "full_like"]


def full(shape: Sequence[int], fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> Any:
    """An array of ``shape``, filled with the scalar ``fill_value``, whose (weak) type it has unless ``dtype`` is given.

    Args:
      sharding: how it is to lie, not weakly typed then; None leaves that to the device, or to the partitioner.

    Raises:
      TypeError: ``fill_value`` is no scalar.
      ValueError: ``sharding`` is none.

    >>> from polyax import lax
    >>> lax.full((2,), 1.5).tolist()
    [1.5, 1.5]
    """
    made = basis.full(shape, fill_value, dtype)
    return made if sharding is None else device_put(basis.convert(made, made.dtype, False), sharding)


def with_devices(told: Any) -> Any:
    """On the mesh in force, if a sharding has no devices of its own; None if that has other axes."""
    if not isinstance(told, NamedSharding) or isinstance(told.mesh, Mesh):
        return told
    mesh = mesh_in_force()
    return told.update(mesh=mesh) if mesh is not None and mesh.axes == told.mesh.axes else None


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None, sharding: Any = None) -> Any:
    """``full`` with the shape and dtype (and weak type) of ``x`` where they aren't given."""
    if sharding is None and shape is None and not is_array_like(x):
        sharding = with_devices(sharding_of(x))
    made = basis.full_like(shaped(x), fill_value, dtype, shape)
    if sharding is not None:
        return device_put(basis.convert(made, made.dtype, False), sharding)
    return beside(made, x) if is_concrete(x) and is_concrete(made) else made
