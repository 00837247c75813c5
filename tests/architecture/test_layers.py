"""Who may import whom: the layers of the core, the order of the distributions, and no cycles anywhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from support.sources import ROOT, Module, all_modules, functions, imports, modules, tree

ROOMS = {
    "polyax": (
        *("monitoring", "ir", "meshes", "trace", "ops", "transforms"),
        *("control.inner", "control.flow", "control.calls", "control.folds", "control", "control.refs", "partition"),
        *("runtime.contract", "reference", "engines", "runtime.debugging", "runtime.plugins"),
        *("runtime.arrays", "runtime.running", "runtime.telling"),
        *("api", "library", "testing", "door", "as_jax"),
    ),
    "polyax_kernels": (
        *("settings", "ir", "lower", "passes", "plan", "emit"),
        *("run", "pipeline", "backend", "host", "gpu", "api"),
    ),
}
"""The rooms of a house, bottom to top: a module imports from its own room and from those before it."""
STANDING_OUTSIDE = ("__main__", "commands", "test_util")
DISTRIBUTIONS = {
    "polyax": set(),
    "polyax_kernels": {"polyax"},
    "polyax_fusion": {"polyax", "polyax_kernels"},
    "polyax_inspect": {"polyax", "polyax_kernels"},
    "polyax_mpi": {"polyax"},
    "polyax_conformance": {"polyax", "polyax_kernels"},
    "polyax_hello_c": {"polyax", "polyax_kernels"},
    "polyax_onnx": {"polyax"},
    "polyax_wasm": {"polyax", "polyax_kernels"},
    "polyax_cpu": {"polyax", "polyax_kernels"},
    "polyax_opencl": {"polyax", "polyax_kernels"},
    "polyax_cuda": {"polyax", "polyax_kernels"},
}
UPWARD = {
    "install_eval_trace": ("polyax.trace.context", "polyax.runtime.running.dispatch"),
    "install_operators": ("polyax.trace.operators", "polyax.numpy"),
}
"""The two references that point upward: data set once at import, by their one caller."""


def room(name: str) -> int | None:
    """The row of a module among the rooms of its house; None for the house itself and what stands outside."""
    house, _, inside = name.partition(".")
    if not inside or inside in STANDING_OUTSIDE:
        return None
    rooms = ROOMS[house]
    holding = [r for r in rooms if f"{inside}.".startswith(f"{r}.")]
    if not holding and "library" not in rooms:
        raise AssertionError(f"{name} is in no room of {house}")
    return rooms.index(max(holding, key=len, default="library"))


@pytest.mark.parametrize("module", [m for house in ROOMS for m in modules(house)], ids=str)
def test_rooms_import_downwards(module: Module) -> None:
    mine, (house, _, _) = room(module.name), module.name.partition(".")
    if mine is None or module.is_package:
        return
    upward = {n for n in imports(module) if n.startswith(f"{house}.") and (room(n) or 0) > mine}
    assert not upward, f"{module} is in room {ROOMS[house][mine]} and imports {', '.join(sorted(upward))} from above"
    assert house not in imports(module), f"{module} imports the package that holds it"


@pytest.mark.parametrize("module", all_modules(), ids=str)
def test_distributions_import_in_one_direction(module: Module) -> None:
    package = module.name.split(".")[0]
    others = {n.split(".")[0] for n in imports(module)} - {package}
    assert others <= DISTRIBUTIONS[package], f"{module} imports {others - DISTRIBUTIONS[package]}"


def test_the_library_calls_lax_with_python_scalars_of_any_dtype() -> None:
    """By ``lenient``: ``lax`` itself refuses ``lax.mul(x, 0.5)`` of a half-precision ``x``, as JAX's does."""
    library = [m for m in modules("polyax") if ROOMS["polyax"][room(m.name) or 0] == "library"]
    strict = [m.name for m in library if "polyax.lax" in imports(m)]
    assert set(strict) <= {"polyax.boundaries", "polyax.extend.core.primitives", "polyax.lax.lenient"}


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


@pytest.mark.parametrize("house", ROOMS)
def test_the_page_on_architecture_lists_the_rooms(house: str) -> None:
    """In their order."""
    text = (ROOT / "docs/architecture.md").read_text()
    table = re.search(rf"`{house}`:\n\n(.*?)\n\n", text, re.DOTALL)
    assert table is not None
    rows = re.findall(r"^\| `?([\w/.]+)`? \| ", table[1], re.MULTILINE)
    assert [row.removesuffix(".py").replace("/", ".") for row in rows if row != "room"] == list(ROOMS[house])
