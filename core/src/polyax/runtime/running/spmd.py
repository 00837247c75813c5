"""``shard_map`` outside of programs: which devices it runs on, and where its arguments and results lie.

What can be known without the arguments is worked out once for each program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.control.inner.untyped import without_vma
from polyax.control.spmd import manual, on_one_device, shard_map_p, whole
from polyax.ir.config import config
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import def_rule
from polyax.ir.refs import has_refs, met
from polyax.meshes.axes import AbstractMesh
from polyax.meshes.explicit import told
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import Cuts, trimmed_spec
from polyax.runtime.arrays import devices as places
from polyax.runtime.contract.queue import serving
from polyax.runtime.running.agreement import connection
from polyax.runtime.running.compiling import compile_program
from polyax.runtime.running.meshed import tell
from polyax.runtime.running.programs import Program
from polyax.runtime.running.regions import on_blocks, with_devices
from polyax.runtime.running.team import Team, check_effects
from polyax.transforms.memo import kept
from polyax.transforms.vmap import axes_of


@def_rule(shard_map_p, "impl")
def _run(
    *args: Any,
    jaxpr: ClosedJaxpr,
    name: str,
    mesh: Mesh | AbstractMesh,
    manual_axes: frozenset[Any],
    in_specs: Any,
    out_specs: Any,
    check_vma: bool,
) -> list[Any]:
    if met.any and has_refs(jaxpr):
        params = {"mesh": mesh, "manual_axes": manual_axes, "in_specs": in_specs, "out_specs": out_specs}
        return shard_map_p.rule("discharge")(*args, jaxpr=jaxpr, name=name, check_vma=check_vma, **params)
    if serving():  # a callback: the devices may wait for it, so it can't wait for them
        program = on_one_device(jaxpr, manual(mesh, manual_axes), in_specs, out_specs)
        return compile_program(program, places.default_device_now(), name).run([*program.consts, *args])
    jaxpr = without_vma(jaxpr) if check_vma else jaxpr
    placed = mesh if isinstance(mesh, Mesh) else with_devices(mesh, jaxpr, places.local_devices(), name)
    key = Team, placed, in_specs, out_specs, config.trace_key()
    return kept(jaxpr, key, lambda: _prepared(jaxpr, name, manual_axes, *key[1:4])).run(args)


def _prepared(
    jaxpr: ClosedJaxpr,
    name: str,
    manual_axes: frozenset[Any],
    mesh: Mesh,
    in_specs: Sequence[Cuts],
    out_specs: Sequence[Cuts],
) -> Program:
    """The program for whole arguments on the devices of the mesh."""
    parts = on_blocks(jaxpr, mesh, manual_axes, in_specs, out_specs)
    tell(parts, mesh)
    jaxpr, in_specs, out_specs = parts.program, parts.ins, parts.outs
    check_effects(jaxpr, mesh.size, name)
    layouts = _layouts(mesh, out_specs)
    wholes = [told(whole(a, s, mesh.axes), at) for a, s, at in zip(jaxpr.out_avals, out_specs, layouts, strict=True)]
    meets = axes_of(jaxpr) or jaxpr.effects
    link = connection(mesh.device_list, name, (jaxpr, mesh, in_specs, out_specs))
    programs = [compile_program(jaxpr, d, name, mesh=mesh) for d in mesh.device_list if d.is_addressable]
    team = Team(programs, mesh.axes if meets else None, mesh.device_list, link)
    whole_program = link is None and programs[0].checked is not None
    return Program(
        name,
        team,
        inputs=list(zip(jaxpr.in_avals, _layouts(mesh, in_specs), strict=True)),
        outputs=list(zip(wholes, layouts, strict=True)),
        checked=on_one_device(jaxpr, mesh.axes, in_specs, out_specs) if whole_program else None,
    )


def _layouts(mesh: Mesh, specs: Sequence[Cuts]) -> list[NamedSharding]:
    return [NamedSharding(mesh, trimmed_spec(cuts)) for cuts in specs]
