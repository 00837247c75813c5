"""The contract with plugins: those of this repository import what strangers may, and the little more that is listed."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from support.sources import ROOT

PUBLIC = {
    "polyax",
    "polyax.ad_checkpoint",
    "polyax.backend",
    "polyax.custom_batching",
    "polyax.custom_derivatives",
    "polyax.experimental",
    "polyax.extend",
    "polyax.lax",
    "polyax.numpy",
    "polyax.sharding",
    "polyax.tree_util",
    *(f"polyax_kernels.api{name}" for name in ("", ".lowerings", ".fusers", ".emitters", ".host", ".gpu", ".plans")),
}
PLUGINS = {
    "plugins/fusion": "it needs no more",
    "plugins/hello_c": "it is what strangers begin with",
    "plugins/wasm": "it needs no more",
    "plugins/mpi": "it needs no more",
    "plugins/onnx": "it proves that a whole-graph backend needs no more",
    "plugins/conformance": "it judges by what strangers may use",
    "plugins/inspect": "it shows what the core does, from within",
    "backends_opencl": "it needs no more",
    "backends_cuda": "its library calls have the rules of NumPy's as models",
    "examples/plugins": "they are what strangers begin with",
}
BEHIND = {
    "plugins/inspect": {
        "polyax.commands",
        "polyax.ir.pretty",
        "polyax.meshes.spec",
        "polyax.partition.partition",
        "polyax.profiler.memory",
        "polyax.profiler.sampling",
        "polyax.runtime.arrays.origins",
        "polyax.runtime.contract.text",
        "polyax.runtime.running.compiling",
        "polyax.runtime.telling.explanation",
        "polyax.runtime.telling.folded",
    },
    "backends_cuda": {"polyax.ops", "polyax.reference"},
}
"""Modules behind the contract that they import nevertheless: none comes unnoticed, none stays that isn't needed."""


def imported(folder: Path) -> set[str]:
    """The modules of polyax and its compiler that files import."""
    found: set[str] = set()
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module)
            elif isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
    return {name for name in found if name.split(".")[0] in ("polyax", "polyax_kernels")}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_plugins_import_the_contract(plugin: str) -> None:
    folder = ROOT / plugin
    behind = imported(folder / "src" if (folder / "src").exists() else folder) - PUBLIC
    assert behind == BEHIND.get(plugin, set()), f"{plugin}: {PLUGINS[plugin]}"


@pytest.mark.parametrize("name", sorted(name for name in PUBLIC if "api." in name or name == "polyax.backend"))
def test_the_contract_says_what_it_holds(name: str) -> None:
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, each) for each in module.__all__)
    assert module.__doc__


FACADE = sorted(name for name in PUBLIC if "api." in name or name == "polyax.backend")
FOR_LIBRARIES = {
    "ClosedJaxpr.map_jaxpr",
    "Backend.platform_version", "Backend.runtime_type", "Device.default_memory", "Device.host_id",
    "Primitive.call_primitive", "Primitive.get_bind_params", "Primitive.map_primitive", "ShapedArray.at_least_vspace",
    "ShapedArray.mat", "Source.name_stack",
}  # fmt: skip
"""What JAX's libraries ask of such objects, and nobody here."""


def mentioned() -> Counter[str]:
    """How often each attribute is read in any program of the repository, or named by a string or by keyword."""
    found: Counter[str] = Counter()
    folders = ["core/src", "plugins", "backends_cpu/src", "backends_cuda/src", "backends_opencl/src", "examples"]
    for file in (f for folder in folders for f in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found[node.attr] += 1
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found[node.value] += 1
    return found


def members(cls: type) -> set[str]:
    """The public methods and attributes that a class itself has, those that its instances get included."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            found.update([node.attr] if node.value.id == "self" else [])
    for node in tree.body:  # type: ignore[attr-defined]
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(target.id for target in targets if isinstance(target, ast.Name))
    return {name for name in found if not name.startswith("_")}


def test_nothing_that_the_contract_holds_is_dead() -> None:
    """Each attribute of its classes is asked for by somebody."""
    asked = mentioned()
    classes = {
        v for m in map(importlib.import_module, FACADE) for n in m.__all__ if inspect.isclass(v := getattr(m, n))
    }
    dead = {f"{cls.__name__}.{name}" for cls in classes for name in members(cls) if not asked[name]}
    assert dead == FOR_LIBRARIES
