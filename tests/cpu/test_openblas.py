"""OpenBLAS is loaded without threads of its own, which would spin beside ours."""

from __future__ import annotations

import os

import pytest

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


def test_a_function_that_openblas_lacks() -> None:
    with pytest.raises(AttributeError, match="scipy_no_such_routine"):
        openblas.address("no_such_routine")
