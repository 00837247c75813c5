"""Structures of pytrees: their methods, equality, pickles, size; and how they differ."""

from __future__ import annotations

import collections
import pickle
import re
import subprocess
import sys
import time
from typing import Any, NamedTuple

import pytest

from polyax import tree_util as tu


class Point(NamedTuple):
    x: object
    y: object


EXAMPLES = [
    1,
    None,
    (),
    {"b": 1, "a": (2, None)},
    [1, [2, (3, {"z": 4})]],
    Point(1, [2]),
    collections.OrderedDict(b=1, a=2),
    collections.defaultdict(list, {"b": 1, "a": 2}),
    tu.Partial(max, 1, key=2),
]
PRINTED = [
    "PyTreeDef(*)",
    "PyTreeDef(None)",
    "PyTreeDef(())",
    "PyTreeDef({'a': (*, None), 'b': *})",
    "PyTreeDef([*, [*, (*, {'z': *})]])",
    "PyTreeDef(CustomNode(namedtuple[Point], [*, [*]]))",
    "PyTreeDef(CustomNode(OrderedDict[('b', 'a')], [*, *]))",
    "PyTreeDef(CustomNode(defaultdict[(<class 'list'>, ('a', 'b'))], [*, *]))",
    "PyTreeDef(CustomNode(Partial[<built-in function max>], [(*,), {'key': *}]))",
]
examples = pytest.mark.parametrize("example", EXAMPLES, ids=repr)


@pytest.mark.parametrize(("example", "text"), list(zip(EXAMPLES, PRINTED, strict=True)), ids=PRINTED)
def test_printed_as_in_jax(example: Any, text: str) -> None:
    assert repr(tu.tree_structure(example)) == text


@examples
def test_taken_apart_and_put_together(example: Any) -> None:
    treedef = tu.tree_structure(example)
    again = tu.PyTreeDef.from_node_data_and_children(tu.default_registry, treedef.node_data(), treedef.children())
    assert again == treedef and hash(again) == hash(treedef)
    assert treedef.num_nodes == 1 + sum(c.num_nodes for c in treedef.children())
    assert treedef.num_leaves == len(tu.tree_leaves(example))


@examples
def test_pickles(example: Any) -> None:
    treedef = tu.tree_structure(example)
    assert pickle.loads(pickle.dumps(treedef)) == treedef


def test_root() -> None:
    assert tu.tree_structure({"b": 1, "a": 2}).node_data() == (dict, ["a", "b"])
    assert tu.tree_structure(1).node_data() is None and tu.tree_structure(1).is_leaf()
    assert tu.tree_structure((1, [2])).children() == [tu.tree_structure(0), tu.tree_structure([0])]
    assert not tu.tree_structure(None).is_leaf()


def test_structures_of_one_another() -> None:
    a, b = tu.tree_structure([0, (0, 0)]), tu.tree_structure({"a": 0, "b": None})
    composed = a.compose(b)
    assert composed == tu.tree_structure([{"a": 0, "b": None}, ({"a": 0, "b": None}, {"a": 0, "b": None})])
    assert composed.num_leaves == 3
    assert tu.treedef_tuple([a, b]) == tu.tree_structure(([0, (0, 0)], {"a": 0, "b": None}))


def test_walk_goes_from_the_leaves_up() -> None:
    out = tu.tree_structure([1, {"a": 2}]).walk(lambda xs, aux: (xs, aux), lambda x: 10 * x, [1, 2])
    assert out == ((10, ((20,), ["a"])), None)
    assert tu.tree_structure((1, 2)).walk(lambda xs, _: sum(xs), None, [3, 4]) == 7


def test_walk_asks_a_node_when_its_children_are_there() -> None:
    seen: list[Any] = []
    tree = ((1, "a"), ["b", (3, None)])
    tu.tree_structure(tree).walk(lambda xs, _: seen.append(len(xs)), seen.append, tu.tree_leaves(tree))
    assert seen == [1, "a", 2, "b", 3, 0, 2, 2, 2]


def test_one_node_counts_as_a_leaf() -> None:
    assert [tu.treedef_is_leaf(tu.tree_structure(x)) for x in (1, None, (), {}, [1])] == [True] * 4 + [False]


def test_named_tuples_that_are_registered_show_their_static_data() -> None:
    plain = collections.namedtuple("plain", "foo bar")
    own = collections.namedtuple("own", "foo bar")
    tu.register_pytree_node(own, lambda x: ((x.foo,), x.bar), lambda bar, xs: own(xs[0], bar))
    assert str(tu.tree_structure(plain(1, 2))) == "PyTreeDef(CustomNode(namedtuple[plain], [*, *]))"
    assert str(tu.tree_structure(own(1, "hi"))) == "PyTreeDef(CustomNode(own[hi], [*]))"
    assert tu.tree_structure(plain(1, 2)).node_data() == (plain, plain)
    assert tu.tree_structure(own(1, "hi")).node_data() == (own, "hi")


def test_integers_may_be_nodes() -> None:
    """What the library makes of trees for itself doesn't hold any, so results stay where they belong."""
    program = """
import polyax
import polyax.numpy as jnp
polyax.tree_util.register_pytree_node(int, lambda x: ((), x), lambda x, _: x)
step = polyax.jit(lambda r: r[...] + 1)
for _ in range(8):
    assert float(jnp.sin(1.0)) > 0.8 and float(step(polyax.new_ref(jnp.ones(())))) == 2.0
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_static_data_without_hash() -> None:
    class Box:
        pass

    tu.register_pytree_node(Box, lambda b: ((1,), {"unhashable": []}), lambda aux, xs: Box())
    treedef = tu.tree_structure(Box())
    assert hash(treedef) == hash(tu.tree_structure(Box())) and treedef == tu.tree_structure(Box())


def test_time_is_linear_in_leaves() -> None:
    def seconds(n: int) -> float:
        tree = {f"k{i}": [i, (i, None)] for i in range(n)}
        start = time.thread_time()
        leaves, treedef = tu.tree_flatten(tree)
        assert tu.tree_unflatten(treedef, leaves) == tree and len(tu.tree_leaves_with_path(tree)) == 2 * n
        tu.tree_map(lambda x, y: x, tree, tree)
        return time.thread_time() - start

    assert min(seconds(10_000) for _ in range(3)) < 40 * max(1e-3, min(seconds(1_000) for _ in range(3)))


def test_depth_is_no_concern() -> None:
    deep: Any = 1
    for _ in range(2_500):
        deep = {"a": [deep]}
    leaves, treedef = tu.tree_flatten(deep)
    again = tu.tree_structure(tu.tree_unflatten(treedef, leaves))
    assert leaves == [1] and again == treedef and hash(again) == hash(treedef) and len(repr(treedef)) > 5_000
    ((path, _),) = tu.tree_leaves_with_path(deep)
    assert len(path) == 5_000
    with pytest.raises(ValueError, match="different types at key path"):
        tu.tree_map(lambda x, y: x, deep, tu.tree_map(lambda _: [], deep) and {"a": [{"a": 3}]})


# --- differences --------------------------------------------------------------------------------------------------

MISMATCHES = [
    ({"w": [1, (2, 3)]}, {"w": [1, (2, 3, 4)]}, "tree['w'][1]", "of length 2,", "of length 3."),
    ({"w": [1, 2]}, {"w": (1, 2)}, "tree['w']", "<class 'list'>", "<class 'tuple'>."),
    ({"w": {"a": 1}}, {"w": {"b": 1}}, "tree['w']", "- ('a',)", "+ ('b',)"),
    ([1, None], [1, 2], "tree[1]", "<class 'NoneType'>", "<class 'int'>."),
    ([(1, 2)], [None], "tree[0]", "<class 'tuple'>", "<class 'NoneType'>."),
    (Point([1], 2), Point([1, 2], 2), "tree.x", "of length 1,", "of length 2."),
    (Point(1, 2), (1, 2), "tree\n", "Point'>", "<class 'tuple'>."),
    (EXAMPLES[6], collections.OrderedDict(a=1, b=2), "tree\n", "- ('b', 'a')", "+ ('a', 'b')"),
    (tu.Partial(max, 1), tu.Partial(min, 1), "tree\n", "<built-in function max>", "<built-in function min>"),
]


@pytest.mark.parametrize(("prefix", "full", "where", "ours", "theirs"), MISMATCHES, ids=[m[2] for m in MISMATCHES])
def test_both_sides_and_the_path_are_told(prefix: Any, full: Any, where: str, ours: str, theirs: str) -> None:
    with pytest.raises(ValueError, match="pytree structure error") as told:
        tu.tree_structure(prefix).flatten_up_to(full, "tree")
    text = str(told.value)
    assert where in text and ours in text and theirs in text
    errors = tu.prefix_errors(prefix, full)
    assert [str(e("tree")) for e in errors] == [text]
    assert list(tu.equality_errors(prefix, full))


def test_all_mismatches_are_told() -> None:
    errors = tu.prefix_errors({"a": [1], "b": (1, 2), "c": 3}, {"a": (1,), "b": (1, [2]), "c": [4]})
    assert len(errors) == 1 and "in_axes['a']" in str(errors[0]("in_axes"))
    errors = tu.prefix_errors([[1], (2, {"x": 0}), None], [(1,), (2, {"y": 0}), 1])
    assert [str(e("t")).splitlines()[1].strip() for e in errors] == ["t[0]", "t[1][1]", "t[2]"]
    assert tu.prefix_errors([1, (2, 3)], [{"a": 1}, (2, None)]) == []


def test_where_two_structures_differ() -> None:
    found = list(tu.equality_errors([1, {"a": 2}, (3,)], [1, {"b": 3}, (3, 4)]))
    assert [(tu.keystr(path), why) for path, _, _, why in found] == [
        ("[1]", "the pytree node metadata does not match"),
        ("[2]", "the lengths do not match"),
    ]
    assert list(tu.equality_errors([1, None], [2, None])) == []
    ((_, one, other, why),) = tu.equality_errors({"a": 1, "b": 2, "c": 3}, {"a": 1})
    assert (one, other) == ("<class 'dict'> with 3 children", "<class 'dict'> with 1 child")
    assert why == "the numbers of children do not match, with the symmetric difference of key sets: {'b' 'c'}"


def test_prefixes_are_broadcast() -> None:
    assert tu.broadcast_prefix([1, 2], [(0, 0), {"a": 0}]) == [1, 1, 2]
    assert tu.tree_broadcast([1, 2], [(0, 0), {"a": 0}]) == [(1, 1), {"a": 2}]
    assert tu.broadcast_prefix((None, 1), (0, [0, 0]), is_leaf=lambda x: x is None) == [None, 1, 1]
    with pytest.raises(ValueError, match="broadcast_prefix prefix_tree\n.* of length 2, but .* of length 1"):
        tu.broadcast_prefix([1, 2], [(0, 0)])


@tu.register_pytree_node_class
class Flattened:
    """A node whose children are the leaves of what it holds."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def tree_flatten(self) -> Any:
        return tu.tree_flatten(self.held)

    @classmethod
    def tree_unflatten(cls, treedef: Any, children: Any) -> Any:
        return cls(tu.tree_unflatten(treedef, children))


def test_transposing_nodes_that_rearrange_their_children() -> None:
    outer = tu.tree_structure(Flattened({"a": 0, "b": 0}))
    made = tu.tree_transpose(outer, tu.tree_structure([0, 0]), Flattened({"a": [1, 2], "b": [3, 4]}))
    assert [x.held for x in made] == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]


def test_transposing_something_else() -> None:
    with pytest.raises(TypeError, match=r"Mismatch\nPyTreeDef\(\[\{'a': \*\}\]\)\n != \nPyTreeDef\(\[\{'a': \*\}, "):
        tu.tree_transpose(tu.tree_structure([0, 0]), tu.tree_structure({"a": 0}), [{"a": 1}])


def test_reductions() -> None:
    assert tu.tree_reduce(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, 10) == 16
    assert tu.tree_reduce_associative(lambda x, y: (x, y), [1, 2, 3, 4, 5]) == ((1, 2), (3, (4, 5)))
    assert tu.tree_reduce_associative(max, [], identity=7) == 7
    with pytest.raises(TypeError, match="Must specify identity"):
        tu.tree_reduce_associative(max, [])
    assert tu.tree_all({"a": 1, "b": []}) and not tu.tree_all([0, 1])


@pytest.mark.parametrize(
    "tree, other, text",
    [
        ([1, 2], [7], "List arity mismatch: 1 != 2; list: [7]."),
        ((1,), [7], "Expected tuple, got [7]."),
        ({"a": 1}, {"b": 7}, "Dict key mismatch; expected keys: ['a']; present keys: ['b']."),
        ([{"a": 1}], [(7,)], "Expected dict, got (7,)."),
        (None, [2], "Expected None, got [2]."),
    ],
)
def test_flattening_up_to_says_what_it_expected(tree, other, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        tu.tree_structure(tree).flatten_up_to(other)


@pytest.mark.parametrize(
    "parts, text", [("hello", "tuple, got 'hello'"), ((7, 7), "'children' is iterable, got (7, 7)")]
)
def test_nodes_that_are_taken_apart_wrongly(parts, text):
    class Node:
        pass

    tu.register_pytree_node(Node, lambda _: parts, lambda *_: Node())
    for flatten in (tu.tree_flatten, tu.tree_flatten_with_path):
        with pytest.raises(ValueError, match=re.escape(text)):
            flatten(Node())
