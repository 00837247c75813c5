"""Where a computation runs: on one device or on those of a mesh, as its arguments lie and its program says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from polyax.control.spmd import manual, shard_map_p
from polyax.ir.jaxpr import ClosedJaxpr, Eqn, sub_jaxprs, walk_eqns
from polyax.meshes.current import mesh_in_force
from polyax.meshes.mesh import Mesh
from polyax.meshes.resharding import reshard_p
from polyax.meshes.sharding import NamedSharding, Sharding, SingleDeviceSharding
from polyax.ops.constraint import sharding_constraint_p
from polyax.runtime.arrays.array import Array, is_concrete
from polyax.runtime.arrays.devices import local_devices
from polyax.runtime.contract.backend import Device
from polyax.runtime.contract.queue import serving
from polyax.runtime.plugins.default_device import default_device_now
from polyax.runtime.running.regions import with_devices
from polyax.transforms.memo import memoize_by_jaxpr

Place = Device | Mesh | Sharding
"""One device, those of a mesh, or those where blocks of an array lie that belong to no mesh."""
Names = Callable[[], Sequence[str]]
"""What error texts call the arguments: ``x of f``."""


class Wish(NamedTuple):
    """Somebody wants a computation on some devices."""

    devices: tuple[Device, ...]
    what: Callable[[], str]
    """Who, for error texts."""
    mesh: Mesh | None = None


def wish_of(sharding: Sharding, what: Callable[[], str]) -> Wish:
    mesh = sharding.mesh if isinstance(sharding, NamedSharding) else None
    return Wish(sharding.device_list, what, mesh if isinstance(mesh, Mesh) else None)


def meeting_place(
    args: Sequence[Any],
    names: Names | None = None,
    wishes: Iterable[Wish] = (),
    programs: Sequence[ClosedJaxpr] = (),
) -> Place:
    """Where ``args`` are, those of them that were put there by name, and where ``programs`` want to run; else the mesh
    in force, else the default device: the other arrays follow.

    Raises:
      ValueError: some were put on other devices than others, or than the program wants.
    """
    if serving():  # a callback can't wait for devices that wait for it
        programs = ()
    found = [*_wishes(args, names), *wishes, *(w for p in programs for w in wishes_of_program(p))]
    in_force = mesh_in_force()
    if in_force is not None:
        found.append(Wish(in_force.device_list, lambda: "jit's context mesh", in_force))
    found += _of_regions([e for p in programs for e in _unplaced(p)], found)
    if not found:
        return next((x.sharding for x in args if is_concrete(x) and x._seat is None), default_device_now())
    for wish in found[1:]:
        if wish.devices != found[0].devices:
            raise ValueError(_apart(found[0], wish))
    meshes = [c.mesh for c in found if c.mesh is not None]
    return max(meshes, key=lambda m: len(m.axis_names)) if meshes else found[0].devices[0]


def _wishes(args: Sequence[Any], names: Names | None) -> list[Wish]:
    found: list[Wish] = []
    for n, x in enumerate(args):
        if is_concrete(x) and x.committed:
            sharding = x.sharding
            if isinstance(sharding, (NamedSharding, SingleDeviceSharding)):
                found.append(wish_of(sharding, lambda n=n, x=x: _argument(n, x, names)))
    return found


def _argument(n: int, x: Array, names: Names | None) -> str:
    which = names()[n] if names is not None else f"args[{n}]"
    return f"argument {which} with shape {x.aval.str_short()} and"


def _apart(one: Wish, other: Wish) -> str:
    first, second = (
        f"{c.what()} with device ids {[d.id for d in c.devices]} on platform {c.devices[0].platform.upper()}"
        for c in (one, other)
    )
    return (
        f"Received incompatible devices for jitted computation. Got {first} and {second}. Move them together with "
        "polyax.device_put."
    )


@memoize_by_jaxpr
def wishes_of_program(closed: ClosedJaxpr) -> tuple[Wish, ...]:
    """The meshes that equations of a program name."""
    found: dict[Mesh, Wish] = {}
    for eqn in walk_eqns(closed.jaxpr):
        mesh = _mesh_of(eqn)
        if isinstance(mesh, Mesh) and mesh not in found:
            what = f"{eqn.primitive.name} inside jit"
            found[mesh] = Wish(mesh.device_list, lambda what=what: what, mesh)
    return tuple(found.values())


@memoize_by_jaxpr
def _unplaced(closed: ClosedJaxpr) -> tuple[Eqn, ...]:
    """The regions, but for those in others, of which nobody chose the devices."""
    found: list[Eqn] = []
    for eqn in closed.eqns:
        if eqn.primitive is not shard_map_p:
            found += [e for p in sub_jaxprs(eqn) for e in _unplaced(p)]
        elif not isinstance(eqn.params["mesh"], Mesh):
            found.append(eqn)
    return tuple(found)


def _of_regions(regions: Sequence[Eqn], found: Sequence[Wish]) -> list[Wish]:
    """The first devices, as many as the largest of the regions has parts, unless a mesh is known that has its axes."""
    if not regions:
        return []
    params = max(regions, key=lambda e: e.params["mesh"].size).params
    axes = set(manual(params["mesh"], params["manual_axes"]))
    if any(w.mesh is not None and axes <= set(w.mesh.axes) for w in found):
        return []
    mesh = with_devices(params["mesh"], params["jaxpr"], local_devices(), params["name"])
    return [Wish(mesh.device_list, lambda: f"{params['name']} inside jit", mesh)]


def _mesh_of(eqn: Any) -> Any:
    if eqn.primitive is sharding_constraint_p or eqn.primitive is reshard_p:
        sharding = eqn.params["sharding"]
        return sharding and sharding.mesh
    return eqn.params.get("mesh") if eqn.primitive is shard_map_p else None


def layouts_of(leaves: Sequence[Any]) -> tuple[Any, ...]:
    """For each leaf where it was put by name: a device or a sharding; None for what goes anywhere."""
    return tuple([_layout(x) if type(x) is Array else None for x in leaves])


def _layout(x: Array) -> Any:
    seat = x._seat
    if seat is None:
        return x.sharding
    return seat.device if seat.committed else None
