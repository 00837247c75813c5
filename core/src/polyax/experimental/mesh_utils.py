"""``polyax.experimental.mesh_utils``: which device stands where in a mesh."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.runtime.arrays import devices as places

device_kind_handler_dict: dict[str, Callable[..., np.ndarray | None]] = {}
"""For each kind of device (``device.device_kind``) that is put in another order than that of the numbers, a function
``(mesh_shape, devices, contiguous_submeshes=) -> array``, or None if it knows none. No kind has one to begin with."""


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """The devices, all by default, as an array of ``mesh_shape``: neighbours along the last axis are those with
    neighbouring numbers, unless ``device_kind_handler_dict`` says otherwise of their kind.

    Args:
      contiguous_submeshes, allow_split_physical_axes: for devices wired as a grid; kept for compatibility.

    Raises:
      ValueError: ``mesh_shape`` hasn't as many places as there are devices.

    >>> create_device_mesh((1, 1)).shape
    (1, 1)
    """
    found = list(places.devices() if devices is None else devices)
    if math.prod(mesh_shape) != len(found):
        raise ValueError(
            f"Number of devices {len(found)} must equal the product of mesh_shape {tuple(mesh_shape)}: "
            f"{math.prod(mesh_shape)}"
        )
    handler = device_kind_handler_dict.get(found[-1].device_kind) if found else None
    arranged = None if handler is None else handler(mesh_shape, found, contiguous_submeshes=contiguous_submeshes)
    return _array(found).reshape(tuple(mesh_shape)) if arranged is None else arranged


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Meshes of ``mesh_shape``, one for each process, put together as ``dcn_mesh_shape`` says: what is far apart along
    each axis is what talks over the slower network.

    Raises:
      ValueError: there are more or fewer processes than ``dcn_mesh_shape`` has places, or the shapes differ in rank.
    """
    if len(mesh_shape) != len(dcn_mesh_shape):
        raise ValueError(f"mesh_shape {tuple(mesh_shape)} and dcn_mesh_shape {tuple(dcn_mesh_shape)} differ in rank")
    granules: dict[int, list[Any]] = {}
    for d in places.devices() if devices is None else devices:
        granules.setdefault(d.process_index, []).append(d)
    keys = sorted(granules) if should_sort_granules_by_key else list(granules)
    if len(keys) != math.prod(dcn_mesh_shape):
        raise ValueError(
            f"Number of slices/granules {len(keys)} must equal the product of dcn_mesh_shape {tuple(dcn_mesh_shape)}"
        )
    blocks = _array([create_device_mesh(mesh_shape, granules[k]) for k in keys]).reshape(tuple(dcn_mesh_shape))
    return np.array(np.block(blocks.tolist()), dtype=object)


def _array(values: Sequence[Any]) -> np.ndarray:
    found = np.empty(len(values), dtype=object)
    for n, x in enumerate(values):
        found[n] = x
    return found
