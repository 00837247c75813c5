"""``polyax.experimental.topologies``: the devices of a machine, to make meshes of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from polyax.experimental.mesh_utils import create_device_mesh
from polyax.meshes.mesh import Mesh
from polyax.runtime.arrays import devices as places
from polyax.runtime.contract.backend import Device

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]


@dataclass
class TopologyDescription:
    """Some devices.

    Args:
      devices: in the order of their numbers.
    """

    devices: list[Device]


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices of this machine: those of ``platform``, or of the default one.

    Raises:
      RuntimeError: there is no such platform here.

    >>> len(get_attached_topology("cpu").devices) >= 1
    True
    """
    return TopologyDescription(places.devices(platform))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: Any) -> NoReturn:
    """Devices that aren't there: backends compile for those that are.

    Raises:
      NotImplementedError: always. ``get_attached_topology`` tells the devices that are there, and ``polyax.export``
        saves programs for other platforms.
    """
    raise NotImplementedError(
        f"get_topology_desc({topology_name!r}, {platform!r}): backends compile for devices that are there, which "
        "get_attached_topology tells; polyax.export saves programs for platforms that aren't"
    )


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: tuple[str, ...],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """A mesh of all devices of ``topo``.

    Raises:
      ValueError: ``mesh_shape`` hasn't as many places as there are devices.

    >>> devices = get_attached_topology("cpu").devices
    >>> make_mesh(TopologyDescription(devices[:1]), (1, 1), ("x", "y")).axis_sizes
    (1, 1)
    """
    devices = create_device_mesh(mesh_shape, topo.devices, contiguous_submeshes=contiguous_submeshes)
    return Mesh(devices, axis_names)
