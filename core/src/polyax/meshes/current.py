"""The mesh in force in a thread: what specs without a mesh mean, and programs are traced for."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from polyax.ir.config import config
from polyax.ir.primitive import ambient
from polyax.meshes.axes import EMPTY, AbstractMesh
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import PartitionSpec

NO_DEVICES = Mesh(np.empty((), object), ())


class set_mesh:
    """Makes ``mesh`` the one in force: inside a ``with`` block, or from now on. None or an empty one: there is none.

    >>> from polyax.sharding import AxisType, Mesh, get_mesh
    >>> import polyax
    >>> with set_mesh(Mesh(polyax.devices()[:1], ("x",))) as mesh:
    ...     print(get_mesh())
    Mesh('x': 1, axis_types=(Auto,))

    Raises:
      ValueError: a function is being traced; meshes are chosen outside. Or the mesh has manual axes.
    """

    def __init__(self, mesh: Any) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"Expected mesh of type `polyax.sharding.Mesh`. Got {type(mesh)}")
        if ambient.trace is not None:
            raise ValueError("`set_mesh` can only be used outside of `polyax.jit`.")
        if mesh is not None and mesh.manual_axes:
            raise ValueError(
                f"mesh {mesh} contains manual axes which is not allowed when using `polyax.set_mesh`. Please use "
                "`polyax.shard_map` to enter into `Manual` mode instead."
            )
        self.mesh = mesh
        some = None if mesh is None or mesh.empty else mesh
        self._before = config.override_until_restored(mesh=some, abstract_mesh=some and some.abstract_mesh)

    def __enter__(self) -> Mesh | None:
        return self.mesh

    def __exit__(self, *_: object) -> None:
        config.restore(self._before)


class use_abstract_mesh:
    """Makes ``mesh``, which has no devices, the one in force for what is traced in the block.

    Raises:
      ValueError: the mesh in force has another number of devices, or ``mesh`` has devices.
    """

    def __init__(self, mesh: Any) -> None:
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(f"Expected mesh of type `polyax.sharding.AbstractMesh`. Got type: {type(mesh)}")
        around = get_abstract_mesh()
        if not (mesh.empty or around.empty) and mesh.size != around.size:
            raise ValueError(
                f"use_abstract_mesh cannot change the size of the mesh. Got new mesh: {mesh} with size={mesh.size} and "
                f"prev mesh: {around} with size={around.size}"
            )
        self.mesh = mesh
        self._before: Any = None

    def __enter__(self) -> AbstractMesh:
        self._before = config.override_until_restored(abstract_mesh=self.mesh)
        return self.mesh

    def __exit__(self, *_: object) -> None:
        config.restore(self._before)


class without_mesh:
    """No mesh is in force in the block: what is computed there stays where it is."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = config.get("mesh") and config.override_until_restored(mesh=None, abstract_mesh=None)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            config.restore(self._before)


def get_mesh() -> Mesh:
    """The mesh in force, with its devices; an empty one if there is none.

    Raises:
      ValueError: a function is being traced, which is done for a mesh without devices; see ``get_abstract_mesh``.
    """
    if ambient.trace is not None:
        raise ValueError("`get_mesh` can only be used outside of `polyax.jit`. Maybe you want `get_abstract_mesh`?")
    return config.get("mesh") or NO_DEVICES


def mesh_that_is_set() -> Mesh | None:
    """That of ``set_mesh``, whatever ``use_abstract_mesh`` says of its axes."""
    return config.get("mesh")


def mesh_in_force() -> Mesh | None:
    """The devices of ``set_mesh``, along the axes that are in force, which ``use_abstract_mesh`` may have changed."""
    mesh, here = config.get("mesh"), config.get("abstract_mesh")
    return mesh if mesh is None or here is None or here is mesh.abstract_mesh else _along(mesh, here)


@lru_cache(512)
def _along(mesh: Mesh, here: AbstractMesh) -> Mesh:
    if here == mesh.abstract_mesh or here.size != mesh.size or here.manual_axes:  # manual ones are those of a region
        return mesh
    return Mesh.of_axes(here, mesh.devices)


def mesh_for_specs() -> Mesh | AbstractMesh | None:
    """The mesh that specs without one are of: that in force, else the one that was entered as ``with mesh:``."""
    here = get_abstract_mesh()
    return mesh_in_force() or (None if here.empty else here) or config.get("entered_mesh")


def named_sharding(spec: PartitionSpec, caller: str) -> NamedSharding:
    """What a spec means on the mesh in force.

    Raises:
      ValueError: there is none.
    """
    mesh = mesh_that_is_set()
    if mesh is None:
        raise ValueError(f"Please set a mesh via `polyax.set_mesh` if a PartitionSpec is passed to {caller}")
    return NamedSharding(mesh, spec)


def get_abstract_mesh() -> AbstractMesh:
    """The mesh in force, without its devices; an empty one if there is none."""
    return config.get("abstract_mesh") or EMPTY
