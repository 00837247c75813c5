"""Pytrees: nested containers of leaves, taken apart and put together. Knows nothing of arrays.

A structure is kept flat, its nodes in the order in which they are met from the root. Nothing here recurses, so that
time is linear and depth is no concern.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from polyax.trace import protos
from polyax.trace.mismatch import first_mismatch, kind_mismatch
from polyax.trace.nodes import Node, default_registry, no_parts

Entry = tuple[type | None, Any, int]
"""Of a node its type (None for a leaf), static data, and number of children."""

_LEAF: Entry = (None, None, 0)
_UNSEEN = Node(lambda _: ((), None), lambda *_: None)
_MANY = 8
"""From this many children on it pays to ask for the types that there are among them first."""
_known, _find = default_registry.known, default_registry.find


class PyTreeDef:
    """The structure of a pytree: hashable if its static data is, printed as in JAX."""

    __slots__ = ("_hash", "entries", "num_leaves")

    def __init__(self, entries: tuple[Entry, ...], num_leaves: int) -> None:
        self.entries = entries
        self.num_leaves = num_leaves
        self._hash: int | None = None

    @property
    def num_nodes(self) -> int:
        return len(self.entries)

    @property
    def node_type(self) -> type | None:
        """The type of the root; None for a leaf."""
        return self.entries[0][0]

    def is_leaf(self) -> bool:
        return self.node_type is None

    def node_data(self) -> tuple[type, Any] | None:
        """Type and static data of the root; None for a leaf."""
        kind, aux, _ = self.entries[0]
        return None if kind is None else (kind, list(aux) if kind is dict else aux)

    def children(self) -> list[PyTreeDef]:
        """The structures of the root's children."""
        out: list[PyTreeDef] = []
        start = 1
        while start < len(self.entries):
            stop = self._end(start)
            out.append(_of_entries(self.entries[start:stop]))
            start = stop
        return out

    def _end(self, start: int) -> int:
        """Where the subtree that begins at ``start`` is over."""
        missing = 1
        while missing:
            missing += self.entries[start][2] - 1
            start += 1
        return start

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        return tree_unflatten(self, leaves)

    def flatten_up_to(self, tree: Any, name: str = "") -> list[Any]:
        """The subtrees of ``tree`` at this structure's leaves.

        Raises:
          ValueError: ``tree`` doesn't begin with this structure; if it has a ``name``, the text says where.
        """
        out: list[Any] = []
        stack = [tree]
        for kind, aux, count in self.entries:
            x = stack.pop()
            if kind is None:
                out.append(x)
                continue
            taken = _taken_apart(x) if type(x) is kind else None
            if taken is None or len(taken[0]) != count or taken[1] != aux:
                raise first_mismatch(self.entries, tree, name) if name else kind_mismatch(kind, aux, count, x)
            stack += taken[0][::-1]
        return out

    def fold(self, leaves: Sequence[Any], node: Callable[[Any, Any, Sequence[Any]], Any]) -> Any:
        """Replaces each node, from the leaves up, by ``node(type, aux, children)``."""
        done: list[Any] = []
        rest = list(leaves)
        for kind, aux, count in reversed(self.entries):
            if kind is None:
                done.append(rest.pop())
                continue
            children = tuple(done[: -count - 1 : -1])
            del done[len(done) - count :]
            done.append(node(kind, aux, children))
        return done[0]

    def walk(self, f_node: Callable[..., Any], f_leaf: Callable[[Any], Any] | None, leaves: Iterable[Any]) -> Any:
        """``f_node(children, aux)`` of what became of the children, ``f_leaf(leaf)`` of leaves; that of the root.

        Each node is asked for as soon as its children are there.

        >>> tree_structure((1, [2])).walk(lambda xs, aux: sum(xs), lambda x: 10 * x, [1, 2])
        30
        """
        open_nodes: list[tuple[Any, int, list[Any]]] = []
        made, rest = None, iter(leaves)
        for kind, aux, count in self.entries:
            data = list(aux) if kind is dict else aux
            if count:
                open_nodes.append((data, count, []))
                continue
            made = f_node((), data) if kind else next(rest) if f_leaf is None else f_leaf(next(rest))
            while open_nodes:
                data, count, children = open_nodes[-1]
                children.append(made)
                if len(children) < count:
                    break
                open_nodes.pop()
                made = f_node(tuple(children), data)
        return made

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """This structure with ``inner`` at each of its leaves.

        >>> tree_structure([0, 0]).compose(tree_structure({'a': 0}))
        PyTreeDef([{'a': *}, {'a': *}])
        """
        parts = [inner.entries if e[0] is None else (e,) for e in self.entries]
        return _of_entries(tuple([e for part in parts for e in part]))

    @staticmethod
    def from_node_data_and_children(
        registry: Any, node_data: tuple[type, Any] | None, children: Iterable[PyTreeDef]
    ) -> PyTreeDef:
        """The inverse of ``node_data()`` and ``children()``."""
        if node_data is None:
            return LEAF
        kind, aux = node_data
        children = list(children)
        root: Entry = (kind, tuple(aux) if kind is dict else aux, len(children))
        return _of_entries((root, *(e for c in children for e in c.entries)))

    def serialize_using_proto(self) -> bytes:
        """A protocol buffer, as JAX writes it.

        Raises:
          ValueError: there are nodes of other types than None, lists, tuples and dictionaries, or keys that are no
            strings.

        >>> registry = default_registry
        >>> PyTreeDef.deserialize_using_proto(registry, tree_structure({'a': (0, None)}).serialize_using_proto())
        PyTreeDef({'a': (*, None)})
        """
        return protos.written(self.entries)

    @staticmethod
    def deserialize_using_proto(registry: Any, data: bytes) -> PyTreeDef:
        """The inverse of ``serialize_using_proto``."""
        return _of_entries(protos.read(data))

    def __hash__(self) -> int:
        if self._hash is None:
            try:
                self._hash = hash(self.entries)
            except TypeError:  # static data that has no hash; jit says so
                self._hash = hash(tuple([(kind, count) for kind, _, count in self.entries]))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, PyTreeDef) and self.entries == other.entries)

    def __reduce__(self) -> Any:
        return PyTreeDef, (self.entries, self.num_leaves)

    def __repr__(self) -> str:
        return f"PyTreeDef({self.fold(['*'] * self.num_leaves, _show)})"


def _of_entries(entries: tuple[Entry, ...]) -> PyTreeDef:
    return PyTreeDef(entries, sum(kind is None for kind, _, _ in entries))


def _show(kind: type, aux: Any, inner: Sequence[str]) -> str:
    if kind is type(None):
        return "None"
    if kind is tuple:
        return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
    if kind is list:
        return f"[{', '.join(inner)}]"
    if kind is dict:
        return "{" + ", ".join(f"{k!r}: {c}" for k, c in zip(aux, inner, strict=True)) + "}"
    name = f"namedtuple[{kind.__name__}]" if aux is kind else f"{kind.__name__}[{aux}]"
    return f"CustomNode({name}, [{', '.join(inner)}])"


LEAF = PyTreeDef((_LEAF,), 1)


def _taken_apart(x: Any) -> tuple[Sequence[Any], Any]:
    node = _find(type(x))
    assert node is not None
    children, aux = node.flatten(x)
    return (children if type(children) in (list, tuple) else list(children)), aux  # type: ignore[return-value]


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """Leaves in order, and the structure that puts them together again.

    >>> tree_flatten({'b': 1, 'a': (2, None)})
    ([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
    """
    leaves: list[Any] = []
    entries: list[Entry] = []
    stack = [tree]
    while stack:
        x = stack.pop()
        kind = type(x)
        node = _known.get(kind, _UNSEEN)
        if node is _UNSEEN:
            node = _find(kind)
        if node is None or (is_leaf is not None and is_leaf(x)):
            leaves.append(x)
            entries.append(_LEAF)
            continue
        parts = node.flatten(x)
        try:
            children, aux = parts
            if type(children) is not list and type(children) is not tuple:
                children = list(children)
        except (TypeError, ValueError) as e:
            raise no_parts(parts) from e
        entries.append((kind, aux, len(children)))
        if is_leaf is None and len(children) >= _MANY and _all_leaves(children):
            leaves += children
            entries += [_LEAF] * len(children)
        else:
            stack += children[::-1]
    return leaves, PyTreeDef(tuple(entries), len(leaves))


def _all_leaves(xs: Sequence[Any]) -> bool:
    """Whether that is known of all of them by their types."""
    return all(_known.get(kind, _UNSEEN) is None for kind in set(map(type, xs)))


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The pytree with this structure and these leaves.

    Raises:
      ValueError: there are too few or too many leaves.

    >>> leaves, treedef = tree_flatten({'a': 1, 'b': 2})
    >>> tree_unflatten(treedef, [x + 1 for x in leaves])
    {'a': 2, 'b': 3}
    """
    leaves = list(leaves)
    if len(leaves) != treedef.num_leaves:
        raise ValueError(
            f"Too {'few' if len(leaves) < treedef.num_leaves else 'many'} leaves for PyTreeDef; "
            f"expected {treedef.num_leaves}, got {len(leaves)}: {treedef}"
        )
    return treedef.fold(leaves, _joined)


def unflattener(treedef: PyTreeDef) -> Callable[[list[Any]], Any]:
    """``tree_unflatten`` of this structure, for leaves of the right number: quick for a leaf, a tuple or a list.

    >>> unflattener(tree_structure((0, 0)))([1, 2]), unflattener(tree_structure({'a': 0}))([1])
    ((1, 2), {'a': 1})
    """
    (kind, aux, count), *children = treedef.entries
    if kind is None:
        return operator.itemgetter(0)
    if kind in (tuple, list) and aux is None and len(children) == count == treedef.num_leaves:
        return kind
    return functools.partial(tree_unflatten, treedef)


def _joined(kind: type, aux: Any, children: Sequence[Any]) -> Any:
    node = _find(kind) if kind not in _known else _known[kind]
    assert node is not None
    return node.unflatten(aux, children)


# --- maps and friends ---------------------------------------------------------------------------------------------


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves in order.

    >>> tree_leaves({'a': 1, 'b': (2, None)})
    [1, 2]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """The structure without the leaves.

    >>> tree_structure({'a': 1, 'b': (2, None)})
    PyTreeDef({'a': *, 'b': (*, None)})
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """``f`` of each leaf (and of what stands at its place in ``rest``), in the structure of ``tree``.

    >>> tree_map(lambda x, y: x + y, [1, (2,)], [10, (20,)])
    [11, (22,)]

    Raises:
      ValueError: one of ``rest`` doesn't begin with the structure of ``tree``; the text says where and how.
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    columns = [leaves, *(treedef.flatten_up_to(r, "tree_map tree") for r in rest)]
    return tree_unflatten(treedef, map(f, *columns))


_no_initializer: Any = object()


def tree_reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _no_initializer,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """``functools.reduce`` over the leaves.

    Raises:
      TypeError: there is no leaf, and no ``initializer``.

    >>> tree_reduce(lambda x, y: x + y, {'a': 1, 'b': (2, 3)}, 10)
    16
    """
    start = () if initializer is _no_initializer else (initializer,)
    return functools.reduce(function, tree_leaves(tree, is_leaf), *start)


_no_identity = object()


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = _no_identity,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """The leaves combined pairwise, which takes a depth of operations of log2 of their number.

    >>> tree_reduce_associative(lambda x, y: f'({x}{y})', ['a', 'b', 'c', 'd'])
    '((ab)(cd))'

    Raises:
      TypeError: there is no leaf, and no ``identity``.
    """
    leaves = tree_leaves(tree, is_leaf)
    if not leaves:
        if identity is _no_identity:
            raise TypeError("Must specify identity for parallel reduction of empty sequence.")
        return identity
    return _reduced(operation, leaves)


def _reduced(operation: Callable[[Any, Any], Any], xs: Sequence[Any]) -> Any:
    half = len(xs) // 2
    return operation(_reduced(operation, xs[:half]), _reduced(operation, xs[half:])) if half else xs[0]


def tree_all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether all leaves are true.

    >>> tree_all({'a': True, 'b': (1, [])}), tree_all([0])
    (True, False)
    """
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """From ``outer`` of ``inner`` to ``inner`` of ``outer``.

    >>> tree_transpose(tree_structure([0, 0]), tree_structure({'a': 0}), [{'a': 1}, {'a': 2}])
    {'a': [1, 2]}

    Raises:
      TypeError: the tree doesn't have these structures.
    """
    leaves, treedef = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        columns = outer_treedef.flatten_up_to(pytree_to_transpose)
        inner_treedef = tree_structure(columns[0])
    wanted = outer_treedef.compose(inner_treedef)
    if treedef != wanted and not _rebuilt_as(treedef, wanted, leaves):
        raise TypeError(f"Mismatch\n{treedef}\n != \n{wanted}")
    width = inner_treedef.num_leaves
    rows = [tree_unflatten(outer_treedef, leaves[n::width]) for n in range(width)]
    return tree_unflatten(inner_treedef, rows)


def _rebuilt_as(treedef: PyTreeDef, other: PyTreeDef, leaves: Sequence[Any]) -> bool:
    """Whether the structure is what becomes of another when it is built: nodes may rearrange their children."""
    return other.num_leaves == len(leaves) and tree_structure(tree_unflatten(other, leaves)) == treedef


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of things with these structures."""
    return PyTreeDef.from_node_data_and_children(default_registry, (tuple, None), treedefs)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the root's children."""
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether it is one node: a leaf, or something without children.

    >>> treedef_is_leaf(tree_structure(0)), treedef_is_leaf(tree_structure(None)), treedef_is_leaf(tree_structure([0]))
    (True, True, False)
    """
    return treedef.num_nodes == 1


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether all elements are leaves."""
    return all(tree_structure(x, is_leaf).is_leaf() for x in iterable)
