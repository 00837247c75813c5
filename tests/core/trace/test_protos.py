"""Structures as protocol buffers: the bytes are JAX's."""

from __future__ import annotations

import collections
from typing import Any

import pytest

from polyax.errors import JaxRuntimeError
from polyax.tree_util import PyTreeDef, default_registry, tree_structure

WRITTEN = [
    (1, b"\n\x02\x10\x01"),
    (None, b"\n\x02\x10\x03"),
    ((), b"\n\x02\x10\x04"),
    ({}, b"\n\x02\x10\x05"),
    ([1] * 3, b"\n\x02\x10\x01\n\x02\x10\x01\n\x02\x10\x01\n\x04\x08\x03\x10\x02"),
    (
        {"a": (1, [2, None])},
        b"\n\x02\x10\x01\n\x02\x10\x01\n\x02\x10\x03\n\x04\x08\x02\x10\x02\n\x04\x08\x02\x10\x04\n\t\x08\x01"
        b"\x10\x05\x1a\x03\n\x01\x00\x12\x01a",
    ),
    (
        {"b": 1, "a": {"b": 2}},
        b"\n\x02\x10\x01\n\t\x08\x01\x10\x05\x1a\x03\n\x01\x00\n\x02\x10\x01\n\n\x08\x02\x10\x05\x1a\x04\n\x02\x01\x00\x12"
        b"\x01b\x12\x01a",
    ),
]
"""What JAX 0.10.2 wrote."""


@pytest.mark.parametrize("tree, message", WRITTEN, ids=str)
def test_bytes(tree: Any, message: bytes) -> None:
    assert tree_structure(tree).serialize_using_proto() == message
    assert PyTreeDef.deserialize_using_proto(default_registry, message) == tree_structure(tree)


def test_large_structures() -> None:
    tree = {f"é{n}": [n, (n, None)] for n in range(300)}
    for _ in range(2000):
        tree = [(), tree]
    structure = tree_structure(tree)
    assert PyTreeDef.deserialize_using_proto(default_registry, structure.serialize_using_proto()) == structure


@pytest.mark.parametrize("tree", [collections.OrderedDict(a=1), [collections.namedtuple("P", "x")(1)]])
def test_other_nodes(tree: Any) -> None:
    with pytest.raises(ValueError, match="User-defined nodes are not supported when serializing pytrees as protocol"):
        tree_structure(tree).serialize_using_proto()


def test_other_keys() -> None:
    with pytest.raises(ValueError, match="Only string keys are supported in proto pytree serialization"):
        tree_structure({1: 2}).serialize_using_proto()


@pytest.mark.parametrize(
    "message", [b"abc", b"\n\x02\x10\x09", b"\n\x00", b"\n\x09\x08\x01", b"\n\x07\x08\x01\x10\x05\x1a\x01\x05"]
)
def test_no_messages(message: bytes) -> None:
    with pytest.raises(JaxRuntimeError, match="Could not deserialize PyTreeDefProto"):
        PyTreeDef.deserialize_using_proto(default_registry, message)


@pytest.mark.parametrize("message", [b"", WRITTEN[0][1] * 2, b"\n\x04\x08\x02\x10\x04" + WRITTEN[0][1]])
def test_no_single_structure(message: bytes) -> None:
    with pytest.raises(RuntimeError, match="PyTreeDef traversal did not yield a singleton"):
        PyTreeDef.deserialize_using_proto(default_registry, message)


LEAF = WRITTEN[0][1]
WRONG_COUNTS = {
    "fewer keys": (
        LEAF * 2 + b"\n\t\x08\x02\x10\x05\x1a\x03\n\x01\x00\x12\x01a",
        "keys and entries does not match: 1 and 2",
    ),
    "no keys": (LEAF + b"\n\x04\x08\x01\x10\x05", "keys and entries does not match: 0 and 1"),
    "keys of a tuple": (
        LEAF + b"\n\t\x08\x01\x10\x04\x1a\x03\n\x01\x00\x12\x01a",
        "keys and entries does not match: 1 and 1",
    ),
    "a leaf in a leaf": (LEAF + b"\n\x04\x08\x01\x10\x01", "a leaf or None has 1 children"),
    "a leaf in None": (LEAF + b"\n\x04\x08\x01\x10\x03", "a leaf or None has 1 children"),
}


@pytest.mark.parametrize("name", WRONG_COUNTS)
def test_counts_that_do_not_fit(name: str) -> None:
    message, text = WRONG_COUNTS[name]
    with pytest.raises(JaxRuntimeError, match=text):
        PyTreeDef.deserialize_using_proto(default_registry, message)
