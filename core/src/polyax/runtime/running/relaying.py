"""Arrays that span processes, brought to lie otherwise: all of these run a program that does nothing else."""

from __future__ import annotations

import functools

from polyax.ir.aval import ShapedArray
from polyax.ir.effects import NO_EFFECTS
from polyax.ir.jaxpr import ClosedJaxpr, Jaxpr, Var
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding, Sharding
from polyax.meshes.translate import cuts_on
from polyax.runtime.arrays.array import Array
from polyax.runtime.running.meshed import Layouts, on_mesh


def relaid(x: Array, layout: Sharding) -> Array:
    """``x``, lying as ``layout`` says.

    Raises:
      ValueError: that is on other devices, or cut in a way that neither mesh can say of both.
    """
    layouts = _layouts(x, layout)
    if layouts is None:
        raise ValueError(
            f"an array of type {x.aval} that spans processes can't be brought from {x.sharding} to {layout}: the "
            "meshes must have the same devices in the same order, and the axes of one must be products of axes of "
            "the other. Bring it to the host by polyax.experimental.multihost_utils.process_allgather first."
        )
    return on_mesh(_identity(x.aval), layouts, "device_put").program.run([x])[0]


def _layouts(x: Array, layout: Sharding) -> Layouts | None:
    """On a mesh whose axes can say how the array lies, and how it is to."""
    ends = [s for s in (x.sharding, layout) if isinstance(s, NamedSharding)]
    if len(ends) < 2 or ends[0].device_list != ends[1].device_list:
        return None
    for mesh in (s.mesh for s in ends):
        if isinstance(mesh, Mesh) and None not in [cuts_on(mesh, s, x.ndim) for s in ends]:
            return Layouts.of(mesh, [x.sharding], [layout])
    return None


@functools.lru_cache(256)
def _identity(aval: ShapedArray) -> ClosedJaxpr:
    v = Var(aval)
    return ClosedJaxpr(Jaxpr([], [v], [v], [], NO_EFFECTS, "device_put"), [])
