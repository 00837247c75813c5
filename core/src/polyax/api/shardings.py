"""Shardings as users give them: trees of them for arguments and results, and specs of the mesh in force."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from polyax.ir.aval import ShapedArray, aval_of
from polyax.meshes.axes import AbstractMesh
from polyax.meshes.current import get_abstract_mesh, mesh_for_specs, mesh_in_force, mesh_that_is_set
from polyax.meshes.explicit import as_told, cuts_of, seen
from polyax.meshes.formats import Auto, Format, Layout
from polyax.meshes.mesh import Mesh
from polyax.meshes.sharding import DuplicateSpecError, NamedSharding, Sharding, SingleDeviceSharding
from polyax.meshes.spec import UNCONSTRAINED, PartitionSpec, axes_of, open_cuts, spec_of, sums_of
from polyax.ops.constraint import constrain
from polyax.runtime.arrays.array import is_concrete
from polyax.runtime.arrays.placing import device_put
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.paths import broadcast_prefix, keystr, tree_leaves_with_path
from polyax.trace.tracer import Tracer
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_leaves, tree_structure, tree_unflatten
from polyax.transforms.jvp import JVPTracer
from polyax.transforms.vmap import BatchTrace, BatchTracer

Asked = Sharding | None


@api_boundary
def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """``x``, lying on the devices of a mesh as ``shardings`` say, whatever the partitioner would choose.

    Outside of programs arrays are moved.

    Args:
      x: arrays in any pytree.
      shardings: a sharding, or a tree of those that ``x`` begins with; a ``PartitionSpec`` is one of the mesh in force.
        ``P.UNCONSTRAINED`` leaves a dimension to the partitioner.

    Raises:
      RuntimeError: a ``PartitionSpec`` is given and no mesh is in force.
      ValueError: an array has fewer dimensions than its sharding, or none is said of it; outside of programs, a
        dimension doesn't fall into equal blocks; or the spec names ``Explicit`` axes.

    >>> import polyax
    >>> from polyax.sharding import Mesh, NamedSharding, PartitionSpec
    >>> mesh = Mesh(polyax.devices()[:1], ("x",))
    >>> with_sharding_constraint(polyax.numpy.ones(4), NamedSharding(mesh, PartitionSpec("x"))).sharding.spec
    P('x',)
    """
    leaves, tree = tree_flatten(x)
    asked = each_of("with_sharding_constraint", "shardings", shardings, x)
    return tree_unflatten(tree, [_constrained(leaf, s) for leaf, s in zip(leaves, asked, strict=True)])


def _constrained(x: Any, sharding: Asked) -> Any:
    if sharding is None:
        raise ValueError(
            "One of with_sharding_constraint arguments got sharding None which is not allowed. Please only pass "
            f"`polyax.sharding.Sharding` instances; it is of type {aval_of(x)}."
        )
    if not isinstance(sharding, NamedSharding):
        _refuse_spmd_names(x, sharding)
        return device_put(x, sharding)
    if not isinstance(x, Tracer) and isinstance(sharding.mesh, AbstractMesh):
        sharding = _on_mesh_of(x, sharding)
    aval = aval_of(x)
    try:
        sharding.cuts(aval.ndim)
    except ValueError as e:
        raise ValueError(
            f"One of with_sharding_constraint arguments is incompatible with its sharding annotation {sharding}: {e}"
        ) from None
    if seen.any and _told(aval, sharding):
        return x if isinstance(x, Tracer) else constrain(x, sharding)
    if seen.any:
        sharding = _besides_told(aval, sharding)
    if isinstance(x, Tracer):
        _refuse_manual(sharding)
        return constrain(x, _dividing(aval, sharding))
    sharding.shard_shape(aval.shape)
    return constrain(x, sharding)


def _refuse_spmd_names(x: Any, sharding: Sharding) -> None:
    """Axes of a mesh mean nothing where a sharding has no mesh."""
    while isinstance(x, (JVPTracer, BatchTracer)):
        if isinstance(x._trace, BatchTrace) and x._trace.axis.spmd_name is not None:
            raise ValueError(
                "If you are using spmd_axis_name parameter of polyax.vmap, please make sure to run your jitted "
                "function inside the mesh context manager. Only `polyax.lax.with_sharding_constraint` with "
                "`polyax.sharding.NamedSharding` as an input can be transformed with spmd_axis_name batching rules "
                f"outside of an explicit mesh context manager scope {sharding}"
            )
        x = x.value if isinstance(x, BatchTracer) else x.primal


def _refuse_manual(sharding: NamedSharding) -> None:
    given = {n for partition in sharding.spec for n in axes_of(partition)}
    if manual := tuple(n for n in get_abstract_mesh().manual_axes if n in given):
        raise ValueError(
            f"pspec {sharding.spec} contains a manual axes {manual} of mesh which is not allowed. If you are using a "
            "with_sharding_constraint under a shard_map, only use the mesh axis in PartitionSpec which are not manual."
        )


def _on_mesh_of(x: Any, target: NamedSharding) -> NamedSharding:
    """A sharding on a mesh of no devices, on those that an array lies on."""
    shape = aval_of(x).str_short()
    if not is_concrete(x):
        raise ValueError(
            "Target sharding contains a `jax.sharding.AbstractMesh` which requires the input passed should be a "
            f"`jax.Array`. Got {type(x)} with shape {shape}"
        )
    if not isinstance(x.sharding, NamedSharding):
        raise TypeError(
            "The sharding on the input must be a `NamedSharding` since the target sharding has an `AbstractMesh` in "
            f"it. Got sharding type {type(x.sharding)} for shape {shape}"
        )
    have, wanted = x.sharding.mesh.shape_tuple, target.mesh.shape_tuple
    if have != wanted:
        raise ValueError(
            f"Mesh shape of the input {have} does not match the mesh shape of the target sharding {wanted} for shape "
            f"{shape}"
        )
    return NamedSharding(x.sharding.mesh, target.spec)


def _dividing(aval: ShapedArray, sharding: NamedSharding) -> NamedSharding:
    """Without the cuts of dimensions that don't fall into equal blocks: in a program, those aren't cut."""
    sizes, cuts = sharding.mesh.shape, sharding.cuts(aval.ndim)
    divides = [n % math.prod(sizes[a] for a in axes) == 0 for n, axes in zip(aval.shape, cuts, strict=True)]
    if all(divides):
        return sharding
    entries = [p if d else None for p, d in zip(sharding.spec.partitions, divides)]
    return sharding.update(spec=sharding.spec.update(partitions=entries))


def _told(aval: ShapedArray, sharding: NamedSharding) -> bool:
    """Whether the mesh in force tells all of how arrays are cut: a constraint says what must be so already."""
    here = get_abstract_mesh()
    if here.empty or not here.are_all_axes_explicit:
        return False
    spec = as_told(sharding)
    have, wanted = cuts_of(aval), open_cuts(spec, aval.ndim)
    alike = sums_of(have) == sums_of(wanted)
    if not alike or any(w is not None and w != h for h, w in zip(have, wanted, strict=True)):
        raise AssertionError(
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`. The array "
            f"sharding: {spec_of(have)} did not match the sharding provided: {spec}. Please use "
            "`polyax.reshard` to shard your input to the sharding you want."
        )
    return True


def _besides_told(aval: ShapedArray, sharding: NamedSharding) -> NamedSharding:
    """A constraint, which is for the partitioner's axes alone, with what the type tells."""
    mesh = sharding.mesh
    if any(a not in mesh.auto_axes for axes in sharding.spec.cuts(0) for a in axes):
        raise ValueError(
            "The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto axes of the mesh. Got "
            f"spec={sharding.spec} and mesh={mesh.abstract_mesh} for {aval}. "
            "You probably meant to use `polyax.reshard`?"
        )
    if aval.told is None:
        return sharding
    asked = open_cuts(sharding.spec, aval.ndim)
    rest = UNCONSTRAINED if mesh.auto_axes else None
    both = [t or rest if c is None else (*t, *c) for t, c in zip(cuts_of(aval), asked, strict=True)]
    return sharding.update(spec=sharding.spec.update(partitions=both))


def each_of(caller: str, name: str, shardings: Any, full: Any) -> list[Asked]:
    """The sharding for each leaf of a tree, of which ``shardings`` is a prefix."""
    known = {id(s): as_sharding(caller, name, s) for s in tree_leaves(shardings, _is_none)}
    title = f"{'pjit' if caller == 'jit' else caller} {name}"  # as it was called once, and is in JAX's texts
    return [known[id(s)] for s in broadcast_prefix(shardings, full, _is_none, name=title)]


def _is_none(x: Any) -> bool:
    return x is None


def check_leaves(name: str, shardings: Any) -> None:
    """Raises TypeError if something in the tree is none of what says how an array lies, ValueError if it leaves that
    open, or names an axis twice."""
    for given in tree_leaves(shardings):
        if isinstance(given, NamedSharding) and UNCONSTRAINED in given.spec.partitions:
            raise ValueError(
                f"Unconstrained dims are not allowed when passed to {name}: {given}. Name axes or None, or use "
                "polyax.lax.with_sharding_constraint inside."
            )
        if not isinstance(given, (Sharding, PartitionSpec, Format, Layout, Auto)):
            raise _is_none_of_those(name, given)
        if isinstance(given, PartitionSpec):
            _check_no_axis_twice(name, given)


def _check_no_axis_twice(name: str, spec: PartitionSpec) -> None:
    axes = [a for partition in spec.partitions for a in axes_of(partition)]
    for axis in axes:
        if axes.count(axis) > 1:
            raise DuplicateSpecError(spec, axis, name)


def _is_none_of_those(name: str, given: Any) -> TypeError:
    return TypeError(f"{name} leaf specifications are expected to be PartitionSpec instances or None, but got {given}")


def as_sharding(caller: str, name: str, given: Any) -> Asked:
    """What a user gave for an array.

    Raises:
      TypeError: it is no sharding.
      ValueError: it is the order of an array's dimensions alone.
      RuntimeError: it is a spec, and no mesh is in force.
    """
    given = given.where() if isinstance(given, Format) else given
    if given is None or isinstance(given, Sharding):
        return given
    if isinstance(given, (Layout, Auto)):
        raise ValueError(
            f"`polyax.{caller}` does not accept device-local layouts directly. Create a `Format` instance wrapping "
            f"this device-local layout and pass that to `{caller}` instead. Got {given}"
        )
    if not isinstance(given, PartitionSpec):
        raise _is_none_of_those(name, given)
    mesh = _mesh_for_jit() if caller == "jit" else mesh_for_specs()
    if mesh is None:
        raise RuntimeError(
            f"{caller} requires a non-empty mesh in context if you are passing `PartitionSpec`s to {name}. You can "
            "define a context mesh via `polyax.set_mesh(mesh)`. Alternatively, provide `Sharding`s to "
            f"{name} and then the mesh context manager is not required."
        )
    try:
        return NamedSharding(mesh, given)
    except DuplicateSpecError as e:
        raise DuplicateSpecError(e.spec, e.axis, name) from None


def _mesh_for_jit() -> Mesh | AbstractMesh | None:
    """That of ``set_mesh``, or one without devices, of which types tell."""
    here = get_abstract_mesh()
    return mesh_that_is_set() or (here if here.explicit_axes else None)


def of_arguments(shardings: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tree: PyTreeDef) -> list[Asked]:
    """The shardings that ``jit(in_shardings=)`` gives the leaves of its dynamic arguments.

    Raises:
      ValueError: they are no prefix of the arguments, or some arguments are given by name.
    """
    if shardings is None:
        return [None] * tree.num_leaves
    if kwargs:
        raise ValueError("pjit does not support kwargs when in_shardings is specified.")
    if not isinstance(shardings, (Sharding, PartitionSpec)):
        shardings = _for_each(shardings, len(args))
    return each_of("jit", "in_shardings", shardings, _placeholders(tree)[0])


def _placeholders(tree: PyTreeDef) -> Any:
    return tree_unflatten(tree, [object()] * tree.num_leaves)


def _for_each(shardings: Any, count: int) -> Any:
    """What is given for each positional argument."""
    text = (
        "pjit in_shardings specification must be a tree prefix of the positional arguments tuple. In particular, pjit "
        "in_shardings must either be a Sharding, a PartitionSpec, or a tuple of length equal to the number of "
        "positional arguments. But pjit in_shardings is "
    )
    if type(shardings) not in (tuple, list):
        if tree_structure(shardings, _is_none).is_leaf():
            return shardings
        wrap = " It might need to be wrapped in a singleton tuple, for the one argument." if count == 1 else ""
        raise ValueError(f"{text}not a tuple: got {type(shardings)} instead.{wrap}")
    if len(shardings) != count:
        raise ValueError(
            f"{text}the wrong length: got a tuple or list of length {len(shardings)} for an args tuple of length "
            f"{count}."
        )
    return tuple(shardings)


def of_results(shardings: Any, tree: PyTreeDef) -> list[Asked]:
    """The shardings that ``jit(out_shardings=)`` gives the leaves of its results."""
    if shardings is None:
        return [None] * tree.num_leaves
    return each_of("jit", "out_shardings", shardings, _placeholders(tree))


def on_devices(asked: Sequence[Asked], leaves: Sequence[Any]) -> list[Asked]:
    """The shardings, those of an ``AbstractMesh`` on the devices of the mesh in force or of the arguments, if these are
    as many as it has."""
    return [_on_devices(s, leaves) if isinstance(s, NamedSharding) else s for s in asked]


def _on_devices(sharding: NamedSharding, leaves: Sequence[Any]) -> NamedSharding:
    if isinstance(sharding.mesh, Mesh):
        return sharding
    here = mesh_in_force()
    lists = [here.device_list] if here else [x.sharding.device_list for x in leaves if is_concrete(x) and x.committed]
    devices = next((found for found in lists if len(found) == sharding.mesh.size), None)
    return sharding if devices is None else sharding.on(devices)


def names_of_results(tree: PyTreeDef) -> list[str]:
    return [f"result{keystr(path)}" for path, _ in tree_leaves_with_path(_placeholders(tree))]


def check_fit(
    name: str, what: str, asked: Sequence[Asked], avals: Sequence[ShapedArray], names: Callable[[], Sequence[str]]
) -> None:
    """Raises unless arrays of these types can lie as they are asked to."""
    for n, (sharding, aval) in enumerate(zip(asked, avals, strict=True)):
        if not isinstance(sharding, NamedSharding):
            continue
        if UNCONSTRAINED in sharding.spec.partitions:
            raise ValueError(
                f"Unconstrained dims are not allowed when passed to {name}: {sharding}, for {names()[n]} of type "
                f"{aval}. Name axes or None, or use polyax.lax.with_sharding_constraint inside."
            )
        try:
            sharding.shard_shape(aval.shape)
        except ValueError as e:
            raise type(e)(
                f"One of pjit {what} with pytree key path {names()[n]} is incompatible with its sharding annotation "
                f"{sharding}: {e}"
            ) from None


def constrained(values: Sequence[Any], asked: Sequence[Asked]) -> list[Any]:
    """Values inside a program, of which some lie on a mesh as they were asked to."""
    return [constrain(x, s) if isinstance(s, NamedSharding) else x for x, s in zip(values, asked, strict=True)]


def check_committed(leaves: Sequence[Any], asked: Sequence[Asked]) -> None:
    """Raises unless arrays that were put somewhere by name lie as they should; from one device they go to another."""
    for x, s in zip(leaves, asked, strict=True):
        if s is None or not is_concrete(x):
            continue
        if s.memory_kind not in (None, x.sharding.memory_kind):
            raise ValueError(
                "Memory kinds passed to jax.jit does not match memory kind on the respective arg. Got jit memory kind: "
                f"{s.memory_kind}, arg memory kind: {x.sharding.memory_kind} for arg type: {x.aval.str_short()}. Put "
                "it there first, with polyax.device_put."
            )
        if not x.committed or x.sharding.num_devices == s.num_devices == 1:
            continue
        if isinstance(x.sharding, (NamedSharding, SingleDeviceSharding)) and not same(x.sharding, s, x.aval):
            raise ValueError(
                f"Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: {s},\n"
                f"arg sharding: {x.sharding} for arg type: {x.aval}. Put it there first, with "
                "polyax.device_put."
            )


def same(one: Sharding, other: Sharding, aval: ShapedArray) -> bool:
    """Whether an array lies in the same way by both."""
    if one == other:
        return True
    if one.device_list != other.device_list:
        return False
    return one.devices_indices_map(aval.shape) == other.devices_indices_map(aval.shape)
