"""The repository's own source files, their imports and functions, read with ``ast``: nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "polyax": ROOT / "core/src/polyax",
    "polyax_kernels": ROOT / "plugins/kernels/src/polyax_kernels",
    "polyax_fusion": ROOT / "plugins/fusion/src/polyax_fusion",
    "polyax_inspect": ROOT / "plugins/inspect/src/polyax_inspect",
    "polyax_mpi": ROOT / "plugins/mpi/src/polyax_mpi",
    "polyax_conformance": ROOT / "plugins/conformance/src/polyax_conformance",
    "polyax_hello_c": ROOT / "plugins/hello_c/src/polyax_hello_c",
    "polyax_onnx": ROOT / "plugins/onnx/src/polyax_onnx",
    "polyax_wasm": ROOT / "plugins/wasm/src/polyax_wasm",
    "polyax_cpu": ROOT / "backends_cpu/src/polyax_cpu",
    "polyax_opencl": ROOT / "backends_opencl/src/polyax_opencl",
    "polyax_cuda": ROOT / "backends_cuda/src/polyax_cuda",
}


TEMPLATES = PACKAGES["polyax_conformance"] / "templates"
"""Files that become other people's projects: none of them is a module here."""


@dataclass(frozen=True)
class Module:
    name: str
    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text()

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    def __str__(self) -> str:
        return self.name


@cache
def modules(package: str) -> tuple[Module, ...]:
    root = PACKAGES[package]
    files = [p for p in sorted(root.rglob("*.py")) if not p.is_relative_to(TEMPLATES)]
    return tuple(Module(module_name(package, p.relative_to(root)), p) for p in files)


@cache
def all_modules() -> tuple[Module, ...]:
    return tuple(m for package in PACKAGES for m in modules(package))


def module_name(package: str, path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts)))


@cache
def tree(module: Module) -> ast.Module:
    return ast.parse(module.text)


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (n for n in ast.walk(tree(module)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def length(node: ast.AST) -> int:
    """Lines of code of a function: its docstring, which is for readers, doesn't count."""
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    documented = ast.get_docstring(node, clean=False)
    whole = (node.end_lineno or node.lineno) - node.lineno + 1
    return whole - (len(documented.splitlines()) if documented else 0)


@cache
def imports(module: Module) -> frozenset[str]:
    """Names of the workspace's modules that ``module`` imports, also inside functions and for types alone."""
    known = {m.name for m in all_modules()}
    found = {name for node in ast.walk(tree(module)) for name in _imported(node, module, known)}
    return frozenset(found - {module.name})


def _imported(node: ast.AST, module: Module, known: set[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (a.name for a in node.names if a.name in known)
    elif isinstance(node, ast.ImportFrom):
        base = _absolute(node, module)
        for alias in node.names:
            full = f"{base}.{alias.name}"
            if full in known:
                yield full
            elif base in known:
                yield base


def _absolute(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    up = node.level - (1 if module.is_package else 0)
    parts = module.name.split(".")
    return ".".join(parts[: len(parts) - up] + ([node.module] if node.module else []))
