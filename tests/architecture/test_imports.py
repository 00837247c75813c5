"""``import polyax`` is quick and loads no toolkit; plugin modules load none either."""

from __future__ import annotations

import pytest

from support.process import output
from support.sources import PACKAGES

TOOLKITS = (
    "concurrent.futures.process",
    "cupy",
    "importlib.metadata",
    "llvmlite",
    "matplotlib",
    "mpi4py",
    "multiprocessing",
    "nvidia",
    "onnx",
    "onnxruntime",
    "polyax_cpu",
    "polyax_cuda",
    "polyax_fusion",
    "polyax_hello_c",
    "polyax_inspect",
    "polyax_kernels",
    "polyax_onnx",
    "polyax_opencl",
    "polyax_wasm",
    "pyopencl",
    "scipy",
    "scipy_openblas32",
    "sklearn",
    "subprocess",
    "wasmtime",
)
PLUGINS = [f"{package}.plugin" for package in PACKAGES if package not in ("polyax", "polyax_kernels")]
MODULES = 387
"""What ``import polyax`` may load beside NumPy, of ours and of Python's, which has more in later versions; ``make
bench`` times it."""


def loaded_by(module: str) -> set[str]:
    program = f"""
        import sys, numpy
        before = set(sys.modules)
        import {module}
        print(*set(sys.modules) - before)
    """
    return set(output(program).split())


def test_import_loads_no_toolkit() -> None:
    assert not loaded_by("polyax") & set(TOOLKITS)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_plugin_module_loads_no_toolkit(plugin: str) -> None:
    heavy = set(TOOLKITS) - {t for t in TOOLKITS if t.startswith("polyax_")} - {"importlib.metadata"}
    assert not loaded_by(plugin) & heavy


@pytest.mark.parametrize(
    ("name", "toolkit"),
    [("cpu", "llvmlite"), ("opencl", "pyopencl"), ("cuda", "cupy"), ("onnx", "onnxruntime"), ("wasm", "wasmtime")],
)
def test_a_missing_toolkit_is_a_reason_with_a_remedy(name: str, toolkit: str) -> None:
    """Without its toolkit a plugin is imported all the same, and its probe says what to install."""
    program = f"""
        import sys
        sys.modules[{toolkit!r}] = None  # importing it fails
        from polyax.runtime.plugins.registry import registry
        registry.load({name!r})
        assert [p.status for p in registry.plugins() if p.platform == {name!r}] == ["loaded"]
        print(registry.why_unusable({name!r}))
    """
    reason = output(program)
    assert toolkit in reason and "pip install" in reason, reason


def test_import_starts_no_thread() -> None:
    assert output("import polyax, threading; print(threading.active_count())") == "1"


def test_import_loads_few_modules() -> None:
    """Parts that not every program needs load when they are first used."""
    assert len(loaded_by("polyax")) < MODULES
