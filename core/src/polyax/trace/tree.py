"""Pytrees: nested containers of leaves, taken apart and put together. Knows nothing of arrays.

A node type is registered with a function that splits an object into children and static data, and one that joins
them again. ``None`` is a node without children. Dictionaries are taken in the order of their sorted keys.
"""

from __future__ import annotations

import collections
import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple


class _Node(NamedTuple):
    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, Iterable[Any]], Any]
    keys: Callable[[Any, Any], Iterable[Any]] | None = None  # (object, aux) -> one key entry per child


_REGISTRY: dict[type, _Node] = {}


class PyTreeDef:
    """The structure of a pytree: hashable, printed as in JAX."""

    __slots__ = ("_hash", "aux", "children", "node_type", "num_leaves")

    def __init__(self, node_type: type | None, aux: Any, children: tuple[PyTreeDef, ...]) -> None:
        self.node_type = node_type
        self.aux = aux
        self.children = children
        self.num_leaves = sum(c.num_leaves for c in children) if node_type is not None else 1
        self._hash: int | None = None

    @property
    def num_nodes(self) -> int:
        return 1 + sum(c.num_nodes for c in self.children)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        return tree_unflatten(self, leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        ""
        """The subtrees of ``tree`` at this structure's leaves; ValueError where it doesn't begin with it."""
        out: list[Any] = []
        _flatten_up_to(self, tree, out)
        return out

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.node_type, _hashable(self.aux), self.children))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, PyTreeDef)
            and self.node_type is other.node_type
            and self.num_leaves == other.num_leaves
            and hash(self) == hash(other)
            and self.aux == other.aux
            and self.children == other.children
        )

    def __repr__(self) -> str:
        return f"PyTreeDef({_show(self)})"


def _hashable(aux: Any) -> Any:
    return tuple(aux) if isinstance(aux, list) else aux


def _show(d: PyTreeDef) -> str:
    inner = [_show(c) for c in d.children]
    if d is LEAF:
        return "*"
    if d.node_type is type(None):
        return "None"
    if d.node_type is tuple:
        return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
    if d.node_type is list:
        return f"[{', '.join(inner)}]"
    if d.node_type is dict:
        return "{" + ", ".join(f"{k!r}: {c}" for k, c in zip(d.aux, inner, strict=True)) + "}"
    assert d.node_type is not None
    return f"CustomNode({d.node_type.__name__}[{d.aux}], [{', '.join(inner)}])"


LEAF = PyTreeDef(None, None, ())
_NONE = PyTreeDef(type(None), None, ())


def _sorted_keys(d: dict[Any, Any]) -> list[Any]:
    try:
        return sorted(d)
    except TypeError:
        raise TypeError(f"Comparator raised exception while sorting pytree dictionary keys: {list(d)}") from None


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    keys = _sorted_keys(d)
    return [d[k] for k in keys], keys


def _default_dict_flatten(d: Any) -> tuple[list[Any], Any]:
    values, keys = _dict_flatten(d)
    return values, (d.default_factory, tuple(keys))


class SequenceKey(NamedTuple):
    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


class DictKey(NamedTuple):
    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class GetAttrKey(NamedTuple):
    name: str

    def __str__(self) -> str:
        return f".{self.name}"


class FlattenedIndexKey(NamedTuple):
    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


def _sequence_keys(xs: Any, aux: Any) -> list[SequenceKey]:
    return [SequenceKey(i) for i in range(len(xs))]


_REGISTRY[tuple] = _Node(lambda x: (x, None), lambda _, xs: tuple(xs), _sequence_keys)
_REGISTRY[list] = _Node(lambda x: (x, None), lambda _, xs: list(xs), _sequence_keys)
_REGISTRY[dict] = _Node(_dict_flatten, lambda ks, xs: dict(zip(ks, xs)), lambda d, ks: [DictKey(k) for k in ks])
_REGISTRY[collections.OrderedDict] = _Node(
    lambda d: (list(d.values()), tuple(d)),
    lambda ks, xs: collections.OrderedDict(zip(ks, xs)),
    lambda d, ks: [DictKey(k) for k in ks],
)
_REGISTRY[collections.defaultdict] = _Node(
    _default_dict_flatten,
    lambda aux, xs: collections.defaultdict(aux[0], zip(aux[1], xs)),
    lambda d, aux: [DictKey(k) for k in aux[1]],
)
_REGISTRY[type(None)] = _Node(lambda _: ((), None), lambda _, xs: None, lambda x, aux: [])


def _named_tuple_node(kind: type) -> _Node:
    return _Node(lambda x: (x, None), lambda _, xs: kind(*xs), lambda x, aux: [GetAttrKey(n) for n in type(x)._fields])


_UNSEEN = _Node(lambda _: ((), None), lambda _, xs: None)
_LOOKED_UP: dict[type, _Node | None] = {}  # None: a leaf; forgotten when a type is registered


def _node_of(kind: type) -> _Node | None:
    """The registration of a type; named tuples are registered when first met."""
    node = _REGISTRY.get(kind)
    if node is None and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        node = _REGISTRY[kind] = _named_tuple_node(kind)
    _LOOKED_UP[kind] = node
    return node


def _register(kind: type, node: _Node) -> None:
    if kind in _REGISTRY:
        raise ValueError(f"Duplicate custom PyTreeDef type registration for {kind}.")
    _REGISTRY[kind] = node
    _LOOKED_UP.clear()


def _flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> PyTreeDef:
    kind = type(tree)
    node = _LOOKED_UP.get(kind, _UNSEEN)
    if node is _UNSEEN:
        node = _node_of(kind)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LEAF
    if tree is None:
        return _NONE
    children, aux = node.flatten(tree)
    return PyTreeDef(kind, aux, tuple([_flatten(c, leaves, is_leaf) for c in children]))


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """Leaves in order, and the structure that puts them together again.

    >>> tree_flatten({'b': 1, 'a': (2, None)})
    ([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _unflatten(d: PyTreeDef, leaves: Any) -> Any:
    if d.node_type is None:
        return next(leaves)
    if d.node_type is type(None):
        return None
    return _REGISTRY[d.node_type].unflatten(d.aux, [_unflatten(c, leaves) for c in d.children])


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    leaves = list(leaves)
    if len(leaves) != treedef.num_leaves:
        raise ValueError(
            f"Too {'few' if len(leaves) < treedef.num_leaves else 'many'} leaves for PyTreeDef; "
            f"expected {treedef.num_leaves}, got {len(leaves)}"
        )
    return _unflatten(treedef, iter(leaves))


def _flatten_up_to(d: PyTreeDef, tree: Any, out: list[Any]) -> None:
    if d.node_type is None:
        out.append(tree)
        return
    kind = type(tree)
    if kind is not d.node_type:
        if d.node_type is type(None):
            raise ValueError(f"Expected None, got {tree}.")
        raise ValueError(f"Expected {d.node_type.__name__}, got {tree}.")
    node = _node_of(kind)
    assert node is not None
    children, aux = node.flatten(tree)
    children = list(children)
    if len(children) != len(d.children):
        raise ValueError(
            f"{kind.__name__} arity mismatch: {len(children)} != {len(d.children)}; {kind.__name__}: {tree}."
        )
    if _hashable(aux) != _hashable(d.aux):
        what = "Dict key" if kind is dict else "Custom node"
        raise ValueError(f"{what} mismatch; expected {d.aux}, got {aux}; {kind.__name__}: {tree}.")
    for child, sub in zip(d.children, children, strict=True):
        _flatten_up_to(child, sub, out)


# --- registration -------------------------------------------------------------------------------------------------


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Iterable[Any]], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Makes ``nodetype`` a pytree node: ``flatten_func(x) -> (children, aux)``, ``unflatten_func(aux, children)``."""
    keys = None
    if flatten_with_keys_func is not None:
        keys = lambda x, _: [k for k, _ in flatten_with_keys_func(x)[0]]
    _register(nodetype, _Node(flatten_func, unflatten_func, keys))


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Iterable[Any]], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Like ``register_pytree_node`` with children given as ``(key, child)`` pairs."""

    def flatten(x: Any) -> tuple[Iterable[Any], Any]:
        pairs, aux = flatten_with_keys(x)
        return [c for _, c in pairs], aux

    register_pytree_node(nodetype, flatten_func or flatten, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: type) -> type:
    """Decorator for classes with ``tree_flatten(self)`` and ``tree_unflatten(cls, aux, children)``."""
    register_pytree_node(cls, operator.methodcaller("tree_flatten"), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys_class(cls: type) -> type:
    """Decorator for classes with ``tree_flatten_with_keys(self)`` and ``tree_unflatten(cls, aux, children)``."""
    flatten = operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None
    with_keys = operator.methodcaller("tree_flatten_with_keys")
    register_pytree_with_keys(cls, with_keys, cls.tree_unflatten, flatten)  # type: ignore[attr-defined]
    return cls


def register_static(cls: type) -> type:
    """Decorator: instances are structure, without leaves. They must be hashable."""
    register_pytree_node(cls, lambda x: ((), x), lambda x, _: x)
    return cls


def register_dataclass(
    nodetype: type,
    data_fields: Iterable[str] | None = None,
    meta_fields: Iterable[str] | None = None,
    drop_fields: Any = (),
) -> type:
    """Makes a dataclass a node: ``data_fields`` are children, ``meta_fields`` are static."""
    data, meta = _dataclass_fields(nodetype, data_fields, meta_fields)

    def flatten(x: Any) -> tuple[list[Any], tuple[Any, ...]]:
        return [getattr(x, n) for n in data], tuple(getattr(x, n) for n in meta)

    def unflatten(aux: Any, children: Iterable[Any]) -> Any:
        return nodetype(**dict(zip(data, children)), **dict(zip(meta, aux)))

    _register(nodetype, _Node(flatten, unflatten, lambda x, aux: [GetAttrKey(n) for n in data]))
    return nodetype


def _dataclass_fields(kind: type, data: Any, meta: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if data is not None and meta is not None:
        return tuple(data), tuple(meta)
    fields = getattr(kind, "__dataclass_fields__", None)
    if fields is None:
        raise TypeError(
            "register_dataclass: data_fields and meta_fields are required when nodetype is not a dataclass."
        )
    static = tuple(n for n, f in fields.items() if f.init and f.metadata.get("static", False))
    return tuple(n for n, f in fields.items() if f.init and n not in static), static


# --- maps and friends ---------------------------------------------------------------------------------------------


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    return tree_flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """``f`` of each leaf (and of what stands at its place in ``rest``), in the structure of ``tree``.

    >>> tree_map(lambda x, y: x + y, [1, (2,)], [10, (20,)])
    [11, (22,)]
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    columns = [leaves, *(treedef.flatten_up_to(r) for r in rest)]
    return tree_unflatten(treedef, map(f, *columns))


def tree_reduce(function: Callable[[Any, Any], Any], tree: Any, *initializer: Any, is_leaf: Any = None) -> Any:
    return functools.reduce(function, tree_leaves(tree, is_leaf), *initializer)


def tree_all(tree: Any, *, is_leaf: Any = None) -> bool:
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """From ``outer`` of ``inner`` to ``inner`` of ``outer``."""
    columns = outer_treedef.flatten_up_to(pytree_to_transpose)
    inner = tree_structure(columns[0]) if inner_treedef is None else inner_treedef
    rows = zip(*(inner.flatten_up_to(c) for c in columns), strict=True)
    return tree_unflatten(inner, [tree_unflatten(outer_treedef, row) for row in rows])


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    return PyTreeDef(tuple, None, tuple(treedefs))


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    return list(treedef.children)


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    return treedef.node_type is None


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    return all(treedef_is_leaf(tree_structure(x, is_leaf)) for x in iterable)


class Partial(functools.partial):  # pyright: ignore[reportMissingTypeArgument]
    """``functools.partial`` as a pytree: its bound arguments are children, the function is static.

    >>> tree_leaves(Partial(max, 1, default=2))
    [1, 2]
    """


def _partial_flatten(p: Partial) -> tuple[tuple[Any, ...], Any]:
    return (p.args, p.keywords), p.func


_REGISTRY[Partial] = _Node(_partial_flatten, lambda func, xs: (lambda args, kw: Partial(func, *args, **kw))(*xs))
