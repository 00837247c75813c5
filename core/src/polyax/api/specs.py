"""What ``shard_map`` is asked for, checked: its mesh, its axes, and specs against types of arguments and results."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

from polyax.control.spmd import block_of, manual
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import ambient
from polyax.meshes.axes import AbstractMesh, AxisType
from polyax.meshes.current import get_abstract_mesh, mesh_that_is_set
from polyax.meshes.explicit import cuts_of, reduced_in, typed
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import DuplicateSpecError, NamedSharding
from polyax.meshes.spec import Cuts, PartitionSpec, spec_of, summands
from polyax.runtime.arrays.array import is_concrete
from polyax.trace.calls import UserCall
from polyax.trace.paths import keystr, prefix_errors, tree_leaves_with_path
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_leaves, tree_unflatten
from polyax.trace.varying import in_order

AnyMesh = Mesh | AbstractMesh


# --- the mesh and its axes


def chosen_mesh(given: Any, leaves: Sequence[Any]) -> AnyMesh:
    """The mesh of a call: the one given, or the one in force.

    Raises:
      TypeError: it is no mesh.
      ValueError: there is none, it is empty or isn't the one in force, or arguments lie on other devices.
    """
    if given is None:
        return _in_force()
    if not isinstance(given, (Mesh, AbstractMesh)):
        raise TypeError(
            "shard_map requires a `polyax.sharding.Mesh` or a `polyax.sharding.AbstractMesh` instance for its second "
            f"argument, but got {given} of type {type(given)}."
        )
    if given.empty:
        raise ValueError(f"shard_map requires a non-empty mesh. Got {given}")
    around = get_abstract_mesh()
    if not around.empty and around != given.abstract_mesh:
        raise ValueError(f"The context mesh {around} should match the mesh passed to shard_map {given}")
    if around.manual_axes or (isinstance(given, AbstractMesh) and not around.empty):
        return _in_force()
    return _with_devices(given, leaves) if isinstance(given, AbstractMesh) else _checked(given, leaves)


def _in_force() -> AnyMesh:
    abstract, mesh = get_abstract_mesh(), mesh_that_is_set()
    if abstract.empty:
        raise ValueError(
            "The context mesh cannot be empty. Use `polyax.set_mesh(mesh)` to enter into a mesh context, or give "
            "shard_map a mesh."
        )
    return abstract if mesh is None or mesh.abstract_mesh != abstract else mesh


def _with_devices(given: AbstractMesh, leaves: Sequence[Any]) -> AnyMesh:
    """The mesh that arguments lie on, in place of one of the same axes without devices."""
    meshes = [(x, getattr(x.sharding, "mesh", None)) for x in leaves if is_concrete(x)]
    found = [(x, mesh) for x, mesh in meshes if isinstance(mesh, Mesh)]
    for x, mesh in found:
        if mesh.axes != given.axes and ambient.trace is None:
            raise ValueError(
                f"Mesh shape of the input {mesh.axes} does not match the mesh shape passed to shard_map {given.axes} "
                f"for shape {x.aval.str_short()}"
            )
    for _, mesh in found:
        if mesh.axes == given.axes:
            return mesh
    if ambient.trace is None:
        raise ValueError(
            "Please pass `polyax.Array`s with a `NamedSharding` as input to `shard_map` when passing `AbstractMesh` to "
            f"the mesh argument: none of the arguments lies on a mesh of the axes {given.axes}."
        )
    return given


def _checked(mesh: Mesh, leaves: Sequence[Any]) -> Mesh:
    for n, x in enumerate(leaves):
        if is_concrete(x) and x.committed and x.devices() != set(mesh.device_list):
            raise ValueError(
                f"Received incompatible devices for jitted computation: argument number {n} of type {x.aval} lies on "
                f"{x.sharding}, shard_map has the mesh {mesh} of {mesh.size} devices. Move it there with "
                "polyax.device_put(x, NamedSharding(mesh, spec))."
            )
    return mesh


def chosen_axes(mesh: AnyMesh, asked: frozenset[Any]) -> frozenset[Any]:
    """The axes to map over: those asked for, or all that aren't mapped over yet.

    Raises:
      ValueError: the mesh has no such axis, or it is mapped over already.
    """
    if not asked <= frozenset(mesh.axis_names):
        raise ValueError(
            f"shard_map requires axis_names={asked} to be a subset of mesh.axis_names={frozenset(mesh.axis_names)}"
        )
    free = frozenset(mesh.axis_names) - frozenset(mesh.manual_axes)
    chosen = asked or free
    if not chosen or not chosen <= free:
        raise ValueError(
            f"shard_map over {in_set(chosen) or 'all axes'}: a shard_map around it maps over "
            f"{in_set(mesh.manual_axes)} of the mesh {mesh}. Give axis_names, some of {in_set(free)}."
        )
    return chosen


def in_set(names: Any) -> str:
    return f"{{{', '.join(sorted(map(repr, names)))}}}" if names else ""


# --- specs


@dataclass(frozen=True)
class CutByHand:
    """Which function is mapped, on which mesh, along which axes."""

    function: str
    mesh: AnyMesh
    axes: frozenset[Any]
    check_vma: bool

    @property
    def head(self) -> str:
        return f"shard_map applied to the function '{self.function}' was given"

    @property
    def mesh_text(self) -> str:
        sizes, names = self.mesh.axis_sizes, self.mesh.axis_names
        return f"The mesh given has shape {sizes} with corresponding axis names {names}."


def inferred(mesh: AnyMesh, axes: frozenset[Any], leaves: Sequence[Any]) -> tuple[PartitionSpec, ...]:
    """How the arguments are cut along these axes, which are ``Explicit``.

    Raises:
      TypeError: some are ``Auto``: types don't tell.
    """
    types = [t for n, t in zip(mesh.axis_names, mesh.axis_types, strict=True) if n in axes]
    if any(t is AxisType.Auto for t in types):
        raise TypeError(
            "shard_map in_specs argument must be a pytree of `polyax.sharding.PartitionSpec` instances, but it was "
            f"`None` when axis_names={axes} are of type {', '.join(map(str, types))}"
        )
    return tuple(_spec_of(x, axes) for x in leaves)


def _spec_of(x: Any, axes: frozenset[Any]) -> PartitionSpec:
    sharding = x.sharding if is_concrete(x) else aval_of(x).told
    spec = sharding.spec if isinstance(sharding, NamedSharding) else getattr(sharding, "spec", PartitionSpec())
    sums = {"unreduced": spec.unreduced & axes, "reduced": spec.reduced & axes}
    return PartitionSpec(*[tuple(n for n in names if n in axes) for names in spec.cuts(0)], **sums)


def in_blocks(
    blocks: CutByHand, specs: Any, call: UserCall, avals: Sequence[ShapedArray]
) -> tuple[list[Cuts], list[ShapedArray]]:
    """How each argument is cut, and the types of the blocks."""
    args = tree_unflatten(call.in_tree, call.leaves)[0]
    found = _flat_specs("in_specs", blocks, specs, args, lambda s: s is None or isinstance(s, PartitionSpec))
    _check_ranks("in_specs", "input", blocks, found, avals, call.names)
    cuts = [_end(s, a) for (_, s), a in zip(found, avals, strict=True)]
    axes = manual(blocks.mesh, blocks.axes)
    _check_sizes(blocks, found, cuts, avals, call.names)
    _check_told(blocks, found, avals, call.names)
    return cuts, [block_of(a, c, axes, blocks.check_vma) for a, c in zip(avals, cuts, strict=True)]


def _check_sums(spec: PartitionSpec, aval: ShapedArray) -> None:
    implied = aval.sums[0] | spec.unreduced & aval.vma
    for role, told in zip(("unreduced", "reduced"), (implied, aval.sums[1]), strict=True):
        if getattr(spec, role) != told:
            raise ValueError(
                f"out_specs passed to shard_map should be equal to the {role} present on the out_aval. Got "
                f"out_specs={spec} and out_aval={aval.str_short(True)}"
            )


def out_blocks(blocks: CutByHand, specs: Any, tree: PyTreeDef, results: Sequence[Any]) -> list[Cuts]:
    """How the results are cut whose blocks are ``results``."""
    full, avals = tree_unflatten(tree, results), [aval_of(x) for x in results]
    found = _flat_specs("out_specs", blocks, specs, full, lambda s: isinstance(s, PartitionSpec))
    _check_ranks("out_specs", "output", blocks, found, avals, lambda: [f"result{keystr(p)}" for p in _paths(full)])
    for (_, spec), aval in zip(found, avals, strict=True) if blocks.check_vma else ():
        _check_sums(spec, aval)
    if blocks.check_vma:
        _check_replication(blocks, found, avals)
    return [_end(s, a) for (_, s), a in zip(found, avals, strict=True)]


def _end(spec: PartitionSpec, aval: ShapedArray) -> Cuts:
    return summands(spec.cuts(aval.ndim), spec.unreduced, spec.reduced)


def _paths(tree: Any) -> list[Any]:
    return [path for path, _ in tree_leaves_with_path(tree)]


Found = Sequence[tuple[str, PartitionSpec]]
"""For each array the spec, and what it is called."""


def _flat_specs(what: str, blocks: CutByHand, specs: Any, full: Any, is_leaf: Callable[[Any], bool]) -> Found:
    leaves, tree = tree_flatten(specs, is_leaf)
    names = [f"{what}{keystr(path)}" for path, _ in tree_leaves_with_path(specs, is_leaf)]
    _check_specs(what, blocks, names, leaves)
    try:
        parts = tree.flatten_up_to(full)
    except ValueError:
        raise prefix_errors(specs, full, is_leaf)[0](f"shard_map {what}") from None
    known = [(n, PartitionSpec() if s is None else s) for n, s in zip(names, leaves, strict=True)]
    return [spec for spec, part in zip(known, parts, strict=True) for _ in tree_leaves(part)]


def _check_specs(what: str, blocks: CutByHand, names: Sequence[str], specs: Sequence[Any]) -> None:
    end = f"Check the {what} values passed to shard_map."
    wrong = [f"  {n} is {s} of type {type(s).__name__}" for n, s in zip(names, specs) if not _is_spec(s)]
    if wrong:
        raise TypeError(
            f"shard_map {what} argument must be a pytree of `polyax.sharding.PartitionSpec` instances, but:\n\n"
            + "\n".join(wrong)
            + f"\n\n{end}"
        )
    for name, given in zip(names, specs, strict=True):
        spec = PartitionSpec() if given is None else given
        axes, own = [a for names in spec.cuts(0) for a in names], in_set(blocks.axes)
        if unknown := [a for a in axes if a not in blocks.axes]:
            raise ValueError(
                f"shard_map {what} argument must refer to an axis marked as manual (frozenset({own})), but:\n\n"
                f"  {name} refers to {', '.join(map(repr, unknown))}\n\n{blocks.mesh_text} {end}"
            )
        _check_roles(what, blocks, spec)
        if twice := [a for a in axes if axes.count(a) > 1]:
            raise DuplicateSpecError(spec, twice[0])


def _check_roles(what: str, blocks: CutByHand, spec: PartitionSpec) -> None:
    """Sums are told of where all axes of a mesh are explicit outside, and manual inside."""
    if not (spec.unreduced or spec.reduced):
        return
    if blocks.axes != frozenset(blocks.mesh.axis_names):
        raise NotImplementedError(
            f"unreduced/reduced can only be passed to {what} when shard_map is in full manual mode. Got mesh axis "
            f"names {blocks.mesh.axis_names}, manual_axes: {in_set(blocks.axes)}, specs: {spec}."
        )
    NamedSharding(blocks.mesh, spec)


def _is_spec(spec: Any) -> bool:
    return spec is None or isinstance(spec, PartitionSpec)


def _check_ranks(
    what: str, which: str, blocks: CutByHand, found: Found, avals: Sequence[ShapedArray], names: Callable[[], Any]
) -> None:
    long = [n for n, ((_, s), a) in enumerate(zip(found, avals, strict=True)) if len(s) > a.ndim]
    if not long:
        return
    lines = [
        f"{found[n][0]} is {found[n][1]} which has length {len(found[n][1])}, but {names()[n]} has the type "
        f"{avals[n]}, which has rank {avals[n].ndim} (and {avals[n].ndim} < {len(found[n][1])})"
        for n in long
    ]
    hint = ""
    if any(not avals[n].shape for n in long):
        hint = f"\n\nFor scalar values (rank 0), consider using an {what} entry of `P()`, where `P` is `PartitionSpec`."
        if which == "output":
            hint += (
                " Those which are not constant over the mesh need a (singleton) axis, so that they can be concatenated "
                "using out_specs."
            )
    raise ValueError(
        f"{blocks.head} an {what} entry which is too long to be compatible with the corresponding {which} value from "
        "the function:\n\n"
        + "\n\n".join(lines)
        + f"\n\nEntries in {what} must be of length no greater than the number "
        f"of axes in the corresponding {which} value. Either revise the spec to be shorter, or modify "
        f"'{blocks.function}' so that its {which}s have sufficient rank.{hint}"
    )


def _check_sizes(
    blocks: CutByHand, found: Found, cuts: Sequence[Cuts], avals: Sequence[ShapedArray], names: Callable[[], Any]
) -> None:
    sizes, lines = blocks.mesh.shape, list[str]()
    for n, (aval, cut) in enumerate(zip(avals, cuts, strict=True)):
        for dim, axes in enumerate(cut):
            count = math.prod(sizes[a] for a in axes)
            if aval.shape[dim] % count:
                which = f"mesh axis {axes[0]!r}" if len(axes) == 1 else f"mesh axes {axes}"
                lines.append(
                    f"the passed {names()[n]} of type {aval} corresponds to {found[n][0]} of value {found[n][1]}, "
                    f"which maps array axis {dim} (of size {aval.shape[dim]}) to {which} (of size {count}), but "
                    f"{count} does not evenly divide {aval.shape[dim]}"
                )
    if lines:
        raise ValueError(
            f"{blocks.head} argument arrays with axis sizes that are not evenly divisible by the corresponding mesh "
            f"axis sizes:\n\n{blocks.mesh_text}\n\n" + "\n\n".join(lines) + "\n\nConsider checking that in_specs are "
            f"correct, and if so consider changing the mesh axis sizes or else padding the input and adapting "
            f"'{blocks.function}' appropriately."
        )


def _check_told(blocks: CutByHand, found: Found, avals: Sequence[ShapedArray], names: Callable[[], Any]) -> None:
    """Where types tell all of how arguments are cut, that is how they are mapped over."""
    mesh = blocks.mesh
    if not mesh.are_all_axes_explicit or len(blocks.axes) < len(mesh.axis_names):
        return
    for n, ((name, spec), aval) in enumerate(zip(found, avals, strict=True)):
        wanted = typed(aval, NamedSharding(mesh, spec))
        told, given = (spec_of(cuts_of(a), reduced_in(a)) for a in (aval, wanted))
        if told != given:
            raise ValueError(
                f"in_specs passed to shard_map: {given} does not match the specs of the input: "
                f"{told} for arg: {aval}, which is {names()[n]} of '{blocks.function}' ({name}). `in_specs` "
                "is an optional argument so you can omit specifying it and shard_map will infer the in_specs from the "
                "arguments. If you want to reshard your inputs, you can use `polyax.reshard` on the arguments and "
                "then pass those args to shard_map."
            )


def _check_replication(blocks: CutByHand, found: Found, avals: Sequence[ShapedArray]) -> None:
    lines: list[str] = []
    for (name, spec), aval in zip(found, avals, strict=True):
        missing = in_order((aval.vma & blocks.axes - spec.unreduced).difference(*spec.cuts(0)))
        if missing:
            named = frozenset[Any]().union(*spec.cuts(0))
            said = f"only varying across mesh axes {_in_braces(blocks, named)} and not {_in_braces(blocks, missing)}"
            found_out = f"it was inferred to be possibly varying over {_in_braces(blocks, aval.vma)}"
            if len(named) == len(blocks.mesh.axis_names) - 1:
                said = f"replicated across mesh axis {missing[0]!r}"
                found_out = "could not infer replication over any axes"
            lines.append(
                f"{name} is {spec} which implies that the corresponding output value is {said}, but {found_out}: "
                f"its type is {aval}"
            )
    if lines:
        raise ValueError(
            f"{blocks.head} out_specs which require replication which can't be statically inferred given the mesh:\n\n"
            f"{blocks.mesh_text}\n\n" + "\n\n".join(lines) + "\n\nCheck if these output values are meant to be "
            "replicated over those mesh axes. If not, consider revising the corresponding out_specs entries. If so, "
            "consider disabling the check by passing the check_vma=False argument to `polyax.shard_map`."
        )


def _in_braces(blocks: CutByHand, names: Container[Any]) -> str:
    return f"{{{','.join(str(a) for a in blocks.mesh.axis_names if a in names)}}}"
