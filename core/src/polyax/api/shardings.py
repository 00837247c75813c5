"""Shardings as users give them: trees of them for arguments and results, and specs of the mesh in force."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from polyax.ir.aval import ShapedArray, aval_of
from polyax.meshes.current import get_abstract_mesh, mesh_for_specs
from polyax.meshes.explicit import cuts_of, mesh_here, seen
from polyax.meshes.sharding import NamedSharding, Sharding, SingleDeviceSharding
from polyax.meshes.spec import UNCONSTRAINED, PartitionSpec, open_cuts, spec_of
from polyax.ops.constraint import constrain
from polyax.runtime.arrays.array import is_concrete
from polyax.runtime.arrays.placing import device_put
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.paths import flatten_axes
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten

Asked = Sharding | None


@api_boundary
def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """``x``, lying on the devices of a mesh as ``shardings`` say, whatever the partitioner would choose.

    Outside of programs arrays are moved.

    Args:
      x: arrays in any pytree.
      shardings: a sharding, or a tree of those that ``x`` begins with; a ``PartitionSpec`` is one of the mesh in force.
        ``P.UNCONSTRAINED`` leaves a dimension to the partitioner, None an array.

    Raises:
      RuntimeError: a ``PartitionSpec`` is given and no mesh is in force.
      ValueError: an array has fewer dimensions than its sharding.

    >>> import polyax
    >>> from polyax.sharding import Mesh, NamedSharding, PartitionSpec
    >>> mesh = Mesh(polyax.devices()[:1], ("x",))
    >>> with_sharding_constraint(polyax.numpy.ones(4), NamedSharding(mesh, PartitionSpec("x"))).sharding.spec
    P('x',)
    """
    leaves, tree = tree_flatten(x)
    asked = each_of("with_sharding_constraint", "shardings", shardings, tree)
    return tree_unflatten(tree, [_constrained(leaf, s) for leaf, s in zip(leaves, asked, strict=True)])


def _constrained(x: Any, sharding: Asked) -> Any:
    if sharding is None:
        return x
    if not isinstance(sharding, NamedSharding):
        return device_put(x, sharding)
    shape = aval_of(x).shape
    try:
        cuts = sharding.cuts(len(shape))
    except ValueError as e:
        raise ValueError(
            f"One of with_sharding_constraint arguments is incompatible with its sharding annotation {sharding}: {e}"
        ) from None
    _check_told(x, sharding)
    sizes = sharding.mesh.shape
    divides = [n % math.prod(sizes[a] for a in axes) == 0 for n, axes in zip(shape, cuts, strict=True)]
    if not all(divides):  # dimensions that don't fall into equal blocks aren't cut
        spec = [p if d else None for p, d in zip(sharding.spec, divides)]
        sharding = sharding.update(spec=PartitionSpec(*spec))
    return constrain(x, sharding)


def _check_told(x: Any, sharding: NamedSharding) -> None:
    """Where types tell all of how arrays are cut, a constraint says what must be so already; else it says it of axes
    that are the partitioner's."""
    if not seen.any:
        return
    here, mesh = get_abstract_mesh(), mesh_here(sharding.mesh)
    if here.empty or not here.are_all_axes_explicit:
        named = {a for c in sharding.cuts(aval_of(x).ndim) for a in c}
        if not named <= set(mesh.auto_axes):
            raise ValueError(
                "The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto axes of the mesh. "
                f"Got spec={sharding.spec} and mesh={mesh.abstract_mesh}. You probably meant to use `polyax.reshard`?"
            )
        return
    aval = aval_of(x)
    have, wanted = cuts_of(aval), open_cuts(sharding.spec, aval.ndim)
    if any(w is not None and w != h for h, w in zip(have, wanted, strict=True)):
        raise AssertionError(
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`. The array "
            f"sharding: {spec_of(have)} did not match the sharding provided: {sharding.spec}. Please use "
            "`polyax.reshard` to shard your input to the sharding you want."
        )


def each_of(caller: str, name: str, shardings: Any, tree: PyTreeDef) -> list[Asked]:
    """The sharding for each leaf of a tree, of which ``shardings`` is a prefix."""
    return [as_sharding(caller, name, s) for s in flatten_axes(f"{caller} {name}", tree, shardings)]


def as_sharding(caller: str, name: str, given: Any) -> Asked:
    """What a user gave for an array.

    Raises:
      TypeError: it is no sharding.
      RuntimeError: it is a spec, and no mesh is in force.
    """
    if given is None or isinstance(given, Sharding):
        return given
    if not isinstance(given, PartitionSpec):
        raise TypeError(
            f"{name} leaf specifications are expected to be PartitionSpec instances or None, but got {given}"
        )
    mesh = mesh_for_specs()
    if mesh is None:
        raise RuntimeError(
            f"{caller} requires a non-empty mesh in context if you are passing `PartitionSpec`s to {name}. You can "
            "define a context mesh via `polyax.set_mesh(mesh)`. Alternatively, provide `Sharding`s to "
            f"{name} and then the mesh context manager is not required."
        )
    return NamedSharding(mesh, given)


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
        _check_length(shardings, len(args))
    return _closed("in_shardings", each_of("jit", "in_shardings", (shardings, None), tree))


def _check_length(shardings: Any, count: int) -> None:
    text = (
        "pjit in_shardings specification must be a tree prefix of the positional arguments tuple. In particular, pjit "
        "in_shardings must either be a Sharding, a PartitionSpec, or a tuple of length equal to the number of "
        "positional arguments. But pjit in_shardings is "
    )
    if isinstance(shardings, dict):
        raise ValueError(f"{text}not a tuple: got {type(shardings)} instead.")
    if isinstance(shardings, (tuple, list)) and len(shardings) != count:
        raise ValueError(
            f"{text}the wrong length: got a tuple or list of length {len(shardings)} for an args tuple of length "
            f"{count}."
        )


def of_results(shardings: Any, tree: PyTreeDef) -> list[Asked]:
    """The shardings that ``jit(out_shardings=)`` gives the leaves of its results."""
    if shardings is None:
        return [None] * tree.num_leaves
    return _closed("out_shardings", each_of("jit", "out_shardings", shardings, tree))


def _closed(name: str, asked: list[Asked]) -> list[Asked]:
    """``asked``, which has to say of each dimension how it is cut.

    Raises:
      ValueError: a spec leaves a dimension unconstrained.
    """
    for s in asked:
        if isinstance(s, NamedSharding) and UNCONSTRAINED in s.spec:
            raise ValueError(
                f"Unconstrained dims are not allowed when passed to {name}: {s}. Leave the array out, with None, or "
                "constrain it inside, with with_sharding_constraint."
            )
    return asked


def constrained(values: Sequence[Any], asked: Sequence[Asked]) -> list[Any]:
    """Values inside a program, of which some lie on a mesh as they were asked to."""
    return [constrain(x, s) if isinstance(s, NamedSharding) else x for x, s in zip(values, asked, strict=True)]


def check_committed(leaves: Sequence[Any], asked: Sequence[Asked]) -> None:
    """Raises unless arrays that were put somewhere by name lie as they should."""
    for x, s in zip(leaves, asked, strict=True):
        if s is None or not is_concrete(x) or not x.committed:
            continue
        if isinstance(x.sharding, (NamedSharding, SingleDeviceSharding)) and not same(x.sharding, s, x.aval):
            raise ValueError(
                f"Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: {s},\n"
                f"arg sharding: {x.sharding} for arg type: {x.aval.str_short()}. Put it there first, with "
                "polyax.device_put."
            )


def same(one: Sharding, other: Sharding, aval: ShapedArray) -> bool:
    """Whether an array lies in the same way by both."""
    if one == other:
        return True
    if one.device_list != other.device_list:
        return False
    return one.devices_indices_map(aval.shape) == other.devices_indices_map(aval.shape)
