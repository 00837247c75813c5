"""Changing what types tell of how values are cut, and ``out_sharding=``, with which a user says it of a result."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray, Typed, aval_of
from polyax.ir.errors import ShardingTypeError
from polyax.ir.primitive import Primitive, ambient, eval_trace
from polyax.meshes.axes import AbstractMesh, AxisType
from polyax.meshes.consensus import anywhere
from polyax.meshes.current import get_abstract_mesh, mesh_that_is_set, use_abstract_mesh
from polyax.meshes.explicit import cuts_of, seen, typed
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import PartitionSpec, sums_of

reshard_p = Primitive("reshard")
"""``reshard[sharding] x``: the same values; types tell from now on that they are cut as ``sharding`` says, or nothing
of it where that is None."""


def retyped(x: Any, aval: ShapedArray) -> Any:
    """``x``, cut as the type says; without a mark, the partitioner decides."""
    if not seen.any or aval_of(x).told == aval.told:
        return x
    return untyped(x) if aval.told is None else reshard_p.bind1(x, sharding=aval.told)


def untyped(x: Any) -> Any:
    """``x``, of which types don't tell how it is cut."""
    return x if aval_of(x).told is None else reshard_p.bind1(x, sharding=None)


def resharded(x: Any, sharding: NamedSharding) -> Any:
    """``x``, cut as ``sharding`` says, which its type tells along explicit axes."""
    return reshard_p.bind1(x, sharding=sharding.of_rank(aval_of(x).ndim))


def placed_as(out_sharding: Any, compute: Callable[..., Any], *operands: Any, **params: Any) -> Any:
    """``compute(*operands, **params)``, cut as ``out_sharding`` says, however operands are cut.

    Raises:
      ShardingTypeError: it is to be a sum still to be made, along axes that operands aren't cut along.
    """
    sharding = sharding_for(out_sharding)
    mesh = sharding.mesh.abstract_mesh
    check_placed(sharding, compute.__name__)
    if sharding.spec.unreduced:
        _check_summed(sharding.spec, [aval_of(x) for x in operands if isinstance(x, (Typed, np.ndarray))])
    inside = mesh.update_axis_types(dict.fromkeys(mesh.explicit_axes, AxisType.Auto))

    def placed(*operands: Any) -> Any:
        with use_abstract_mesh(inside), anywhere():  # values that vmap maps still tell how it is cut
            result = compute(*map(_untold, operands), **params)
        return resharded(result, sharding)

    if sharding.spec.unreduced and ambient.trace is None:  # on its own, an operation would make the sum
        return eval_trace[0].as_one(placed, operands, (compute, sharding, *sorted(params.items())))
    return placed(*operands)


def check_placed(sharding: NamedSharding, caller: str) -> None:
    """Raises a ValueError unless types can tell here that a result is cut so."""
    mesh: AbstractMesh = sharding.mesh.abstract_mesh
    if named := [a for axes in sharding.spec.cuts(0) for a in axes if a not in mesh.explicit_axes]:
        kind = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))[named[0]]
        raise ValueError(
            f"PartitionSpec passed to {caller} cannot contain axis names that are of type Auto or Manual. Got "
            f"PartitionSpec: {sharding.spec} with axis name: {named[0]} of type: {kind}. Leave it to the "
            "partitioner, with polyax.lax.with_sharding_constraint."
        )
    here = get_abstract_mesh()
    if not here.empty and here != mesh:
        raise ValueError(
            f"Context mesh {here} should match the mesh of sharding {mesh} passed to {caller}. Name its axes with a "
            "PartitionSpec alone, or use `polyax.reshard`."
        )


def _untold(operand: Any) -> Any:
    """An operand, or those in a tuple such as an index."""
    if type(operand) is tuple:
        return tuple(map(_untold, operand))
    return untyped(operand) if isinstance(operand, Typed) else operand


def _check_summed(spec: PartitionSpec, avals: Sequence[ShapedArray]) -> None:
    """Raises a ShardingTypeError if a result can't be a sum along these axes, since operands aren't cut along them."""
    named = [sums_of(cuts_of(a)).union(*cuts_of(a)) for a in avals if a.ndim]
    if len(named) > 2 or all(spec.unreduced <= axes for axes in named):
        return
    raise ShardingTypeError(
        "out_sharding's unreduced axes should be in operand's specs that were summed over, of all operands. Got "
        f"operands {', '.join(map(str, avals))} and unreduced axes={set(spec.unreduced)}"
    )


def sharding_for(given: Any, name: str = "out_sharding") -> NamedSharding:
    """What a user says of a result; a spec is one of the mesh in force.

    Raises:
      ValueError: it is a spec, and no mesh is in force, whatever operands lie on.
      TypeError: it is no sharding.
    """
    if isinstance(given, NamedSharding):
        return given
    if not isinstance(given, PartitionSpec):
        raise TypeError(f"`{name}` should be a NamedSharding or a PartitionSpec, got {given!r} of type {type(given)}")
    here, mesh = get_abstract_mesh(), mesh_that_is_set()
    if here.empty:
        raise ValueError(
            "Using PartitionSpec when you are not under a mesh context is not allowed. Please pass a NamedSharding "
            f"instance or enter into a mesh context via `polyax.set_mesh`. Got {given}"
        )
    return NamedSharding(here if mesh is None or mesh.abstract_mesh != here else mesh, given)


def with_out_sharding(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``fun``, which leaves its parameter ``out_sharding``, the last one if it isn't a keyword, to this."""
    code = fun.__code__
    position = code.co_argcount - 1 if "out_sharding" in code.co_varnames[: code.co_argcount] else None

    @functools.wraps(fun)
    def placed(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        if position is not None and len(args) > position:
            args, out_sharding = args[:-1], args[-1]
        if out_sharding is None:
            return fun(*args, **kwargs)
        return placed_as(out_sharding, fun, *args, **kwargs)

    return placed


def resharded_type(x: ShapedArray, sharding: NamedSharding | None) -> ShapedArray:
    """The type of ``x``, cut as ``sharding`` says.

    Raises:
      ValueError: it doesn't divide the array.
    """
    if sharding is None:
        return x.update(sharding=None)
    sharding.shard_shape(x.shape)
    return typed(x, sharding)


reshard_p.abstract_eval = lambda x, *, sharding: [resharded_type(x, sharding)]
reshard_p.explicit = lambda ins, outs, **_: outs
