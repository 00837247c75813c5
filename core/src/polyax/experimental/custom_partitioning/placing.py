"""What the partitioner asks of a user's function, and how it runs on blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from polyax.api.ahead import ShapeDtypeStruct
from polyax.control.inner.programs import run
from polyax.ir.aval import aval_of
from polyax.ir.config import config
from polyax.ir.jaxpr import Atom, Eqn
from polyax.meshes.axes import AbstractMesh, MeshAxes
from polyax.meshes.current import NO_DEVICES
from polyax.meshes.sharding import NamedSharding, Sharding
from polyax.meshes.spec import Cuts, spec_of, uncut
from polyax.meshes.translate import cuts_on
from polyax.partition import reasons
from polyax.partition.emit import BlockEmitter, Cut
from polyax.partition.propagate import Cutting
from polyax.partition.reshard import block_aval
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten


@dataclass(frozen=True, eq=False)
class Partitioning:
    """What a user says of one call."""

    partition: Callable[..., Any]
    infer: Callable[..., Any] | None
    rule: Any
    static: tuple[Any, ...]
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    name: str

    def mesh_in_force(self) -> MeshAxes:
        return config.get("mesh") or NO_DEVICES

    def mesh(self, axes: AbstractMesh) -> MeshAxes:
        """That of these axes: with devices, if it is the one in force."""
        found = self.mesh_in_force()
        return found if found.axes == axes.axes else axes

    def __repr__(self) -> str:
        return self.name


def results_asked(eqn: Eqn) -> Callable[[Cutting], Iterable[tuple[Atom, Cuts]]] | None:
    """How the results are cut, from how the operands are, if the user says it so."""
    owner: Partitioning = eqn.params["owner"]
    infer = owner.infer
    if infer is None:
        return None

    def asked(layout: Cutting) -> Iterable[tuple[Atom, Cuts]]:
        mesh = owner.mesh(layout.mesh)
        args = tree_unflatten(owner.in_tree, _shapes(mesh, eqn.invars, layout))
        bare = [ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.outvars]
        found = infer(*owner.static, mesh, args, tree_unflatten(owner.out_tree, bare))
        return zip(eqn.outvars, _cuts(mesh, owner.out_tree, found, eqn.outvars), strict=True)

    return asked


def _shapes(mesh: Any, atoms: Sequence[Atom], layout: Cutting) -> list[ShapeDtypeStruct]:
    """Their types, with how they are cut."""
    pairs = [(a.aval, NamedSharding(mesh, spec_of(layout[a]))) for a in atoms]
    return [ShapeDtypeStruct(aval.shape, aval.dtype, sharding=s) for aval, s in pairs]


def _cuts(mesh: MeshAxes, tree: PyTreeDef, shardings: Any, atoms: Sequence[Atom]) -> list[Cuts]:
    """How arrays are cut, as the user's shardings say."""
    found: list[Cuts] = []
    for sharding, atom in zip(tree.flatten_up_to(shardings), atoms, strict=True):
        if not isinstance(sharding, Sharding):
            raise ValueError(f"Custom Partitioning rules must return Sharding. Got {sharding!r}")
        ndim = atom.aval.ndim
        cuts = cuts_on(mesh, sharding, ndim) if isinstance(sharding, NamedSharding) else None
        if cuts is None and not sharding.is_fully_replicated:
            raise ValueError(f"Custom Partitioning rules must return shardings on {mesh}. Got {sharding}")
        found.append(uncut(ndim) if cuts is None else cuts)
    return found


def on_blocks(emitter: BlockEmitter, eqn: Eqn) -> list[Cut]:
    """What it gives for blocks; in a region of all axes, where operands are blocks already, the function itself."""
    if not emitter.free:
        args = [emitter.at(a, uncut(a.aval.ndim), reasons.unruled(eqn, n)) for n, a in enumerate(eqn.invars)]
        return [(x, uncut(aval_of(x).ndim)) for x in run(eqn.params["call"], args)]
    return _partitioned(emitter, eqn, eqn.params["owner"])


def _partitioned(emitter: BlockEmitter, eqn: Eqn, owner: Partitioning) -> list[Cut]:
    """What the user's function gives for blocks that are cut as it wants."""
    layout = emitter.layout
    mesh = owner.mesh(layout.mesh)
    arg_shapes = tree_unflatten(owner.in_tree, _shapes(mesh, eqn.invars, layout))
    result_shape = tree_unflatten(owner.out_tree, _shapes(mesh, eqn.outvars, layout))
    _, fun, results, args = owner.partition(*owner.static, mesh, arg_shapes, result_shape)
    ins = _cuts(layout.mesh, owner.in_tree, args, eqn.invars)
    outs = _cuts(layout.mesh, owner.out_tree, results, eqn.outvars)
    why = reasons.of_ends(f"the partition rule of {owner.name} wants it as")
    blocks = [emitter.at(a, c, why) for a, c in zip(eqn.invars, ins, strict=True)]
    found, _ = tree_flatten(fun(*tree_unflatten(owner.in_tree, blocks)))
    _check_blocks(owner, found, [block_aval(v.aval, c, emitter.axes) for v, c in zip(eqn.outvars, outs, strict=True)])
    return list(zip(found, outs, strict=True))


def _check_blocks(owner: Partitioning, found: Sequence[Any], wanted: Sequence[Any]) -> None:
    """What the function gives must be blocks of the results."""
    got = [aval_of(x) for x in found]
    if [(a.shape, a.dtype) for a in got] != [(a.shape, a.dtype) for a in wanted]:
        raise ValueError(
            f"Mismatch in result shapes. {got} vs {list(wanted)}: what the partition rule of {owner.name} computes on "
            "blocks doesn't give blocks as its shardings of results say"
        )
