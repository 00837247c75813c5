"""Pytrees: round trips, registration, paths, prefixes, and errors that show both sides."""

import collections
import copy
import dataclasses
import pickle
from typing import NamedTuple

import pytest

from polyax.trace import nodes, paths, register, tree


class Point(NamedTuple):
    x: object
    y: object


@dataclasses.dataclass
class Model:
    weights: object
    name: str = dataclasses.field(metadata={"static": True}, default="m")


register.register_dataclass(Model)

TREES = [
    1,
    None,
    (),
    [1, (2, None), {"b": 3, "a": [4]}],
    Point(1, [2, 3]),
    collections.OrderedDict([("z", 1), ("a", 2)]),
    collections.defaultdict(list, {"k": [1, 2]}),
    Model({"w": 1}, "net"),
    list(range(50)),
    [*range(20), None, [7], *range(20)],
    {"a": {f"k{n}": n for n in range(20)}, "b": [Point(1, 2)] * 20},
]


@pytest.mark.parametrize("example", TREES, ids=repr)
def test_flatten_and_unflatten_are_inverse(example):
    leaves, treedef = tree.tree_flatten(example)
    assert tree.tree_unflatten(treedef, leaves) == example
    assert treedef.num_leaves == len(leaves)
    assert tree.tree_structure(example) == treedef
    assert hash(tree.tree_structure(example)) == hash(treedef)


def test_dictionaries_are_taken_in_key_order():
    assert tree.tree_leaves({"b": 1, "a": 2}) == [2, 1]
    assert tree.tree_leaves(collections.OrderedDict([("b", 1), ("a", 2)])) == [1, 2]


def test_structures_print_as_in_jax():
    assert repr(tree.tree_structure([1, (2, None), {"a": 3}])) == "PyTreeDef([*, (*, None), {'a': *}])"
    assert repr(tree.tree_structure((1,))) == "PyTreeDef((*,))"


def test_static_data_tells_structures_apart():
    assert tree.tree_structure(Model(1, "a")) != tree.tree_structure(Model(1, "b"))


def test_map_over_several_trees():
    assert tree.tree_map(lambda x, y: (x, y), {"a": 1}, {"a": [2, 3]}) == {"a": (1, [2, 3])}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"a": 1, "c": [2]}, r"metadata at key path\n    tree_map tree\n(.|\n)*\('a', 'b'\)(.|\n)*\('a', 'c'\)"),
        ([1, 2], "<class 'dict'>\nbut at the same key path .* of different type\n    <class 'list'>"),
        ({"a": 1}, "with 2 child keys\n    a b\n(.|\n)* 1 child keys\n    a\n(.|\n)*difference on key sets is\n    b"),
    ],
)
def test_mismatches_are_shown(other, message):
    with pytest.raises(ValueError, match=message):
        tree.tree_map(lambda x, y: x, {"a": 1, "b": 2}, other)


def test_wrong_number_of_leaves():
    with pytest.raises(ValueError, match="Too many leaves for PyTreeDef; expected 1, got 2"):
        tree.tree_unflatten(tree.tree_structure(1), [1, 2])


def test_transposition():
    outer, inner = tree.tree_structure({"a": 0, "b": 0}), tree.tree_structure([0, 0])
    assert tree.tree_transpose(outer, inner, {"a": [1, 2], "b": [3, 4]}) == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]


def test_paths_name_every_leaf():
    example = {"w": [1, Point(2, None)], "m": Model(3)}
    names = [paths.keystr(path) for path, _ in paths.tree_leaves_with_path(example)]
    assert names == ["['m'].weights", "['w'][0]", "['w'][1].x"]


def test_map_with_path():
    out = paths.tree_map_with_path(lambda p, x: f"{paths.keystr(p)}={x}", {"a": (1, 2)})
    assert out == {"a": ("['a'][0]=1", "['a'][1]=2")}


def test_axes_prefix_where_none_is_a_value():
    treedef = tree.tree_structure(((1, [2, 3]), {}))
    assert paths.flatten_axes("in_axes", treedef, ((None, 0), 0)) == [None, 0, 0]
    with pytest.raises(ValueError, match="in_axes specification must be a tree prefix .*got specification"):
        paths.flatten_axes("in_axes", treedef, ((0, 0, 0), 0))


def test_registering_twice_is_an_error():
    with pytest.raises(ValueError, match="Duplicate custom PyTreeDef type registration"):
        register.register_pytree_node(Model, lambda m: ((), None), lambda aux, xs: None)


def test_reduce_takes_an_initializer_by_name():
    add = lambda a, b: a + b
    assert tree.tree_reduce(add, {"a": 1, "b": 2}, initializer=3) == tree.tree_reduce(add, [1, 2], 3) == 6
    assert tree.tree_reduce(add, [], initializer=None) is None
    assert tree.tree_reduce(add, [[1], [2]], is_leaf=lambda x: isinstance(x, list) and x[0] in (1, 2)) == [1, 2]
    with pytest.raises(TypeError, match="empty"):
        tree.tree_reduce(add, [])


def test_keys_of_different_kinds_differ() -> None:
    keys = [
        nodes.SequenceKey(0),
        nodes.DictKey(0),
        nodes.FlattenedIndexKey(0),
        nodes.GetAttrKey("x"),
        nodes.DictKey("x"),
    ]
    assert len(set(keys)) == len(keys)
    assert all((a == b) == (a is b) and (a != b) == (a is not b) for a in keys for b in keys)
    assert nodes.SequenceKey(0) == nodes.SequenceKey(0) != nodes.SequenceKey(1)
    assert hash(nodes.FlattenedIndexKey(0)) == hash(nodes.FlattenedIndexKey(0))


def test_keys_are_leaves() -> None:
    path = paths.tree_flatten_with_path({"a": [7]})[0][0][0]
    assert tree.tree_leaves(path) == [nodes.DictKey("a"), nodes.SequenceKey(0)] and not isinstance(path[0], tuple)
    assert copy.deepcopy(path) == path == pickle.loads(pickle.dumps(path))
    with pytest.raises(AttributeError):
        path[1].idx = 3
    assert paths.keystr((*path, 5, "w"), simple=True, separator="/") == "a/0/5/w"
