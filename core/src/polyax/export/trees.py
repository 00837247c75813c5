"""Structures of arguments and results as JSON and back. Types of users take part once they are registered here."""

from __future__ import annotations

import collections
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from polyax.trace.nodes import default_registry
from polyax.trace.tree import Entry, PyTreeDef, tree_structure

T = TypeVar("T")
HOW = "Use `export.register_pytree_node_serialization` or `export.register_namedtuple_serialization`."


class Saved(NamedTuple):
    """How a type of nodes is written: ``write(aux) -> bytes``, ``read(bytes) -> aux``, ``join(aux, children)``."""

    kind: type
    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    join: Callable[[Any, Sequence[Any]], Any]


_by_type: dict[type, Saved] = {}
_by_name: dict[str, Saved] = {}


def register_pytree_node_serialization(
    nodetype: type[T],
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> type[T]:
    """Lets nodes of a type be part of the arguments and results of saved programs; gives the type back.

    Args:
      serialized_name: what it is called in files.
      serialize_auxdata: bytes for its static data.
      deserialize_auxdata: the static data of these bytes.
      from_children: ``(aux, children) -> node``; by default as it was registered as a pytree.

    Raises:
      ValueError: the type or the name is registered already, or the type is no node of pytrees.
    """
    if nodetype in _by_type:
        raise ValueError(
            f"Duplicate serialization registration for type `{nodetype}`. Previous registration was with "
            f"serialized_name `{_by_type[nodetype].name}`."
        )
    if serialized_name in _by_name:
        raise ValueError(
            f"Duplicate serialization registration for serialized_name `{serialized_name}`. Previous registration was "
            f"for type `{_by_name[serialized_name].kind}`."
        )
    if from_children is None:
        node = default_registry.find(nodetype)
        if node is None or hasattr(nodetype, "_fields"):
            raise ValueError(
                "If `from_children` is not present, you must call first "
                f"`polyax.tree_util.register_pytree_node` for `{nodetype}`"
            )
        from_children = node.unflatten
    saved = Saved(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children)
    _by_type[nodetype] = _by_name[serialized_name] = saved
    return nodetype


def register_namedtuple_serialization(nodetype: type[T], *, serialized_name: str) -> type[T]:
    """``register_pytree_node_serialization`` for a named tuple, which is a pytree as it is.

    Raises:
      ValueError: it is no named tuple, or the type or the name is registered already.
    """
    fields = getattr(nodetype, "_fields", None)
    if not issubclass(nodetype, tuple) or fields is None:
        raise ValueError(
            "Use `polyax.export.register_pytree_node_serialization` for types other than `collections.namedtuple`."
        )
    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda _: json.dumps(list(fields)).encode(),
        deserialize_auxdata=lambda data: json.loads(data),
        from_children=lambda names, children: nodetype(**dict(zip(names, children, strict=True))),
    )


def _ordered_keys(keys: Sequence[Any]) -> bytes:
    if not all(isinstance(k, str) for k in keys):
        raise NotImplementedError(
            "Serialization of collections.OrderedDict is supported only when the keys are strings. "
            f"Found keys: {tuple(keys)}."
        )
    return json.dumps(list(keys)).encode()


register_pytree_node_serialization(
    collections.OrderedDict,
    serialized_name="collections.OrderedDict",
    serialize_auxdata=_ordered_keys,
    deserialize_auxdata=lambda data: tuple(json.loads(data)),
)

_BUILT_IN: dict[type | None, str] = {None: "*", type(None): "None", tuple: "tuple", list: "list", dict: "dict"}


def described(tree: PyTreeDef) -> list[Any]:
    """A structure as JSON: its nodes in order, each with its kind, its static data and the number of its children.

    Raises:
      ValueError: a type in it isn't registered.
      TypeError: the keys of a dictionary aren't strings.
    """
    return [[*_node(kind, aux), count] for kind, aux, count in tree.entries]


def _node(kind: type | None, aux: Any) -> tuple[str, Any]:
    if kind is dict:
        for key in aux:
            if not isinstance(key, str):
                raise TypeError(
                    "Serialization is supported only for dictionaries with string keys. "
                    f"Found key {key} of type {type(key)}."
                )
        return "dict", list(aux)
    if kind in _BUILT_IN:
        return _BUILT_IN[kind], None
    saved = _by_type.get(kind) if kind else None
    if saved is None:
        raise ValueError(f"Cannot serialize PyTreeDef containing an unregistered type `{kind}`. {HOW}")
    data: Any = saved.write(aux)
    if not isinstance(data, (bytes, bytearray)):
        raise ValueError(
            "The custom serialization function for `node_type` must return a `bytes` object. "
            f"It returned a {type(data)}."
        )
    return f"custom:{saved.name}", bytes(data).hex()


def structure(nodes: Sequence[Any]) -> PyTreeDef:
    """The structure that is described.

    Raises:
      ValueError: a type in it isn't registered in this process.
    """
    entries: list[Entry] = []
    for kind, aux, count in nodes:
        entries.append(_custom(kind, aux, count) if kind.startswith("custom:") else _entry(kind, aux, count))
    return PyTreeDef(tuple(entries), sum(e[0] is None for e in entries))


def _entry(kind: str, aux: Any, count: int) -> Entry:
    if kind not in _BUILT_IN.values():
        raise ValueError(f"Cannot deserialize PyTreeDef with unknown kind: {kind}")
    found = next(k for k, name in _BUILT_IN.items() if name == kind)
    return found, tuple(aux) if kind == "dict" else None, count


def _custom(kind: str, data: str, count: int) -> Entry:
    name = kind.removeprefix("custom:")
    if name not in _by_name:
        raise ValueError(f"Cannot deserialize a PyTreeDef containing an unregistered type `{name}`. {HOW}")
    saved = _by_name[name]
    (made, *_) = tree_structure(saved.join(saved.read(bytes.fromhex(data)), [0] * count)).entries
    return made
