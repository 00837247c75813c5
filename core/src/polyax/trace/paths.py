"""Where a leaf stands in its pytree: key paths, and error texts for trees that don't match."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from polyax.trace.tree import (
    FlattenedIndexKey,
    PyTreeDef,
    _node_of,  # pyright: ignore[reportPrivateUsage]
    tree_flatten,
    tree_structure,
    tree_unflatten,
)

KeyPath = tuple[Any, ...]


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """``['w'][0].bias``; with ``simple``, names alone between separators."""
    if not simple:
        return separator.join(map(str, keys))
    return separator.join(str(k[0]) for k in keys)


def _children(tree: Any) -> list[tuple[Any, Any]] | None:
    """(key, child) pairs of one node; None for a leaf."""
    node = _node_of(type(tree))
    if node is None:
        return None
    children, aux = node.flatten(tree)
    children = list(children)
    keys = node.keys(tree, aux) if node.keys else [FlattenedIndexKey(i) for i in range(len(children))]
    return list(zip(keys, children, strict=True))


def _walk(tree: Any, path: KeyPath, is_leaf: Callable[..., bool] | None, is_leaf_takes_path: bool) -> Iterator[Any]:
    if is_leaf is not None and (is_leaf(path, tree) if is_leaf_takes_path else is_leaf(tree)):
        yield path, tree
        return
    pairs = _children(tree)
    if pairs is None:
        yield path, tree
        return
    for key, child in pairs:
        yield from _walk(child, (*path, key), is_leaf, is_leaf_takes_path)


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    return list(_walk(tree, (), is_leaf, is_leaf_takes_path))


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    pairs = tree_leaves_with_path(tree, is_leaf, is_leaf_takes_path)
    ends = {id(leaf) for _, leaf in pairs}
    stop = None if is_leaf is None else (lambda x: id(x) in ends)
    return pairs, tree_structure(tree, stop)


def tree_map_with_path(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Any = None, is_leaf_takes_path: bool = False
) -> Any:
    """``f(path, leaf, *rest_leaves)`` for each leaf."""
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [treedef.flatten_up_to(r) for r in rest]
    return tree_unflatten(treedef, [f(p, x, *others) for (p, x), *others in zip(pairs, *columns, strict=True)])


# --- prefixes -----------------------------------------------------------------------------------------------------


def broadcast_prefix(prefix: Any, full: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    ""
    """One value of ``prefix`` for each leaf of ``full``; ValueError where ``prefix`` is no prefix of ``full``."""
    leaves, treedef = tree_flatten(prefix, is_leaf)
    out: list[Any] = []
    for value, subtree in zip(leaves, treedef.flatten_up_to(full), strict=True):
        out.extend([value] * tree_structure(subtree, None).num_leaves)
    return out


def flatten_axes(name: str, treedef: PyTreeDef, axes: Any, *, tupled_args: bool = False) -> list[Any]:
    """One axis for each leaf of ``treedef`` from a tree prefix in which None is a value (``in_axes``, ``out_axes``).

    Raises:
      ValueError: ``axes`` is no prefix of the structure; both are shown.
    """
    placeholder = tree_unflatten(treedef, [object()] * treedef.num_leaves)
    is_none: Callable[[Any], bool] = lambda x: x is None
    try:
        return broadcast_prefix(axes, placeholder, is_none)
    except ValueError:
        hint = ""
        if tupled_args:
            hint = (
                f" Note that {name} that are non-trivial pytrees should always be wrapped in a tuple"
                " representing the argument list."
            )
            if treedef.num_leaves == 1 and not isinstance(axes, tuple):
                hint += (
                    f" In particular, you're passing in a single argument which means that {name} might need to be"
                    " wrapped in a singleton tuple."
                )
        raise ValueError(
            f"{name} specification must be a tree prefix of the corresponding value, got specification {axes} "
            f"for value tree {treedef}.{hint}"
        ) from None


def differences(a: PyTreeDef, b: PyTreeDef, path: str = "") -> Iterator[str]:
    """One line for each place where two structures differ."""
    if a == b:
        return
    if a.node_type is not b.node_type:
        yield f"at {path or 'the root'}: {_kind(a)} against {_kind(b)}"
    elif len(a.children) != len(b.children):
        yield f"at {path or 'the root'}: {len(a.children)} children against {len(b.children)}"
    elif a.aux != b.aux:
        yield f"at {path or 'the root'}: {a.aux} against {b.aux}"
    else:
        for i, (x, y) in enumerate(zip(a.children, b.children, strict=True)):
            yield from differences(x, y, f"{path}[{a.aux[i]!r}]" if a.node_type is dict else f"{path}[{i}]")


def _kind(d: PyTreeDef) -> str:
    return "a leaf" if d.node_type is None else f"a {d.node_type.__name__}"


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """``full_tree`` with each leaf replaced by the leaf of ``prefix_tree`` that stands for it.

    >>> tree_broadcast([1, 2], [(0, 0), 0])
    [(1, 1), 2]
    """
    return tree_unflatten(tree_structure(full_tree), broadcast_prefix(prefix_tree, full_tree, is_leaf))
