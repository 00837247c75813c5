"""``pmap`` over several processes: each gives and gets the parts of its own devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polyax.control.spmd import shard_map_p
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import spec_of
from polyax.runtime.arrays import devices as places
from polyax.runtime.arrays.local import local_part, of_local_part, whole_shape
from polyax.runtime.contract import processes
from polyax.runtime.contract.backend import Device
from polyax.trace.tracer import Tracer


@dataclass(frozen=True)
class LocalParts:
    """The devices of a mapped axis, some of which are in other processes."""

    mesh: Mesh

    @property
    def size(self) -> int:
        return self.mesh.size

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """The results for this process, of its arguments."""
        if any(isinstance(x, Tracer) for x in args):
            raise NotImplementedError(
                f"{params['name']} over several processes isn't built inside of jit, grad and other transformations: "
                "call it outside, or use shard_map over a mesh of all devices."
            )
        wholes = [self._whole(x, cuts) for x, cuts in zip(args, params["in_specs"], strict=True)]
        return [local_part(x) for x in shard_map_p.bind(*wholes, **params)]

    def _whole(self, x: Any, cuts: Any) -> Any:
        """The array on all devices of which ``x`` is this process's part."""
        if not any(cuts):
            return x
        sharding = NamedSharding(self.mesh, spec_of(cuts))
        return of_local_part(x, whole_shape(sharding, x.shape), sharding)


def local_parts(name: str, axis_name: Any, size: int, devices: Sequence[Device] | None) -> LocalParts | None:
    """None if all devices of the mapped axis are in this process, which has ``size`` parts of the arguments.

    Raises:
      ValueError: this process doesn't give one part to each of its devices.
    """
    if processes.here().size == 1:
        return None
    chosen = tuple(places.devices() if devices is None else devices)
    own = sum(d.is_addressable for d in chosen)
    if own == len(chosen):
        return None
    if size != own:
        raise ValueError(
            f"{name}: On multi-process platforms, the input to pmapped functions must have leading axis size equal to "
            f"the number of local devices if no `devices` argument is specified. Got axis_size={size}, "
            f"num_local_devices={own}, of {len(chosen)} devices in all."
        )
    return LocalParts(Mesh(chosen, (axis_name,)))
