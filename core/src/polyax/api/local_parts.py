"""``pmap`` over several processes: each gives and gets the parts of its own devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polyax.control.calls.custom_vjp import custom_vjp
from polyax.control.spmd import shard_map_p
from polyax.ir.aval import aval_of
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import Cuts, spec_of
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
        name, ins, outs = params["name"], params["in_specs"], params["out_specs"]
        wholes = [self._along(cuts, name).whole(x) for x, cuts in zip(args, ins, strict=True)]
        results = shard_map_p.bind(*wholes, **params)
        return [self._along(cuts, name).part(x) for x, cuts in zip(results, outs, strict=True)]

    def _along(self, cuts: Cuts, name: str) -> _Along:
        return _Along(NamedSharding(self.mesh, spec_of(cuts)), f"{name} over several processes")


@dataclass(frozen=True)
class _Along:
    """Between an array on all devices and the part of it that this process has: each way is the other's transpose.

    What all processes have alike is its own part; its cotangents are added up in the mapped program.
    """

    sharding: NamedSharding
    name: str

    def whole(self, x: Any) -> Any:
        """The array of which ``x`` is this process's part."""
        if isinstance(x, Tracer):
            return self._linear(self._whole, self.part)(x)
        return x if self.sharding.is_fully_replicated else self._whole(x)

    def part(self, x: Any) -> Any:
        """What this process has of ``x``."""
        return self._linear(self._part, self.whole)(x) if isinstance(x, Tracer) else local_part(x)

    def _whole(self, x: Any) -> Any:
        self._check(x)
        return of_local_part(x, whole_shape(self.sharding, aval_of(x).shape), self.sharding)

    def _part(self, x: Any) -> Any:
        self._check(x)
        return local_part(x)

    def _linear(self, fun: Callable[[Any], Any], transpose: Callable[[Any], Any]) -> Any:
        def named(x: Any) -> Any:
            return fun(x)

        named.__name__ = self.name
        found = custom_vjp(named)
        found.defvjp(lambda x: (found(x), None), lambda _, ct: (transpose(ct),))
        return found

    def _check(self, x: Any) -> None:
        if isinstance(x, Tracer):
            raise NotImplementedError(
                f"{self.name} can be differentiated by grad and vjp, but isn't built inside of jit, vmap, loops and "
                f"branches, where an argument or a result of type {aval_of(x)} belongs to a program of this process "
                "alone: call it outside, or use shard_map over a mesh of all devices."
            )


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
