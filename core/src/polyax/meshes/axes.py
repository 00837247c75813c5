"""The shape of a mesh: named axes with sizes, and of each what cuts along it mean. No devices."""

from __future__ import annotations

import enum
import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Axes = tuple[tuple[Any, int], ...]
"""Names and sizes, outermost first."""


class AxisType(enum.Enum):
    """Who decides what is cut along a mesh axis.

    ``Auto``: the partitioner. ``Explicit``: the types of arrays tell it, and operations derive those of their results.
    ``Manual``: the user, inside ``shard_map``.
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


AxisTypes = tuple[AxisType, ...]


class _Seen:
    """``any``: whether there was an explicit axis in this process. Until then nobody looks for them in types."""

    any = False


seen = _Seen()


class MeshAxes:
    """What ``Mesh`` and ``AbstractMesh`` have in common."""

    axis_names: tuple[Any, ...]
    axis_sizes: tuple[int, ...]
    axis_types: AxisTypes

    def _set_axes(self, sizes: Sequence[int], names: Any, types: Any) -> None:
        self.axis_sizes = tuple(int(n) for n in sizes)
        self.axis_names = tuple(names) if isinstance(names, (tuple, list)) else (names,)
        if None in self.axis_names:
            raise ValueError(f"{type(self).__name__} axis names cannot be None. Got: {self.axis_names}")
        self.axis_types = _as_types(types, self.axis_names)
        seen.any = seen.any or AxisType.Explicit in self.axis_types
        if len(self.axis_sizes) != len(self.axis_names):
            raise ValueError(
                f"{type(self).__name__}: {len(self.axis_sizes)} axis sizes {self.axis_sizes} and "
                f"{len(self.axis_names)} axis names {self.axis_names}; give each axis one of both"
            )
        if len(set(self.axis_names)) < len(self.axis_names):
            raise ValueError(f"{type(self).__name__}: axis names must differ from each other, got {self.axis_names}")

    @property
    def axes(self) -> Axes:
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape(self) -> OrderedDict[Any, int]:
        return OrderedDict(self.axes)

    @property
    def shape_tuple(self) -> Axes:
        return self.axes

    @property
    def size(self) -> int:
        return math.prod(self.axis_sizes) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        return not self.axis_names

    def _of_type(self, kind: AxisType) -> tuple[Any, ...]:
        return tuple(n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    @property
    def auto_axes(self) -> tuple[Any, ...]:
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Any, ...]:
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Any, ...]:
        return self._of_type(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        return all(t is AxisType.Auto for t in self.axis_types)

    @property
    def are_all_axes_explicit(self) -> bool:
        return all(t is AxisType.Explicit for t in self.axis_types)

    @property
    def are_all_axes_manual(self) -> bool:
        return all(t is AxisType.Manual for t in self.axis_types)

    def _axes_text(self) -> str:
        return ", ".join(f"{name!r}: {size}" for name, size in self.axes)


def _as_types(types: Any, names: tuple[Any, ...]) -> AxisTypes:
    count = len(names)
    if types is None:
        return (AxisType.Auto,) * count
    found = (types,) * count if isinstance(types, AxisType) else tuple(types)
    if len(found) != count or not all(isinstance(t, AxisType) for t in found):
        raise ValueError(
            f"Number of axis names should match the number of axis_types. Got axis_names={names} and "
            f"axis_types={types}; axis_types needs an AxisType for each."
        )
    return found


@dataclass(frozen=True)
class AbstractDevice:
    """What kind of device a mesh without devices is meant for.

    >>> AbstractDevice("cpu", None, "cpu")
    AbstractDevice(device_kind=cpu, num_cores=None, platform=cpu)
    """

    device_kind: str
    num_cores: int | None
    platform: str

    @property
    def text(self) -> str:
        return f"device_kind={self.device_kind}, num_cores={self.num_cores}, platform={self.platform}"

    def __repr__(self) -> str:
        return f"AbstractDevice({self.text})"


class AbstractMesh(MeshAxes):
    """A mesh without its devices: what a program has to know when it is traced.

    Args:
      axis_sizes, axis_names, axis_types: as those of ``Mesh``.
      abstract_device: what kind its devices are of, where that is known.

    >>> AbstractMesh((4, 2), ("x", "y"))
    AbstractMesh('x': 4, 'y': 2, axis_types=(Auto, Auto))
    """

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: Any,
        axis_types: Any = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ) -> None:
        self._set_axes(axis_sizes, axis_names, axis_types)
        self.abstract_device = abstract_device
        self._hash = hash((self.axes, self.axis_types))

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return self

    def __enter__(self) -> Any:
        raise _has_none("__enter__")

    def __exit__(self, *_: object) -> None:
        raise _has_none("__exit__")

    @property
    def devices(self) -> Any:
        raise _has_none("devices")

    @property
    def device_ids(self) -> Any:
        raise _has_none("device_ids")

    @property
    def is_multi_process(self) -> Any:
        raise _has_none("is_multi_process")

    @property
    def local_devices(self) -> Any:
        raise _has_none("local_devices")

    @property
    def local_mesh(self) -> Any:
        raise _has_none("local_mesh")

    def update_axis_types(self, changes: dict[Any, AxisType]) -> AbstractMesh:
        """The same mesh with other types of the axes that are named."""
        types = [changes.get(n, t) for n, t in zip(self.axis_names, self.axis_types, strict=True)]
        return self.update(axis_types=types)

    def update(
        self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None, **device: Any
    ) -> AbstractMesh:
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **{"abstract_device": self.abstract_device, **device},
        )

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, AbstractMesh)
            and self.axes == other.axes
            and self.axis_types == other.axis_types
            and self.abstract_device == other.abstract_device
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        axes = self._axes_text() or "()"
        device = "" if self.abstract_device is None else f", {self.abstract_device.text}"
        return f"AbstractMesh({axes}, axis_types={self.axis_types}{device})"


def _has_none(what: str) -> ValueError:
    return ValueError(f"AbstractMesh does not implement {what}: it has no devices")


EMPTY = AbstractMesh((), ())
"""No mesh."""
