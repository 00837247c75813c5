"""Size: short functions, files that fit in a head, backends that say only what sets them apart."""

from __future__ import annotations

import statistics

import pytest

from support.sources import PACKAGES, Module, all_modules, functions, length, modules

LONGEST_FILE = 600
LONGEST_FUNCTION = 60
BACKENDS = {"polyax_hello_c": 160, "polyax_wasm": 840, "polyax_opencl": 1060, "polyax_cuda": 920, "polyax_onnx": 1410}
"""Lines that a whole backend may have. What two of them share belongs to polyax_kernels."""


@pytest.mark.parametrize("module", all_modules(), ids=str)
def test_file_length(module: Module) -> None:
    lines = len(module.text.splitlines())
    assert lines <= LONGEST_FILE, f"{module.path} has {lines} lines; split it by idea"


@pytest.mark.parametrize("package", PACKAGES)
def test_function_lengths(package: str) -> None:
    lengths = sorted(length(f) for m in modules(package) for f in functions(m))
    median, p90 = statistics.median(lengths), lengths[int(0.9 * (len(lengths) - 1))]
    assert median < 10, f"the median function of {package} has {median} lines"
    assert p90 < 30, f"a tenth of the functions of {package} have {p90} lines or more"


@pytest.mark.parametrize("module", all_modules(), ids=str)
def test_longest_function(module: Module) -> None:
    long = {f"{f.name} (line {f.lineno}): {length(f)} lines" for f in functions(module) if length(f) > LONGEST_FUNCTION}
    assert not long, f"in {module.path}: {', '.join(sorted(long))}"


@pytest.mark.parametrize("package", BACKENDS)
def test_backends_are_short(package: str) -> None:
    lines = sum(len(m.text.splitlines()) for m in modules(package))
    assert 0 < lines <= BACKENDS[package], f"{package} has {lines} lines, more than {BACKENDS[package]}"


@pytest.mark.parametrize("module", [m for m in all_modules() if m.is_package], ids=str)
def test_packages_only_reexport(module: Module) -> None:
    defined = [f.name for f in functions(module) if f.name not in ("__getattr__", "__dir__")]
    assert not defined, f"{module.path} defines {', '.join(defined)}; __init__ files only re-export"


@pytest.mark.parametrize("module", all_modules(), ids=str)
def test_modules_open_with_what_they_own(module: Module) -> None:
    assert module.text.lstrip().startswith('"""'), f"{module.path} lacks the two to four lines on what it owns"
