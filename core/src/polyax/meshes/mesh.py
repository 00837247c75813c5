"""``Mesh``: devices, arranged along named axes."""

from __future__ import annotations

import threading
import warnings
import weakref
from contextlib import ContextDecorator
from typing import Any

import numpy as np

from polyax.ir.config import config
from polyax.meshes.axes import AbstractDevice, AbstractMesh, MeshAxes

_entered = threading.local()
_made: weakref.WeakValueDictionary[Any, Mesh] = weakref.WeakValueDictionary()
"""Equal meshes are one object."""


class Mesh(MeshAxes, ContextDecorator):
    """Devices along named axes.

    Args:
      devices: an array of devices with one dimension for each axis.
      axis_names: a name for each dimension.
      axis_types: an ``AxisType`` for each axis, or one for all; ``Auto`` by default.

    Raises:
      ValueError: names and dimensions differ in number, or a name or a device comes twice.
    """

    def __new__(cls, devices: Any, axis_names: Any, axis_types: Any = None) -> Mesh:
        new = super().__new__(cls)
        new._set(devices, axis_names, axis_types)
        return _made.setdefault((cls, new.device_list, new.axis_sizes, new.axis_names, new.axis_types), new)

    def __reduce__(self) -> Any:
        return type(self), (self.devices, self.axis_names, self.axis_types)

    def _set(self, devices: Any, axis_names: Any, axis_types: Any) -> None:
        self.devices = np.array(devices, dtype=object)
        self.devices.flags.writeable = False
        names = tuple(axis_names) if isinstance(axis_names, (tuple, list)) else (axis_names,)
        if self.devices.ndim != len(names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of its second argument "
                f"(`axis_names`), but got devices.ndim == {self.devices.ndim} and len(axis_names) == {len(names)}."
            )
        self._set_axes(self.devices.shape, names, axis_types)
        self.device_list: tuple[Any, ...] = tuple(self.devices.flat) if self.devices.shape else ()
        if len(set(self.device_list)) < len(self.device_list):
            raise ValueError(f"Mesh: each device can be in a mesh once, got {list(map(str, self.device_list))}")
        self.abstract_mesh = AbstractMesh(
            self.axis_sizes, self.axis_names, self.axis_types, abstract_device=_kind_of(self.device_list)
        )
        self._hash = hash((self.device_list, self.abstract_mesh))

    @classmethod
    def of_axes(cls, axes: MeshAxes, devices: Any) -> Mesh:
        """The mesh with the axes of another one on ``devices``, of which there are as many."""
        return cls(np.asarray(devices, object).reshape(axes.axis_sizes), axes.axis_names, axes.axis_types)

    @property
    def device_ids(self) -> np.ndarray:
        return np.array([d.id for d in self.device_list], int).reshape(self.axis_sizes)

    @property
    def is_multi_process(self) -> bool:
        return len({d.process_index for d in self.device_list}) > 1

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    @property
    def local_devices(self) -> list[Any]:
        """Its devices that belong to this process."""
        return [d for d in self.device_list if d.is_addressable]

    @property
    def local_mesh(self) -> Mesh:
        """The block of it that belongs to this process.

        Raises:
          ValueError: what belongs to it is no block.
        """
        own = np.argwhere([d.is_addressable for d in self.device_list]).ravel()
        places = np.unravel_index(own, self.axis_sizes)
        block = self.devices[np.ix_(*[np.unique(p) for p in places])]
        if block.size != len(own) or not own.size:
            raise ValueError(f"the devices of this process are no block of {self!r}: {self.local_devices}")
        return Mesh(block, self.axis_names, self.axis_types)

    def __enter__(self) -> Mesh:
        """Specs without a mesh are of this one; programs and arrays go there only if they are told to."""
        if config.get("disallow_mesh_context_manager"):
            raise RuntimeError("Mesh context manager is disabled. Use `with polyax.set_mesh(mesh)` instead.")
        warnings.warn(
            "`with mesh:` context manager has been deprecated. Please use `with jax.set_mesh(mesh):` instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        before = config.override_until_restored(entered_mesh=self)
        _entered.__dict__.setdefault("stack", []).append(before)
        return self

    def __exit__(self, *_: object) -> None:
        config.restore(_entered.stack.pop())

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Mesh)
            and self.device_list == other.device_list
            and self.abstract_mesh == other.abstract_mesh
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        types = f", axis_types={self.axis_types}" if self.axis_names else ""
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}{types})"

    def __str__(self) -> str:
        return f"Mesh({self._axes_text()}, axis_types={self.axis_types})" if self.axis_names else "Mesh()"


def _kind_of(devices: tuple[Any, ...]) -> AbstractDevice | None:
    """Those of a mesh are of one kind."""
    first = next(iter(devices), None)
    return None if first is None else AbstractDevice(first.device_kind, None, first.platform)
