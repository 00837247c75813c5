"""Structures of built-in containers as protocol buffers, byte for byte as JAX writes them.

A message of JAX's ``PyTreeDefProto`` has its nodes, children before their parents, in field 1, and the texts of
dictionaries' keys, each once, in field 2. A node has a number of children (1), a kind (2) and, if it is a dictionary,
the places of its keys among the texts (3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from polyax.ir.errors import PolyaxRuntimeError

Entry = tuple[type | None, Any, int]
_NUMBERS: dict[type | None, int] = {None: 1, list: 2, type(None): 3, tuple: 4, dict: 5}
"""Those of the kinds; None stands for leaves."""
_KINDS = {number: kind for kind, number in _NUMBERS.items()}
_WITHOUT_CHILDREN = None, type(None)
_NODE, _TEXT = 1, 2
_COUNT, _KIND, _KEYS = 1, 2, 3
_VARINT, _BYTES = 0, 2


def written(entries: Sequence[Entry]) -> bytes:
    """The message for a structure, whose entries have parents before their children.

    Raises:
      ValueError: it has nodes of other types, or keys that are no strings.
    """
    places: dict[str, int] = {}
    nodes = b"".join(_part(_NODE, _node(entry, places)) for entry in _children_first(entries))
    return nodes + b"".join(_part(_TEXT, text.encode()) for text in places)


def _children_first(entries: Sequence[Entry]) -> Iterator[Entry]:
    open_nodes: list[list[Any]] = []
    for entry in entries:
        open_nodes.append([entry, entry[2]])
        while open_nodes and not open_nodes[-1][1]:
            yield open_nodes.pop()[0]
            if open_nodes:
                open_nodes[-1][1] -= 1


def _node(entry: Entry, places: dict[str, int]) -> bytes:
    kind, aux, count = entry
    if kind not in _NUMBERS:
        raise ValueError(
            "User-defined nodes are not supported when serializing pytrees as protocol buffers. You should either "
            f"convert the user-defined nodes to another type or use pickle instead. There is one of type {kind}."
        )
    out = _number(_COUNT, count) if count else b""
    out += _number(_KIND, _NUMBERS[kind])
    if kind is dict and count:
        out += _part(_KEYS, _part(1, b"".join(_varint(_place(key, places)) for key in aux)))
    return out


def _place(key: Any, places: dict[str, int]) -> int:
    if not isinstance(key, str):
        raise ValueError(f"Only string keys are supported in proto pytree serialization, got {key!r}.")
    return places.setdefault(key, len(places))


def read(message: bytes) -> tuple[Entry, ...]:
    """The entries of the structure that ``message`` describes.

    Raises:
      PolyaxRuntimeError: it describes none.
    """
    try:
        fields = list(_fields(message))
        texts = [value.decode() for field, value in fields if field == _TEXT]
        nodes = [_read_node(dict(_fields(value)), texts) for field, value in fields if field == _NODE]
    except (IndexError, KeyError, AttributeError, TypeError, UnicodeDecodeError):
        raise PolyaxRuntimeError("Could not deserialize PyTreeDefProto.") from None
    return _parents_first(nodes)


def _read_node(fields: dict[int, Any], texts: Sequence[str]) -> Entry:
    kind, count = _KINDS[fields[_KIND]], fields.get(_COUNT, 0)
    places = next(iter(dict(_fields(fields[_KEYS])).values()), b"") if _KEYS in fields else b""
    keys = tuple(texts[n] for n in _varints(places))
    if len(keys) != (count if kind is dict else 0):
        raise PolyaxRuntimeError(f"Number of keys and entries does not match: {len(keys)} and {count}.")
    if count and kind in _WITHOUT_CHILDREN:
        raise PolyaxRuntimeError(f"Could not deserialize PyTreeDefProto: a leaf or None has {count} children.")
    return kind, keys if kind is dict else None, count


def _parents_first(nodes: Sequence[Entry]) -> tuple[Entry, ...]:
    trees: list[Any] = []
    for entry in nodes:
        first = len(trees) - entry[2]
        if first < 0:
            break
        trees[first:] = [(entry, trees[first:])]
    else:
        if len(trees) == 1:
            return _flat(trees)
    raise PolyaxRuntimeError("PyTreeDef traversal did not yield a singleton.")


def _flat(trees: list[Any]) -> tuple[Entry, ...]:
    out: list[Entry] = []
    while trees:
        entry, children = trees.pop()
        out.append(entry)
        trees += reversed(children)
    return tuple(out)


# --- the wire format ----------------------------------------------------------------------------------------------


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def _number(field: int, n: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(n)


def _part(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(content)) + content


def _varints(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        n, at = _one(data, at)
        yield n


def _one(data: bytes, at: int) -> tuple[int, int]:
    """The number at a place, and where it ends."""
    n = shift = 0
    while data[at] & 128:
        n |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
    return n | data[at] << shift, at + 1


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        tag, at = _one(data, at)
        value: Any
        value, at = _one(data, at)
        if tag & 7 == _BYTES:
            value, at = data[at : at + value], at + value
        if at > len(data) or tag & 7 not in (_VARINT, _BYTES):
            raise IndexError
        yield tag >> 3, value
