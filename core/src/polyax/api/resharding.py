"""``reshard``, and functions within which axes of the mesh are of another type."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polyax.api.ahead import ShapeDtypeStruct
from polyax.api.arguments import shaped, wraps
from polyax.ir.aval import ShapedArray, Typed, aval_of
from polyax.meshes.axes import AbstractMesh, AxisType
from polyax.meshes.consensus import anywhere
from polyax.meshes.current import get_abstract_mesh, use_abstract_mesh
from polyax.meshes.explicit import cuts_of, sharding_in_type
from polyax.meshes.resharding import resharded, retyped, sharding_for
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import summands
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.paths import flatten_axes
from polyax.trace.tree import tree_flatten, tree_leaves, tree_map, tree_unflatten

Axes = tuple[Any, ...]


@api_boundary
def reshard(xs: Any, out_shardings: Any) -> Any:
    """``xs``, cut along the axes of a mesh as ``out_shardings`` say; along explicit axes their types tell it.

    Args:
      xs: arrays in any pytree.
      out_shardings: a ``NamedSharding``, a ``PartitionSpec`` of the mesh in force, or a tree of those that ``xs``
        begins with.

    Raises:
      ValueError: there is no mesh, it has no such axis, or an array can't be cut so.

    >>> import polyax
    >>> from polyax.sharding import PartitionSpec as P
    >>> with polyax.set_mesh(polyax.make_mesh((1,), ("x",))):
    ...     print(polyax.typeof(reshard(polyax.numpy.ones(4), P("x"))))
    float32[4@x]
    """
    leaves, tree = tree_flatten(xs)
    given = flatten_axes("reshard out_shardings", tree, out_shardings)
    if None in given:
        raise ValueError(
            "Reshard should only be used with out_shardings which are non-None and have a non-empty mesh. Got sharding "
            f"None for {aval_of(leaves[given.index(None)])}."
        )
    return tree_unflatten(tree, [resharded(x, _sharding(x, s)) for x, s in zip(leaves, given, strict=True)])


def _sharding(x: Any, given: Any) -> NamedSharding:
    sharding = sharding_for(given, "out_shardings")
    mesh = sharding.mesh
    for name, kind in zip(mesh.axis_names, mesh.axis_types, strict=True):
        if kind is not AxisType.Explicit and any(name in names for names in sharding.spec.cuts(0)):
            raise ValueError(
                "PartitionSpec passed to reshard cannot contain axis names that are of type Auto or Manual. Got "
                f"PartitionSpec: {sharding.spec} with axis name: {name} of type: {kind}, for {aval_of(x)}. "
                "Leave it to the partitioner, with polyax.lax.with_sharding_constraint."
            )
    return sharding


@api_boundary
def typeof(x: Any) -> ShapedArray:
    """The type of an array, a scalar, a traced value or a ``ShapeDtypeStruct``.

    Its ``sharding`` tells how it is cut along explicit axes.

    >>> import numpy as np
    >>> typeof(np.ones((2, 3), 'float32'))
    ShapedArray(float32[2,3])

    Raises:
      TypeError: ``x`` is no array.
    """
    return shaped(x) if isinstance(x, ShapeDtypeStruct) else aval_of(x)


@api_boundary
def auto_axes(
    f: Callable[..., Any] | None = None, /, *, axes: Any = None, out_sharding: Any = None
) -> Callable[..., Any]:
    """``f``, within which the partitioner decides what is cut along ``axes`` of the mesh.

    Args:
      f: a function of pytrees of arrays; without it, this is a decorator with options.
      axes: names; None: all of the mesh.
      out_sharding: how the results are to be cut, a sharding or a tree of them; or it is given with each call.

    Raises:
      TypeError: no ``out_sharding`` was given at all.
      ValueError: the mesh of ``out_sharding`` isn't the one in force.
      NotImplementedError: an axis is manual.

    >>> import polyax
    >>> from polyax.sharding import PartitionSpec as P
    >>> with polyax.set_mesh(polyax.make_mesh((1,), ("x",))):
    ...     print(polyax.typeof(auto_axes(lambda x: x + x)(polyax.numpy.ones(4), out_sharding=P("x"))))
    float32[4@x]
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    fun = f

    def run(outer: AbstractMesh, inner: AbstractMesh, given: Any, args: Any, kwargs: Any) -> Any:
        args, kwargs = tree_map(lambda x: _told_on(x, inner), (args, kwargs))
        with use_abstract_mesh(inner), anywhere():  # values that vmap maps still tell how it is cut
            outs = fun(*args, **kwargs)
        with use_abstract_mesh(outer):
            return reshard(outs, given)

    change = _Change("auto_axes", AxisType.Auto, "out_sharding", out_sharding, axes)
    return wraps(f, "{fun}, leaving to the partitioner what is cut.")(change.around(fun, run))


@api_boundary
def explicit_axes(
    f: Callable[..., Any] | None = None, /, *, axes: Any = None, in_sharding: Any = None
) -> Callable[..., Any]:
    """``f``, within which types tell what is cut along ``axes`` of the mesh.

    Args:
      f: a function of pytrees of arrays; without it, this is a decorator with options.
      axes: names; None: all of the mesh.
      in_sharding: how the arguments are to be cut, a sharding or a tree of them; or it is given with each call.

    Raises:
      TypeError: no ``in_sharding`` was given at all.
      ValueError: there is no mesh.
      NotImplementedError: an axis is manual.

    >>> import polyax
    >>> from polyax.sharding import Mesh, PartitionSpec as P
    >>> with polyax.set_mesh(Mesh(polyax.devices()[:1], ("x",))):
    ...     _ = explicit_axes(lambda x: print(polyax.typeof(x)))(polyax.numpy.ones(4), in_sharding=P("x"))
    float32[4@x]
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    fun = f

    def run(outer: AbstractMesh, inner: AbstractMesh, given: Any, args: Any, kwargs: Any) -> Any:
        with use_abstract_mesh(inner):
            outs = fun(*reshard(args, given), **kwargs)
        return tree_map(lambda x: _told_on(x, outer), outs)

    change = _Change("explicit_axes", AxisType.Explicit, "in_sharding", in_sharding, axes)
    return wraps(f, "{fun}, in which types tell what is cut.")(change.around(fun, run))


@dataclass(frozen=True)
class _Change:
    """Of axes, within a function, to another type; ``keyword`` says how values lie at one of its ends."""

    caller: str
    kind: AxisType
    keyword: str
    given: Any
    axes: Any

    def around(self, fun: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
        """``run(outer, inner, given, args, kwargs)``, with the mesh around and the one within, as a user calls it; or
        ``fun`` itself, where they are the same."""

        @api_boundary
        def changed(*args: Any, **kwargs: Any) -> Any:
            given = kwargs.pop(self.keyword, None)
            given = self.given if given is None else given
            if given is None:
                raise TypeError(f"Missing required keyword argument: {self.keyword!r}")
            outer = self._mesh_around(given)
            if outer is None:
                return fun(*args, **kwargs)
            inner = _changed(outer, self.axes, self.kind, self.caller)
            return fun(*args, **kwargs) if inner == outer else run(outer, inner, given, args, kwargs)

        return changed

    def _mesh_around(self, given: Any) -> AbstractMesh | None:
        """That in force, or the one of the shardings of results; None: there is none, and no axis to change."""
        here = get_abstract_mesh()
        if self.kind is AxisType.Explicit and here.empty:
            raise ValueError(
                "Context mesh cannot be empty. Please use `polyax.set_mesh` API to enter into a mesh context when "
                f"using `{self.caller}` API."
            )
        found = None if here.empty else here
        for sharding in tree_leaves(given) if self.kind is AxisType.Auto else ():
            named = sharding.mesh.abstract_mesh if isinstance(sharding, NamedSharding) else found
            if found is not None and named != found:
                raise ValueError(
                    f"Context mesh {found} must match the mesh passed to shardings {named} of {self.caller}. "
                    "Recommended approach is to use `polyax.set_mesh` context manager."
                )
            found = named
        return found


def _changed(mesh: AbstractMesh, axes: Any, kind: AxisType, caller: str) -> AbstractMesh:
    names: Axes = mesh.axis_names if axes is None else axes if isinstance(axes, tuple) else (axes,)
    for name in names:
        if name not in mesh.axis_names:
            raise ValueError(f"{caller}: axis {name!r} is not found in mesh: {mesh.axis_names}.")
    if any(n in mesh.manual_axes for n in names):
        raise NotImplementedError(
            "Going from `Manual` AxisType to `Auto` or `Explicit` AxisType is not allowed: "
            f"{caller} is within shard_map, and axes {names} of {mesh} aren't all free"
        )
    return mesh.update_axis_types(dict.fromkeys(names, kind))


def _told_on(x: Any, mesh: AbstractMesh) -> Any:
    """``x``, whose type tells no more than it does where the axes of the mesh have these types."""
    if not isinstance(x, Typed):
        return x
    aval = aval_of(x)
    if aval.told is None:
        return x
    explicit = set(mesh.explicit_axes)
    cuts, spec = [tuple([a for a in names if a in explicit]) for names in cuts_of(aval)], aval.told.spec
    told = sharding_in_type(mesh, summands(cuts, spec.unreduced & explicit), spec.reduced & explicit)
    return retyped(x, aval.update(sharding=told))
