"""Programs on meshes: cut into programs on blocks, which run on all devices of the mesh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polyax.control.key_uses import key_use
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.config import config
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.meshes.axes import AbstractMesh
from polyax.meshes.explicit import cuts_of, mesh_here, reduced_in, told
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding, Sharding
from polyax.meshes.spec import Cuts, PartitionSpec, spec_of, summands, sums_of, trimmed_spec
from polyax.meshes.translate import cuts_on, finest, renamed
from polyax.partition.partition import Partitioned, partition
from polyax.partition.propagate import meshes_named
from polyax.partition.reshard import block_aval
from polyax.runtime.contract.backend import Device
from polyax.runtime.contract.queue import serving
from polyax.runtime.running.agreement import connection
from polyax.runtime.running.compiling import compile_program
from polyax.runtime.running.donation import taken
from polyax.runtime.running.programs import Program, placed
from polyax.runtime.running.team import Bystander, Team, check_effects
from polyax.transforms.memo import kept, once
from polyax.transforms.vmap import axes_of

KEPT = 256
"""How many ways to lie on meshes are remembered of each program."""


@dataclass(frozen=True)
class Layouts:
    """How the arguments and the results of a program lie on the devices of ``mesh``, or will when it has some; None:
    as it suits."""

    mesh: Mesh | AbstractMesh
    ins: tuple[NamedSharding | None, ...]
    outs: tuple[NamedSharding | None, ...]

    @classmethod
    def of(cls, mesh: Mesh | AbstractMesh, ins: Sequence[Any], outs: Sequence[Any]) -> Layouts:
        """What isn't said by a sharding on several devices is open."""
        return cls(mesh, *(tuple([s if isinstance(s, NamedSharding) else None for s in end]) for end in (ins, outs)))

    def on(self, devices: Sequence[Device]) -> Layouts:
        """The same on ``devices``, where there were none."""
        ins, outs = ([s and s.on(devices) for s in end] for end in (self.ins, self.outs))
        return Layouts(Mesh.of_axes(self.mesh, devices), tuple(ins), tuple(outs))


@dataclass(frozen=True)
class Meshed:
    """A partitioned program, and where what it takes and gives lies."""

    parts: Partitioned
    ins: tuple[NamedSharding, ...]
    outs: tuple[NamedSharding, ...]
    program: Program


def common_abstract_mesh(shardings: Sequence[Sharding | None]) -> AbstractMesh | None:
    """The mesh of shardings that have no devices, if there are such.

    Raises:
      ValueError: they are for different numbers of devices.
    """
    meshes = [s.mesh for s in shardings if isinstance(s, NamedSharding) and isinstance(s.mesh, AbstractMesh)]
    for mesh in meshes:
        if mesh.size != meshes[0].size:
            raise ValueError(
                f"AbstractMesh should be of the same size across all shardings. Got {meshes[0]} and {mesh}"
            )
    return meshes[0] if meshes else None


def no_devices(mesh: AbstractMesh) -> ValueError:
    return ValueError(
        "Passing lowering_platforms via polyax.export or jit(f).trace(*args).lower(lowering_platforms=...) is required "
        f"when only AbstractMesh exists in a jitted computation. Got {mesh}, no Mesh of {mesh.size} devices is in "
        "force (polyax.set_mesh), and no argument lies on so many."
    )


def on_mesh(closed: ClosedJaxpr, layouts: Layouts, name: str, donated: tuple[bool, ...] = ()) -> Meshed:
    """The program for whole arrays that lie as ``layouts`` say; its constants are its first arguments. Made once for
    each way to lie.

    Raises:
      IndivisibleError: an array can't be cut as its sharding says.
      ValueError: the mesh has no devices.
    """
    if isinstance(layouts.mesh, AbstractMesh):
        raise no_devices(layouts.mesh)
    table: dict[Any, Meshed] = kept(closed, Layouts, dict)
    key = layouts, donated, config.trace_key()
    return once(table, key, lambda: _made(table, closed, layouts, name, donated), wait=not serving())


def _made(table: Any, closed: ClosedJaxpr, layouts: Layouts, name: str, donated: tuple[bool, ...]) -> Meshed:
    if len(table) >= KEPT:
        for old in list(table)[: KEPT // 2]:
            table.pop(old, None)
    if config.get("debug_key_reuse"):
        key_use(closed)
    assert isinstance(layouts.mesh, Mesh)
    mesh = _mesh(closed, layouts.mesh, layouts)
    check_effects(closed, mesh.size, name)
    wanted = _told_by_types(closed.out_avals, layouts.outs, mesh)
    in_cuts, out_cuts = _asked(closed.in_avals, layouts.ins, mesh), _asked(closed.out_avals, wanted, mesh)
    parts = partition(closed, mesh.axes, in_cuts, out_cuts)
    tell(parts, mesh)
    ins = _shardings(layouts.ins, parts.ins, mesh, layouts.mesh, [])
    first = [(parts.ins[0], ins[0])] if layouts.ins and layouts.ins[0] is not None else []
    outs = _shardings(wanted, parts.outs, mesh, layouts.mesh, first)
    sure = mesh.size == 1 or None not in wanted  # else nobody has said where results lie, and what may fit
    donated = taken(parts.program, donated, warned=sure)
    return Meshed(parts, ins, outs, _program(closed, parts, (ins, outs), mesh, name, donated))


def tell(parts: Partitioned, mesh: Mesh) -> None:
    """Those who want to know hear how values of the program lie. Of sums still to be made, only types tell."""
    for look, cuts in parts.looks:
        told_of = summands(cuts, sums_of(cuts).intersection(mesh.abstract_mesh.explicit_axes))
        look(NamedSharding(mesh, trimmed_spec(told_of)))


def _mesh(closed: ClosedJaxpr, mesh: Mesh, layouts: Layouts) -> Mesh:
    """The mesh whose axes say how all is cut: that of the layouts, ``mesh``, or one of its devices with finer axes."""
    shardings = [s for s in (*layouts.ins, *layouts.outs) if isinstance(s, NamedSharding)]
    return finest(mesh, {*(s.mesh for s in shardings), *meshes_named(closed)})


def _told_by_types(avals: Sequence[ShapedArray], asked: Sequence[Any], mesh: Mesh) -> Sequence[Any]:
    """Where all axes are explicit, types tell all of how results lie."""
    if not mesh_here(mesh).are_all_axes_explicit:
        return asked
    return [s or _told_sharding(a, mesh) for s, a in zip(asked, avals, strict=True)]


def _told_sharding(aval: ShapedArray, mesh: Mesh) -> NamedSharding:
    """On ``mesh``, or one of the same devices with the axes that the type names."""
    if aval.told is not None and aval.told.mesh.axes != mesh.axes:
        mesh = Mesh.of_axes(aval.told.mesh, mesh.devices)
    return NamedSharding(mesh, spec_of(cuts_of(aval), reduced_in(aval)))


def _asked(avals: Sequence[ShapedArray], shardings: Sequence[Any], mesh: Mesh) -> list[Cuts | None]:
    for aval, sharding in zip(avals, shardings, strict=True):
        if sharding is not None:
            sharding.shard_shape(aval.shape)
    return [None if s is None else cuts_on(mesh, s, a.ndim) for a, s in zip(avals, shardings, strict=True)]


def _shardings(
    asked: Sequence[Any], cuts: Sequence[Cuts], mesh: Mesh, coarse: Mesh, known: list[tuple[Cuts, NamedSharding]]
) -> tuple[NamedSharding, ...]:
    """Those that were asked for, else that of the first argument where it is cut alike, else new ones, with the axes of
    ``coarse`` if those can say it."""
    found: list[NamedSharding] = []
    for sharding, c in zip(asked, cuts, strict=True):
        if sharding is None:
            alike = next((s for k, s in known if k == c and s.mesh == mesh), None)
            sharding = alike or renamed(coarse, NamedSharding(mesh, trimmed_spec(c)), len(c))
            known.append((c, sharding))
        found.append(sharding)
    return tuple(found)


def _program(
    closed: ClosedJaxpr, parts: Partitioned, shardings: Any, mesh: Mesh, name: str, donated: tuple[bool, ...]
) -> Program:
    ins, outs = shardings
    on_blocks = parts.program
    blocks = [block_aval(a, c, mesh.axes) for a, c in zip(closed.in_avals, parts.ins, strict=True)]
    ends: dict[str, Any] = {"inputs": list(zip(blocks, ins, strict=True))}
    ends["outputs"] = [(told(a, s), s) for a, s in zip(closed.out_avals, outs, strict=True)]
    if not any(d.is_addressable for d in mesh.device_list):
        return Program(name, Bystander(len(outs)), **ends)
    link = connection(mesh.device_list, name, (closed, on_blocks, mesh, ins, outs))
    own = [d for d in mesh.device_list if d.is_addressable]
    members = [compile_program(on_blocks, d, name, donated, mesh=mesh) for d in own]
    meets = axes_of(on_blocks) or on_blocks.effects
    everywhere = NamedSharding(mesh, PartitionSpec())
    consts = [placed(c, aval_of(c), everywhere) for c in on_blocks.consts]
    return Program(
        name,
        Team(members, mesh.axes if meets else None, mesh.device_list, link, consts),
        **ends,
        donated=members[0].donated,
        checked=closed if link is None and members[0].checked else None,
    )
