"""Parts of references as arguments: leaves of trees for users, but functions are traced for what they are made of.

Knows nothing of how a part is read or written.
"""

from __future__ import annotations

from typing import Any

from polyax.ir.refs import met
from polyax.trace.register import register_pytree_node
from polyax.trace.tree import tree_leaves, tree_map


class PartOfRef:
    """What stands for a part of a reference. Classes have ``taken_apart``, and ``put_together`` from what it gives."""

    __slots__ = ()

    def taken_apart(self) -> tuple[list[Any], Any]:
        """The reference and the values that tell the place, and what else does, which is static."""
        raise NotImplementedError

    @classmethod
    def put_together(cls, static: Any, children: Any) -> Any:
        raise NotImplementedError


class _Opened:
    """A node that is a part of a reference again when the tree is put together."""

    def __init__(self, view: PartOfRef) -> None:
        self.view = view


def _flatten(x: _Opened) -> tuple[list[Any], Any]:
    children, static = x.view.taken_apart()
    return children, (type(x.view), static)


def _unflatten(aux: Any, children: Any) -> Any:
    cls, static = aux
    return cls.put_together(static, tuple(children))


register_pytree_node(_Opened, _flatten, _unflatten)


def holds_parts(tree: Any) -> bool:
    return met.any and any(isinstance(x, PartOfRef) for x in tree_leaves(tree))


def opened(tree: Any) -> Any:
    """The tree with nodes in the places of its parts of references, which have their references as leaves."""
    return tree_map(lambda x: _Opened(x) if isinstance(x, PartOfRef) else x, tree) if holds_parts(tree) else tree
