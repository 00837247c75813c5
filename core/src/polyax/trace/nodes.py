"""The types that are nodes of pytrees: how each is taken apart and put together, and the keys of its children.

``None`` is a node without children. Dictionaries are taken in the order of their sorted keys. Knows nothing of arrays.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """An element of a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True, slots=True)
class DictKey:
    """An entry of a dictionary."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True, slots=True)
class GetAttrKey:
    """An attribute of an object."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True, slots=True)
class FlattenedIndexKey:
    """A child of a node whose children have no names."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


_KEYS = SequenceKey, DictKey, GetAttrKey, FlattenedIndexKey


def name_of(key: Any) -> str:
    """The name alone, without brackets; of what a registered type gives for a key, its text."""
    return str(getattr(key, key.__match_args__[0])) if isinstance(key, _KEYS) else str(key)


class Node(NamedTuple):
    """A registered type. ``flatten(x) -> (children, aux)``, ``unflatten(aux, children)``, ``keys(x, aux)``: one key
    for each child."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, Sequence[Any]], Any]
    keys: Callable[[Any, Any], Iterable[Any]] | None = None

    def keys_of(self, x: Any, aux: Any, count: int) -> list[Any]:
        return list(self.keys(x, aux)) if self.keys else [FlattenedIndexKey(n) for n in range(count)]


class PyTreeRegistry:
    """The nodes by type."""

    def __init__(self) -> None:
        self._nodes: dict[type, Node] = {}
        self.known: dict[type, Node | None] = {}
        """What was looked up: None for leaves. Forgotten when a type is registered."""

    def find(self, kind: type) -> Node | None:
        """The node of a type, None for leaves; named tuples are registered when first met."""
        node = self._nodes.get(kind)
        if node is None and issubclass(kind, tuple) and hasattr(kind, "_fields"):
            node = self._nodes[kind] = _named_tuple(kind)
        self.known[kind] = node
        return node

    def add(self, kind: type, node: Node, what: str = "custom") -> None:
        """Registers a type.

        Raises:
          ValueError: it is registered already.
        """
        if kind in self._nodes:
            raise ValueError(f"Duplicate {what} PyTreeDef type registration for {kind}.")
        self._nodes[kind] = node
        self.known.clear()

    def is_node(self, kind: type) -> bool:
        return self.find(kind) is not None

    def flatten_one_level(self, tree: Any) -> tuple[Sequence[Any], Any] | None:
        """``(children, aux)`` of a node; None for a leaf."""
        node = self.find(type(tree))
        if node is None:
            return None
        parts = node.flatten(tree)
        try:
            children, aux = parts
            return list(children), list(aux) if type(tree) is dict else aux
        except (TypeError, ValueError) as e:
            raise no_parts(parts) from e

    def flatten_one_level_with_keys(self, tree: Any) -> tuple[list[tuple[Any, Any]], Any] | None:
        """``([(key, child), ...], aux)`` of a node; None for a leaf."""
        found, node = self.flatten_one_level(tree), self.find(type(tree))
        if found is None or node is None:
            return None
        children, aux = found
        return list(zip(node.keys_of(tree, aux, len(children)), children, strict=True)), aux


def no_parts(found: Any) -> ValueError:
    """The error about what a function gave that should take a node apart."""
    where = " where 'children' is iterable" if isinstance(found, tuple) and len(found) == 2 else ""
    what = "The to_iterable function for a custom PyTree node should return a (children, aux_data) tuple"
    return ValueError(f"{what}{where}, got {found!r}")


default_registry = PyTreeRegistry()


def _no_node(tree: Any) -> ValueError:
    return ValueError(f"can't tree-flatten type: {type(tree)}")


def flatten_one_level(tree: Any) -> tuple[Sequence[Any], Any]:
    """Children and static data of a node.

    >>> flatten_one_level({'b': 1, 'a': [2]})
    ([[2], 1], ['a', 'b'])

    Raises:
      ValueError: ``tree`` is a leaf.
    """
    found = default_registry.flatten_one_level(tree)
    if found is None:
        raise _no_node(tree)
    return found


def flatten_one_level_with_keys(tree: Any) -> tuple[list[tuple[Any, Any]], Any]:
    """Pairs of key and child of a node, and its static data.

    >>> flatten_one_level_with_keys([7])
    ([(SequenceKey(idx=0), 7)], None)
    """
    found = default_registry.flatten_one_level_with_keys(tree)
    if found is None:
        raise _no_node(tree)
    return found


def is_tree_node(typ: type) -> bool:
    """Whether objects of a type are nodes of pytrees, not leaves."""
    return default_registry.is_node(typ)


# --- containers ---------------------------------------------------------------------------------------------------


class Partial(functools.partial):
    """``functools.partial`` as a pytree: its bound arguments are children, the function is static.

    >>> import polyax
    >>> polyax.tree.leaves(Partial(max, 1, default=2))
    [1, 2]
    """

    def __new__(cls, func: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(func, functools.partial):  # else its arguments would be merged with ours, and be traced
            func = _Shim(func)
        return super().__new__(cls, func, *args, **kwargs)


class _Shim:
    """A partial function as static data: equal to it, and to others of the same function and arguments."""

    def __init__(self, fun: functools.partial[Any]) -> None:
        self.fun = fun
        self.func, self.args, self.keywords = fun.func, fun.args, fun.keywords

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)

    def _key(self) -> Any:
        return self.func, self.args, tuple(sorted(self.keywords.items()))

    def __eq__(self, other: object) -> bool:
        return self.fun is other or (isinstance(other, _Shim) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return repr(self.fun)


def _sorted_keys(d: dict[Any, Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(d))
    except TypeError:
        raise ValueError(f"Comparator raised exception while sorting pytree dictionary keys: {list(d)}") from None


def _dict(d: dict[Any, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    keys = _sorted_keys(d)
    return [d[k] for k in keys], keys


def _default_dict(d: Any) -> tuple[list[Any], Any]:
    values, keys = _dict(d)
    return values, (d.default_factory, keys)


def _sequence_keys(xs: Any, _: Any) -> list[SequenceKey]:
    return [SequenceKey(n) for n in range(len(xs))]


def _dict_keys(_: Any, keys: Any) -> list[DictKey]:
    return [DictKey(k) for k in keys]


def _named_tuple(kind: Any) -> Node:
    """A node with its type as static data, which tells it from one that is registered."""
    return Node(lambda x: (x, kind), lambda _, xs: kind(*xs), lambda *_: [GetAttrKey(n) for n in kind._fields])


default_registry.add(type(None), Node(lambda _: ((), None), lambda *_: None))
default_registry.add(tuple, Node(lambda x: (x, None), lambda _, xs: tuple(xs), _sequence_keys))
default_registry.add(list, Node(lambda x: (x, None), lambda _, xs: list(xs), _sequence_keys))
default_registry.add(dict, Node(_dict, lambda keys, xs: dict(zip(keys, xs)), _dict_keys))
default_registry.add(
    collections.OrderedDict,
    Node(lambda d: (list(d.values()), tuple(d)), lambda keys, xs: collections.OrderedDict(zip(keys, xs)), _dict_keys),
)
default_registry.add(
    collections.defaultdict,
    Node(
        _default_dict,
        lambda aux, xs: collections.defaultdict(aux[0], zip(aux[1], xs)),
        lambda d, aux: _dict_keys(d, aux[1]),
    ),
)
default_registry.add(
    Partial, Node(lambda p: ((p.args, p.keywords), p.func), lambda fun, xs: Partial(fun, *xs[0], **xs[1]))
)
