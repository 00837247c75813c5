"""Registration of pytree nodes, in each of its forms, and functions bound to arguments."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import pytest

import polyax
from polyax import tree_util as tu


@tu.register_pytree_node_class
class Scaled:
    def __init__(self, x: Any, by: Any) -> None:
        self.x, self.by = x, by

    def tree_flatten(self) -> Any:
        return (self.x,), self.by

    @classmethod
    def tree_unflatten(cls, by: Any, children: Any) -> Scaled:
        return cls(*children, by)


@tu.register_pytree_with_keys_class
class Keyed(Scaled):
    def tree_flatten_with_keys(self) -> Any:
        return ((tu.GetAttrKey("x"), self.x),), self.by


@tu.register_dataclass
@dataclasses.dataclass
class Layer:
    w: Any
    b: Any = None
    name: str = polyax.tree.static(default="dense")
    cache: list[Any] = dataclasses.field(default_factory=list, init=False)


@tu.register_static
@dataclasses.dataclass(frozen=True)
class Setting:
    value: int


def test_class_of_its_own() -> None:
    leaves, treedef = tu.tree_flatten(Scaled([1, 2], "kilo"))
    assert leaves == [1, 2] and repr(treedef) == "PyTreeDef(CustomNode(Scaled[kilo], [[*, *]]))"
    again = treedef.unflatten([3, 4])
    assert isinstance(again, Scaled) and (again.x, again.by) == ([3, 4], "kilo")
    assert tu.keystr(tu.tree_leaves_with_path(Scaled(1, 2))[0][0]) == "[<flat index 0>]"
    assert tu.keystr(tu.tree_leaves_with_path(Keyed(1, 2))[0][0]) == ".x"


def test_children_may_be_any_iterable() -> None:
    class Bag:
        pass

    tu.register_pytree_node(Bag, lambda b: (iter([1, 2]), None), lambda aux, xs: list(xs))
    assert tu.tree_map(lambda x: x + 1, Bag()) == [2, 3]
    assert tu.tree_map(lambda x, y: x + y, Bag(), Bag()) == [2, 4]


def test_dataclass() -> None:
    layer = Layer([1, 2], name="first")
    assert [tu.keystr(p) for p, _ in tu.tree_leaves_with_path(layer)] == [".w[0]", ".w[1]"]
    assert tu.tree_map(lambda x: -x, layer) == Layer([-1, -2], name="first")
    assert tu.tree_structure(layer) != tu.tree_structure(Layer([1, 2], name="second"))
    out = polyax.grad(lambda m: m.w * m.b)(Layer(2.0, 3.0))
    assert (float(out.w), float(out.b), out.name) == (3.0, 2.0, "dense")


def test_fields_named_by_the_caller() -> None:
    @dataclasses.dataclass
    class Pair:
        x: Any
        y: Any
        note: Any = None

    with pytest.raises(ValueError, match=r"Missing fields: \{'note', 'y'\}. Add them to drop_fields .* is Pair"):
        tu.register_dataclass(Pair, ["x"], [])
    with pytest.raises(ValueError, match=r"Unexpected fields: \{'z'\}\."):
        tu.register_dataclass(Pair, ["x", "z"], ["y", "note"])
    with pytest.raises(TypeError, match="must both be specified"):
        tu.register_dataclass(Pair, ["x"])
    with pytest.raises(ValueError, match=r"data_fields and meta_fields must not overlap. Overlapping fields: \{'y'\}"):
        tu.register_dataclass(Pair, ["x", "y"], ["y", "note"])
    tu.register_dataclass(Pair, ["x"], ["y"], drop_fields=["note"])
    assert tu.tree_leaves(Pair(1, 2, 3)) == [1]
    with pytest.raises(ValueError, match="Duplicate custom dataclass PyTreeDef type registration"):
        tu.register_dataclass(Pair, ["x"], ["y"], drop_fields=["note"])


def test_a_class_that_is_no_dataclass() -> None:
    class Plain:
        def __init__(self, x: Any, n: int) -> None:
            self.x, self.n = x, n

    with pytest.raises(TypeError, match="required when nodetype is not a dataclass"):
        tu.register_dataclass(Plain)
    tu.register_dataclass(Plain, ["x"], ["n"])
    assert tu.tree_map(lambda x: x * 2, Plain(4, 1)).x == 8


def test_static_objects() -> None:
    f = polyax.jit(lambda x, s: x * s.value)
    assert f(2.0, Setting(3)).item() == 6.0 and f(2.0, Setting(4)).item() == 8.0
    assert tu.tree_leaves(Setting(1)) == []


def test_wrong_registrations() -> None:
    with pytest.raises(TypeError, match="takes a type and two functions"):
        tu.register_pytree_node(int, None, None)  # pyright: ignore
    with pytest.raises(ValueError, match="Duplicate"):
        tu.register_pytree_node(Scaled, lambda x: ((), None), lambda aux, xs: None)
    with pytest.raises(ValueError, match="Comparator raised exception while sorting pytree dictionary keys"):
        tu.tree_leaves({1: 2, "a": 3})


def test_one_level() -> None:
    assert tu.flatten_one_level({"b": 1, "a": [2]}) == ([[2], 1], ["a", "b"])
    assert tu.flatten_one_level_with_keys((5, 6))[0] == [(tu.SequenceKey(0), 5), (tu.SequenceKey(1), 6)]
    assert tu.is_tree_node(dict) and not tu.is_tree_node(int)
    with pytest.raises(ValueError, match="can't tree-flatten type: <class 'int'>"):
        tu.flatten_one_level(3)
    assert tu.default_registry.flatten_one_level(3) is None


def test_bound_functions_are_pytrees() -> None:
    scale = tu.Partial(lambda a, x: a * x, 3.0)
    assert tu.tree_leaves(scale) == [3.0]
    assert polyax.jit(lambda f, x: f(x))(scale, 2.0).item() == 6.0
    assert polyax.grad(lambda f: f(2.0))(scale).args[0].item() == 2.0


def test_a_bound_function_inside_of_a_bound_function_is_static() -> None:
    def add(x: Any, y: Any, z: Any) -> Any:
        return x, y, z

    inner = functools.partial(add, 1)
    bound = tu.Partial(inner, 2)
    assert tu.tree_leaves(bound) == [2] and bound(3) == (1, 2, 3)
    assert bound.func == inner == bound.func and bound.func.args == (1,)
    same = tu.Partial(functools.partial(add, 1), 2)
    assert tu.tree_structure(bound) == tu.tree_structure(same)
    assert tu.tree_structure(bound) != tu.tree_structure(tu.Partial(functools.partial(add, 9), 2))


def test_leaves_chosen_by_the_caller() -> None:
    tree = {"a": [1, None], "b": (2, 3)}
    assert tu.tree_leaves(tree, is_leaf=lambda x: x is None) == [1, None, 2, 3]
    assert tu.tree_leaves(tree, is_leaf=lambda x: isinstance(x, tuple)) == [1, (2, 3)]
    by_path = tu.tree_leaves_with_path(tree, lambda path, x: path == (tu.DictKey("a"),), is_leaf_takes_path=True)
    assert [x for _, x in by_path] == [[1, None], 2, 3]
    pairs, treedef = tu.tree_flatten_with_path(tree, is_leaf=lambda x: x is None)
    assert repr(treedef) == "PyTreeDef({'a': [*, *], 'b': (*, *)})" and len(pairs) == 4


def test_paths_as_text() -> None:
    ((path, _),) = tu.tree_leaves_with_path({"a": [Layer(1)]})
    assert tu.keystr(path) == "['a'][0].w" and tu.keystr(path, simple=True, separator="/") == "a/0/w"
    assert path == (tu.DictKey("a"), tu.SequenceKey(0), tu.GetAttrKey("w"))
