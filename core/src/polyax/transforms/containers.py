"""Nodes of pytrees that ``vmap`` maps as wholes, since they know more of their leaves' shapes than the leaves tell.

None is known here; whoever defines such a type registers it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from polyax.trace.tree import PyTreeDef, tree_leaves, tree_map, tree_unflatten

Element = Callable[[Any, int], Any]
"""``(node, axis)``, whose leaves have lost that axis: the node of one example."""
Batch = Callable[[Any, int, int], Any]
"""``(node, axis, size)``, whose leaves have got it: the node of all examples."""

LeafAxes = Callable[[Any, int], Any]
"""``(node, axis)``: a node of the axes of its leaves, None for those that aren't mapped."""


class MappedKind(NamedTuple):
    """How nodes of one type are mapped. Without functions for the axes of leaves, all have the node's."""

    element: Element
    batch: Batch
    in_axes: LeafAxes | None = None
    out_axes: LeafAxes | None = None


mapped_kinds: dict[type, MappedKind] = {}


def register_vmappable(
    kind: type,
    element: Element,
    batch: Batch,
    in_axes: LeafAxes | None = None,
    out_axes: LeafAxes | None = None,
) -> None:
    """Has ``vmap`` adapt nodes of type ``kind`` when it takes an axis from their leaves or gives them one."""
    mapped_kinds[kind] = MappedKind(element, batch, in_axes, out_axes)


def leaf_axes(side: str, tree: PyTreeDef, leaves: Sequence[Any], axes: Sequence[Any]) -> Sequence[Any]:
    """``axes`` of the leaves with those of such nodes as the nodes want it; ``side``: ``in_axes`` or ``out_axes``."""
    if not _holds_some(tree):
        return axes

    def spread(x: Any, axis: Any) -> Any:
        given = tree_leaves(axis)
        wants = getattr(mapped_kinds[type(x)], side) if _is_mapped(x) and given else None
        return axis if wants is None else wants(x, given[0])

    found = tree_map(spread, tree_unflatten(tree, leaves), tree_unflatten(tree, axes), is_leaf=_leaf)
    return tree_leaves(found, is_leaf=lambda x: x is None)


def _holds_some(tree: PyTreeDef) -> bool:
    return any(kind in mapped_kinds for kind, _, _ in tree.entries)


def _is_mapped(x: Any) -> bool:
    return type(x) in mapped_kinds


def of_elements(fun: Callable[..., Any], in_tree: PyTreeDef, axes: Sequence[Any]) -> Callable[..., Any]:
    """``fun``, which is called with nodes of one example."""
    if not _holds_some(in_tree):
        return fun
    where = tree_unflatten(in_tree, axes)

    def adapt(x: Any, axis: Any) -> Any:
        given = tree_leaves(axis)
        return mapped_kinds[type(x)].element(x, given[0]) if _is_mapped(x) and given else x

    def called(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(adapt, (args, kwargs), where, is_leaf=_leaf)
        return fun(*args, **kwargs)

    return called


def batched(tree: Any, out_tree: PyTreeDef, axes: Sequence[Any], size: int) -> Any:
    """``tree`` with its nodes adapted to the axis that their leaves have got."""
    if not _holds_some(out_tree):
        return tree
    where = tree_unflatten(out_tree, axes)

    def adapt(x: Any, axis: Any) -> Any:
        given = tree_leaves(axis)
        return mapped_kinds[type(x)].batch(x, given[0], size) if _is_mapped(x) and given else x

    return tree_map(adapt, tree, where, is_leaf=_leaf)


def _leaf(x: Any) -> bool:
    return x is None or _is_mapped(x)
