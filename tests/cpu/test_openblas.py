"""OpenBLAS is loaded without threads of its own, which would spin beside ours."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from polyax_cpu import plugin
from polyax_cpu.libraries import openblas
from support.process import output


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads as Linux shows them")
def test_openblas_starts_no_thread() -> None:
    program = """
        import os, sys
        from polyax_cpu.libraries import openblas
        before = len(os.listdir("/proc/self/task"))
        openblas.address("cblas_sgemm")
        print(len(os.listdir("/proc/self/task")) - before, "scipy_openblas32" in sys.modules)
    """
    assert output(program).split() == ["0", "False"]


def test_openblas_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match="pip install scipy-openblas32"):
        openblas._path()


def test_a_package_that_lacks_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Platforms open without it: programs may have no products."""
    found = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: found)
    with pytest.raises(FileNotFoundError, match="no shared library in .*; pip install --force-reinstall"):
        openblas._path()
    assert plugin._open().name == "cpu"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="looks at open files as Linux shows them")
def test_opening_the_platform_asks_for_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda file, *_: asked.append(os.readlink(f"/proc/self/fd/{file}")))
    plugin._open()
    assert asked == [str(openblas._path())]


def test_a_library_that_is_not_installed_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr(os, "posix_fadvise", lambda file, *_: asked.append(file), raising=False)
    openblas.read_ahead()
    assert not asked


def test_a_function_that_openblas_lacks() -> None:
    with pytest.raises(AttributeError, match="scipy_no_such_routine"):
        openblas.address("no_such_routine")
