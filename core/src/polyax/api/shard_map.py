"""``shard_map``: a function of blocks, run side by side on the devices of a mesh."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyax.api.specs import AnyMesh, CutByHand, chosen_axes, chosen_mesh, in_blocks, inferred, out_blocks
from polyax.control.inner.programs import hoisted
from polyax.control.onlooker import Onlooker
from polyax.control.spmd import region, shard_map_p
from polyax.ir.aval import ShapedArray, aval_of, is_array_like
from polyax.ir.primitive import ambient
from polyax.meshes.axes import AbstractMesh
from polyax.meshes.mesh import Mesh
from polyax.meshes.spec import Cuts, PartitionSpec, sums_of, uncut
from polyax.ops.sums import vary_unreduced_cast_p
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.runtime.running import spmd  # noqa: F401  (makes the primitive run on devices)
from polyax.trace.calls import Signature, TracedFunction, UserCall
from polyax.trace.paths import broadcast_prefix
from polyax.trace.recording import trace_to_jaxpr
from polyax.trace.register import register_static
from polyax.trace.traces import Traces
from polyax.trace.tree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from polyax.trace.varying import in_order, pvary


class _Infer:
    """In place of specs: as the arguments are cut."""

    def __repr__(self) -> str:
        return "Infer"


Infer = _Infer()


@api_boundary
def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Iterable[Any] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Maps ``f`` over blocks of its arguments: each device of a mesh runs it on its own.

    It is traced once for each kind of arguments, as by ``jit``. Outside of programs, values print as the blocks that
    devices have, and scalars that are the same everywhere can be branched on in Python; a function that does so is
    traced with each call. Without ``f``, a decorator.

    Args:
      f: a function of pytrees of arrays, which sees blocks.
      out_specs: how the results' blocks are put together: a ``PartitionSpec`` for each, or a prefix of their tree.
      in_specs: how arguments are cut into blocks; None for those that all see whole, which need not be arrays: numbers
        stay numbers. By default, as they are cut, on meshes whose axes are ``Explicit``.
      mesh: the devices; by default those of the mesh in force (``polyax.set_mesh``).
      axis_names: the axes of the mesh that ``f`` is mapped over, by default all. The others are left to ``jit``.
      check_vma: whether types tell along which axes values vary. Then ``out_specs`` are checked against them, and
        derivatives need no more communication than their functions.

    Raises:
      ValueError: specs don't fit shapes, name axes that the mesh lacks, or say of what varies that it is the same; or
        there is no mesh.
      TypeError: something is no spec, no mesh or no function.

    >>> import numpy as np, polyax
    >>> from polyax.sharding import Mesh, PartitionSpec as P
    >>> mesh = Mesh(polyax.devices()[:1], ("i",))
    >>> total = shard_map(lambda x: polyax.lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P(None))
    >>> print(total(np.arange(3.0)))
    [0. 1. 2.]
    """
    options: dict[str, Any] = {"out_specs": out_specs, "in_specs": in_specs, "mesh": mesh}
    options |= {"axis_names": axis_names, "check_vma": check_vma}
    if f is None:
        return functools.partial(shard_map, **options)
    if not callable(f):
        raise TypeError(f"shard_map requires a callable for its first argument, but got {f} of type {type(f)}.")
    return _ShardMapped(f, **options)


@api_boundary
def smap(f: Callable[..., Any] | None = None, /, *, in_axes: Any = Infer, out_axes: Any, axis_name: Any) -> Any:
    """``shard_map`` over one axis of the mesh in force, with numbers of dimensions instead of specs.

    Args:
      f: a function of pytrees of arrays, which sees blocks.
      in_axes: the dimension of each argument that is cut along the axis; None for those that are not.
      out_axes: the dimension along which blocks of results are joined; None for those that are the same everywhere.
      axis_name: the name of the axis.

    >>> import numpy as np, polyax
    >>> from polyax.sharding import Mesh
    >>> with polyax.set_mesh(Mesh(polyax.devices()[:1], ("i",))):
    ...     print(smap(lambda x: x + 1, in_axes=0, out_axes=0, axis_name="i")(np.arange(3.0)))
    [1. 2. 3.]
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    in_specs = in_axes if in_axes is Infer else _specs("in_axes", in_axes, axis_name)
    return shard_map(f, in_specs=in_specs, out_specs=_specs("out_axes", out_axes, axis_name), axis_names={axis_name})


def _specs(what: str, axes: Any, name: Any) -> Any:
    def spec(axis: Any) -> PartitionSpec:
        if axis is None:
            return PartitionSpec()
        if type(axis) is not int or axis < 0:
            raise TypeError(f"smap {what} must be dimensions, counted from 0, or None, got {axis!r} in {axes}")
        return PartitionSpec(*[None] * axis, name)

    return tree_map(spec, tuple(axes) if isinstance(axes, list) else axes, is_leaf=lambda a: a is None)


@dataclass(frozen=True)
class _OnBlocks(TracedFunction):
    """The program on blocks, with the parameters of ``shard_map``."""

    params: dict[str, Any] = field(default_factory=dict)


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def _as_told(x: Any, cuts: Cuts) -> Any:
    """A block that varies along axes which cut the array, and is a sum still to be made as the spec says."""
    x = pvary(x, frozenset().union(*cuts) & ambient.varying)
    summed = in_order((sums_of(cuts) & ambient.varying) - aval_of(x).sums[0])
    return vary_unreduced_cast_p.bind1(x, axes=summed) if summed else x


def _is_scalar(x: Any) -> bool:
    return type(x) in (bool, int, float, complex)


@register_static
class _Held:
    """An argument that is no array, of which there is no spec: handed on as it is."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self._told == other._told

    def __hash__(self) -> int:
        return hash(self._told)

    @property
    def _told(self) -> Any:
        """Numbers are what they print as, other things are themselves."""
        return (type(self.value), repr(self.value)) if _is_scalar(self.value) else id(self.value)


def _is_traced(x: Any) -> bool:
    return is_array_like(x) and not _is_scalar(x)


def _is_held(x: Any) -> bool:
    return isinstance(x, _Held)


def _taking_held(f: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(f)
    def on_values(*args: Any) -> Any:
        return f(*tree_map(lambda x: x.value if _is_held(x) else x, args, is_leaf=_is_held))

    return on_values


class _ShardMapped:
    """What ``shard_map`` returns."""

    def __init__(
        self, f: Callable[..., Any], *, out_specs: Any, in_specs: Any, mesh: Any, axis_names: Any, check_vma: bool
    ) -> None:
        functools.update_wrapper(self, f)
        self._leaves_some_whole = in_specs is not Infer and None in tree_leaves(in_specs, is_leaf=_is_spec)
        self.signature = Signature(f, "shard_map")
        self.in_specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
        self.out_specs = out_specs
        self.mesh = mesh
        self.axis_names = frozenset(axis_names) if not isinstance(axis_names, str) else frozenset({axis_names})
        self.check_vma = check_vma
        self._traces: dict[Any, Traces] = {}

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @api_boundary
    def __call__(self, *args: Any) -> Any:
        if self._leaves_some_whole and not all(map(_is_traced, tree_leaves(args))):
            return self._for_arrays._called(self._holding(args))
        return self._called(args)

    @functools.cached_property
    def _for_arrays(self) -> _ShardMapped:
        options: dict[str, Any] = {"mesh": self.mesh, "axis_names": self.axis_names, "check_vma": self.check_vma}
        f = _taking_held(self.signature.fun)
        return _ShardMapped(f, out_specs=self.out_specs, in_specs=self.in_specs, **options)

    def _holding(self, args: tuple[Any, ...]) -> Any:
        leaves, tree = tree_flatten(args)
        specs = broadcast_prefix(self.in_specs, args, _is_spec, name="shard_map in_specs")
        whole = [s is None and not _is_traced(x) for s, x in zip(specs, leaves, strict=True)]
        return tree_unflatten(tree, [_Held(x) if w else x for w, x in zip(whole, leaves, strict=True)])

    def _called(self, args: tuple[Any, ...]) -> Any:
        call = self.signature.split(args, {})
        mesh = chosen_mesh(self.mesh, call.leaves)
        axes, specs = chosen_axes(mesh, self.axis_names), self.in_specs
        cuts = inferred(mesh, axes, call.leaves) if specs is Infer else None
        specs = specs if cuts is None else tree_unflatten(call.in_tree, cuts)[0]
        traces = self._traces.setdefault((mesh, cuts), Traces())
        key, onlookers = call.key(), list[Onlooker]()
        found = traces.find(key, call, functools.partial(self._record, mesh, axes, specs, onlookers))
        if any(o.looked for o in onlookers):
            traces.drop(key)
        outs = shard_map_p.bind(*hoisted(found.closed)[1], *call.leaves, **found.params)
        return tree_unflatten(found.out_tree, outs)

    def _record(
        self,
        mesh: AnyMesh,
        axes: frozenset[Any],
        specs: Any,
        onlookers: list[Onlooker],
        call: UserCall,
        avals: Sequence[ShapedArray],
    ) -> _OnBlocks:
        blocks = CutByHand(self.signature.name, mesh, axes, self.check_vma)
        ins, in_avals = in_blocks(blocks, specs, call, avals)
        params: dict[str, Any] = {"mesh": mesh, "manual_axes": axes, "check_vma": self.check_vma}
        params["name"] = f"shard_map({self.signature.name})"
        if ambient.trace is None:
            onlookers.append(Onlooker(params, ins, call.leaves))
        flat, outs = call.flat(), list[Any]()

        def on_blocks(*xs: Any) -> list[Any]:
            results = flat(*xs)
            assert flat.out_tree is not None
            outs.extend(out_blocks(blocks, self.out_specs, flat.out_tree, results))
            return [_as_told(x, c) for x, c in zip(results, outs, strict=True)]

        with region(mesh, axes, self.check_vma):
            about: dict[str, Any] = {"name": self.signature.name, "origin": call.source()}
            closed = trace_to_jaxpr(on_blocks, in_avals, **about, onlooker=onlookers[0] if onlookers else None)
        assert flat.out_tree is not None
        program, consts = hoisted(closed)
        whole = [uncut(a.ndim) for a in program.in_avals[: len(consts)]]
        params |= {"jaxpr": program, "in_specs": (*whole, *ins), "out_specs": tuple(outs)}
        return _OnBlocks(closed, flat.out_tree, params=params)
