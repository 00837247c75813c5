"""Making meshes of the devices that there are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.meshes.axes import AxisType
from polyax.meshes.mesh import Mesh
from polyax.runtime.arrays import devices as places
from polyax.runtime.contract.tracebacks import api_boundary


@api_boundary
def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[Any],
    axis_types: Any = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """A mesh of the first devices of the default platform, or of those given.

    Args:
      axis_shapes, axis_names: the size and the name of each axis.
      axis_types: an ``AxisType`` for each; by default all are ``Explicit``, as in JAX.

    Raises:
      ValueError: there are fewer devices than the mesh needs.

    >>> make_mesh((1,), ("x",)).axis_names
    ('x',)
    """
    given: Sequence[Any] = axis_shapes
    if not all(isinstance(n, (int, np.integer)) for n in given):
        raise ValueError(f"`axis_shapes` passed to `make_mesh` should be a sequence of ints. Got {tuple(axis_shapes)}")
    shape = tuple(axis_shapes)
    found = list(places.devices() if devices is None else devices)
    if len(found) < math.prod(shape):
        raise ValueError(
            f"Number of devices {len(found)} must be >= the product of mesh_shape {shape}. On virtual devices of the "
            f"host, set POLYAX_NUM_CPU_DEVICES={math.prod(shape)} before the first computation."
        )
    chosen = np.empty(math.prod(shape), dtype=object)
    chosen[:] = found[: chosen.size]
    types = (AxisType.Explicit,) * len(shape) if axis_types is None else axis_types
    return Mesh(chosen.reshape(shape), axis_names, types)
