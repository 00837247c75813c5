"""Regions within a region: they run on all devices of one mesh, if there are enough."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.control.inspection import looks_in
from polyax.control.spmd import cut_further, manual, shard_map_p, whole
from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, sub_jaxprs, walk_eqns
from polyax.meshes.axes import AbstractMesh, Axes, AxisType
from polyax.meshes.mesh import Mesh
from polyax.meshes.spec import Cuts, OpenCuts
from polyax.partition.partition import Partitioned, partition
from polyax.partition.together import together
from polyax.runtime.contract.backend import Device


def regions_in(program: ClosedJaxpr) -> list[Eqn]:
    """Those that the program holds, and those in them."""
    return [e for e in walk_eqns(program.jaxpr) if e.primitive is shard_map_p]


def with_devices(mesh: Mesh | AbstractMesh, program: ClosedJaxpr, devices: Sequence[Device], name: str) -> Mesh:
    """The mesh on the first of ``devices``, if nobody chose others. Axes of meshes inside, of which nobody chose the
    devices either, become further axes of it while there are enough."""
    if isinstance(mesh, Mesh):
        return mesh
    axes, size = dict(mesh.axes), mesh.size
    inside = [e.params["mesh"] for e in regions_in(program)]
    for axis, n in [axis for m in inside if isinstance(m, AbstractMesh) for axis in m.axes]:
        if axis not in axes and size * n <= len(devices):
            axes[axis] = n
            size *= n
    return _first(tuple(axes.items()), tuple(devices), name)


@functools.lru_cache(256)
def _first(axes: Axes, devices: tuple[Device, ...], name: str) -> Mesh:
    sizes = [n for _, n in axes]
    chosen = np.array(choose(int(np.prod(sizes)), devices, name), object)
    return Mesh(chosen.reshape(sizes), [axis for axis, _ in axes], AxisType.Auto)


def choose(count: int, devices: Sequence[Device], name: str) -> tuple[Device, ...]:
    """The first ``count`` of the devices.

    Raises:
      ValueError: there are fewer, or one comes twice.
    """
    if len(devices) < count:
        platform = devices[0].platform if devices else "none"
        raise ValueError(
            f"{name}: compiling computation that requires {count} logical devices, but only {len(devices)} devices are "
            f"available on {platform}. Map over an axis of at most {len(devices)}, or, on virtual devices of the host, "
            f"set POLYAX_NUM_CPU_DEVICES={count} before the first computation."
        )
    chosen = tuple(devices[:count])
    if len(set(chosen)) < count:
        raise ValueError(f"{name}: each device can have one part, got devices={list(map(str, chosen))}")
    return chosen


def on_blocks(
    program: ClosedJaxpr, mesh: Mesh, manual_axes: frozenset[Any], in_specs: Sequence[Cuts], out_specs: Sequence[Cuts]
) -> Partitioned:
    """The program of one device of ``mesh``: cut along axes that are left to the partitioner, or to regions inside."""
    inside = regions_in(program)
    along_all = len(manual(mesh, manual_axes)) == len(mesh.axes)
    if (along_all and not inside) or _meet_again(program, manual_axes):
        looks = tuple([(look, ()) for look in looks_in(program)])
        return Partitioned(together(program), tuple(in_specs), tuple(out_specs), looks=looks)
    params: dict[str, Any] = {"jaxpr": program, "mesh": mesh, "manual_axes": manual_axes, "check_vma": False}
    params |= {"in_specs": tuple(in_specs), "out_specs": tuple(out_specs), "name": program.jaxpr.debug_name}
    ins = [Var(whole(a, c, mesh.axes)) for a, c in zip(program.in_avals, in_specs, strict=True)]
    outs = [Var(whole(a, c, mesh.axes)) for a, c in zip(program.out_avals, out_specs, strict=True)]
    eqn = Eqn(shard_map_p, ins, outs, params, program.effects)
    closed = ClosedJaxpr(Jaxpr([], ins, outs, [eqn], None, program.jaxpr.debug_name), [])
    return partition(closed, mesh.axes, _opened(in_specs, program.in_avals), _opened(out_specs, program.out_avals))


def _opened(specs: Sequence[Cuts], blocks: Sequence[ShapedArray]) -> list[OpenCuts]:
    """Where neither the user nor a type cuts anything, the partitioner may."""
    return [tuple(names or None for names in cut_further(c, a)) for c, a in zip(specs, blocks, strict=True)]


def _meet_again(program: ClosedJaxpr, manual_axes: frozenset[Any]) -> bool:
    """Whether a region inside maps over an axis of the same name once more."""
    for eqn in program.eqns:
        own = eqn.params["manual_axes"] if eqn.primitive is shard_map_p else frozenset[Any]()
        if own & manual_axes or any(_meet_again(p, manual_axes | own) for p in sub_jaxprs(eqn)):
            return True
    return False
