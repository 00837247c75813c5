"""Who may import whom: the layers of the core, the order of the distributions, and no cycles anywhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from support.sources import Module, all_modules, functions, imports, modules, tree

LAYERS = ("ir", "trace", "ops", "transforms", "control", "runtime", "api", "library", "testing")
DISTRIBUTIONS = {
    "polyax": set(),
    "polyax_kernels": {"polyax"},
    "polyax_fusion": {"polyax", "polyax_kernels"},
    "polyax_inspect": {"polyax", "polyax_kernels"},
    "polyax_hello_c": {"polyax", "polyax_kernels"},
    "polyax_cpu": {"polyax", "polyax_kernels"},
    "polyax_opencl": {"polyax", "polyax_kernels"},
    "polyax_cuda": {"polyax", "polyax_kernels"},
}
UPWARD = {
    "install_eval_trace": ("polyax.trace.context", "polyax.runtime.dispatch"),
    "install_operators": ("polyax.trace.operators", "polyax.numpy"),
}
"""The two references that point upward: data set once at import, by their one caller."""


def layer(name: str) -> int | None:
    """The row of a core module; None for the package, its command line and `test_util`, which stand outside."""
    parts = name.split(".")
    if len(parts) == 1 or parts[1] in ("__main__", "commands", "test_util"):
        return None
    return LAYERS.index(parts[1] if parts[1] in LAYERS else "library")


@pytest.mark.parametrize("module", modules("polyax"), ids=str)
def test_core_modules_import_downwards(module: Module) -> None:
    mine = layer(module.name)
    if mine is None:
        return
    upward = {n for n in imports(module) if n.startswith("polyax.") and (layer(n) or 0) > mine}
    assert not upward, f"{module} is in layer {LAYERS[mine]} and imports {', '.join(sorted(upward))} from above"
    assert "polyax" not in imports(module), f"{module} imports the package that holds it"


@pytest.mark.parametrize("module", all_modules(), ids=str)
def test_distributions_import_in_one_direction(module: Module) -> None:
    package = module.name.split(".")[0]
    others = {n.split(".")[0] for n in imports(module)} - {package}
    assert others <= DISTRIBUTIONS[package], f"{module} imports {others - DISTRIBUTIONS[package]}"


def test_no_cycles() -> None:
    graph = {m.name: {n for n in imports(m) if n != "polyax"} for m in all_modules() if m.name != "polyax"}
    cycle = find_cycle(graph)
    assert cycle is None, "a cycle of imports: " + " -> ".join(cycle or ())


def find_cycle(graph: dict[str, set[str]]) -> list[str] | None:
    """Removes modules that import nothing more until none is left; what stays holds a cycle."""
    left = {name: set(targets) & graph.keys() for name, targets in graph.items()}
    while free := [name for name, targets in left.items() if not targets]:
        for name in free:
            del left[name]
        for targets in left.values():
            targets.difference_update(free)
    return walk_cycle(left) if left else None


def walk_cycle(graph: dict[str, set[str]]) -> list[str]:
    path = [min(graph)]
    while (following := min(graph[path[-1]])) not in path:
        path.append(following)
    return [*path[path.index(following) :], following]


def test_find_cycle_finds_one() -> None:
    assert find_cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert find_cycle({"a": {"b"}, "b": set()}) is None


def calls(module: Module, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Call) and name == getattr(node.func, "id", getattr(node.func, "attr", None)):
            yield node


@pytest.mark.parametrize("name", UPWARD)
def test_exactly_two_references_point_upward(name: str) -> None:
    owner, caller = UPWARD[name]
    assert [m.name for m in modules("polyax") if name in {f.name for f in functions(m)}] == [owner]
    callers = [m.name for m in all_modules() for _ in calls(m, name)]
    assert len(callers) == 1 and callers[0].startswith(caller), f"{name} is called by {callers}"
