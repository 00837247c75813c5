"""OpenBLAS is loaded without threads of its own, which would spin beside ours, and with kernels for the processor."""

from __future__ import annotations

import os
from types import SimpleNamespace

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


@pytest.mark.parametrize("cpu, asked, core", [
    ("znver4", None, "ZEN"), ("znver4", "HASWELL", "HASWELL"), ("znver5", None, None), ("znver5", "ZEN", "ZEN"),
])  # fmt: skip
def test_kernels_are_chosen_by_the_processor_unless_users_do(
    cpu: str, asked: str | None, core: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openblas, "host", lambda: SimpleNamespace(cpu=cpu))
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    if asked is not None:
        monkeypatch.setenv("OPENBLAS_CORETYPE", asked)
    assert openblas._settings().get("OPENBLAS_CORETYPE") == core


def test_loading_leaves_the_environment_as_it_was() -> None:
    program = """
        import os
        from polyax_cpu.libraries import openblas
        before = dict(os.environ)
        openblas._settings = lambda: {"OPENBLAS_CORETYPE": "HASWELL", "OPENBLAS_NUM_THREADS": "1"}
        name = openblas._openblas().scipy_openblas_get_corename
        name.restype = openblas.ctypes.c_char_p
        print(name().decode(), dict(os.environ) == before)
    """
    assert output(program).split() == ["Haswell", "True"]
