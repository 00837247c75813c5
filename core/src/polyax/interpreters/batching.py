"""``polyax.interpreters.batching``: batching rules of primitives, registered as in JAX.

A rule is ``(args, dims, **params) -> (out, out_dim)``: ``dims[i]`` is the axis that ``args[i]`` is mapped over, or
``not_mapped``. The rules of ``fancy_primitive_batchers`` take what is known of the axis (size, name) first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax import late
from polyax.extend.primitive import listed
from polyax.interpreters.tables import Rule, RuleTable, pair, single
from polyax.ir.aval import aval_of
from polyax.ir.primitive import Primitive
from polyax.ops.basis import batch_axis_at
from polyax.trace.tree import tree_map
from polyax.transforms import containers
from polyax.transforms.vmap import AxisData as AxisData
from polyax.transforms.vmap import BatchTrace, BatchTracer

__all__ = [
    "AxisData", "BatchTrace", "BatchTracer", "axis_primitive_batchers", "bdim_at_front", "broadcast",
    "defbroadcasting", "defreducer", "defvectorized", "fancy_primitive_batchers", "moveaxis", "not_mapped",
    "primitive_batchers", "register_vmappable", "unregister_vmappable",
]  # fmt: skip

not_mapped = None


def _fancy(primitive: Primitive, rule: Rule) -> Rule:
    def batch(axis: AxisData, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        out, dim = pair(primitive, "batching", rule(axis, tuple(args), tuple(dims), **params))
        outs, out_dims = listed(primitive, out, "batching"), listed(primitive, dim, "batching")
        if len(outs) != len(out_dims):
            raise TypeError(f"The batching rule of '{primitive}' gave {len(outs)} results and {len(out_dims)} axes")
        for x, d in zip(outs, out_dims, strict=True):
            _check(primitive, axis, x, d)
        return outs, out_dims

    return batch


def _check(primitive: Primitive, axis: AxisData, x: Any, dim: Any) -> None:
    aval = aval_of(x)
    if dim is not None and not (isinstance(dim, int) and 0 <= dim < aval.ndim and aval.shape[dim] == axis.size):
        raise TypeError(
            f"The batching rule of '{primitive}' says that the mapped axis of its result is {dim!r}, but the result "
            f"is {aval} and the axis has {axis.size} elements"
        )


def _plain(primitive: Primitive, rule: Rule) -> Rule:
    return _fancy(primitive, lambda _, args, dims, **params: rule(args, dims, **params))


def _with_axis(primitive: Primitive, rule: Rule) -> Rule:
    def batch(axis: AxisData, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        return rule(axis.size, axis.name, None, args, dims, **params)

    return _fancy(primitive, batch)


def _shown(primitive: Primitive, rule: Rule) -> Rule:
    def batch(axis: AxisData, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        outs, out_dims = rule(axis, args, dims, **params)
        return single(primitive, outs), single(primitive, out_dims)

    return batch


def _shown_plain(primitive: Primitive, rule: Rule) -> Rule:
    shown = _shown(primitive, rule)
    return lambda args, dims, **params: shown(AxisData(_size(args, dims)), args, dims, **params)


def _shown_with_axis(primitive: Primitive, rule: Rule) -> Rule:
    shown = _shown(primitive, rule)
    return lambda size, name, _, args, dims, **params: shown(AxisData(size, name), args, dims, **params)


def _size(args: Sequence[Any], dims: Sequence[Any]) -> int:
    """The size of the axis that arguments are mapped over."""
    return next(aval_of(x).shape[d] for x, d in zip(args, dims, strict=True) if d is not None)


primitive_batchers = RuleTable("batch", _plain, _shown_plain)
fancy_primitive_batchers = RuleTable("batch", _fancy, _shown)
axis_primitive_batchers = RuleTable("batch", _with_axis, _shown_with_axis)
"""Rules that take the size and the name of the axis, and None, first."""


def defvectorized(prim: Primitive) -> None:
    """Arguments that are mapped along one and the same axis, and work element by element, need no change."""

    def batch(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        if len(set(dims)) != 1:
            raise NotImplementedError(f"'{prim}' must be mapped over one axis of all its arguments, got {dims}")
        out = prim.bind(*args, **params)
        return out, [dims[0]] * len(out) if prim.multiple_results else dims[0]

    primitive_batchers[prim] = batch


def defbroadcasting(prim: Primitive) -> None:
    """An elementwise primitive: arguments that aren't mapped are repeated."""

    def batch(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        size = _size(args, dims)
        out = prim.bind(*(bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True)), **params)
        return out, [0] * len(out) if prim.multiple_results else 0

    primitive_batchers[prim] = batch


def defreducer(prim: Primitive) -> None:
    """A primitive that reduces the dimensions of its parameter ``axes``."""

    def batch(args: Sequence[Any], dims: Sequence[Any], *, axes: Sequence[int], **params: Any) -> tuple[Any, Any]:
        (x,), (dim,) = args, dims
        out = prim.bind(x, axes=tuple(a + (a >= dim) for a in axes), **params)
        return out, dim - sum(a < dim for a in axes)

    primitive_batchers[prim] = batch


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: None = None) -> Any:
    """``x`` with its mapped axis first; repeated if it has none."""
    return batch_axis_at(x, bdim, 0, size)


def broadcast(x: Any, sz: int, axis: int, mesh_axis: None = None) -> Any:
    """``x`` repeated ``sz`` times along a new ``axis``."""
    return batch_axis_at(x, None, axis, sz)


def moveaxis(x: Any, src: int, dst: int) -> Any:
    """``x`` with axis ``src`` in the place ``dst``."""
    return batch_axis_at(x, src % aval_of(x).ndim, dst % aval_of(x).ndim, 0)


class _At:
    """In the place of a leaf: the axis that it is mapped over."""

    def __init__(self, axis: int | None) -> None:
        self.axis = axis


def _axes_of_leaves(node: Any) -> Any:
    """Leaves that weren't marked aren't mapped."""
    return tree_map(lambda leaf: leaf.axis if isinstance(leaf, _At) else None, node)


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Any],
    from_elt: Callable[..., Any],
    make_iota: Callable[..., Any] | None,
) -> None:
    """Has ``vmap`` take nodes of ``data_type``, a registered pytree, as wholes with one entry of ``in_axes``.

    Args:
      spec_type, axis_size_type: of the entries of ``in_axes``, and of sizes: int.
      to_elt: ``(cont, get_idx, x, spec)`` gives the node of one example, made with ``cont(leaf, axis)`` of the leaves
        that are mapped; the others are the same for all examples.
      from_elt: ``(cont, axis_size, x, spec)`` gives the node of all, made with ``cont(axis_size, leaf, axis)``.
      make_iota: for other types of sizes.

    Raises:
      NotImplementedError: specs or sizes are of another type than int.
    """
    if spec_type is not int or axis_size_type is not int:
        raise NotImplementedError(
            f"register_vmappable of {data_type.__name__}: in_axes and sizes are of type int, got "
            f"{spec_type.__name__} and {axis_size_type.__name__}"
        )
    containers.register_vmappable(
        data_type,
        lambda x, axis: to_elt(lambda leaf, _: leaf, None, x, axis),
        lambda x, axis, size: from_elt(lambda _, leaf, __: leaf, size, x, axis),
        lambda x, axis: _axes_of_leaves(to_elt(lambda _, axis: _At(axis), None, x, axis)),
        lambda x, axis: _axes_of_leaves(from_elt(lambda _, __, axis: _At(axis), None, x, axis)),
    )


def unregister_vmappable(data_type: type) -> None:
    """``vmap`` takes such nodes as any others again."""
    containers.mapped_kinds.pop(data_type, None)


def __getattr__(name: str) -> Any:
    return late.load(__name__, {}, name)
