"""Projects of ``new-backend`` that are half written: whose they are, what lacks, and what to do is said at once."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("polyax_conformance")

from polyax_conformance.authoring import new_backend
from support import distributions
from support.process import run

FIRST = "import numpy, polyax; polyax.jit(lambda x: polyax.numpy.exp(x).sum())(numpy.arange(3.0))"
WHOSE = "plugin 'half' of polyax-half 1.0"
NO_OPERATION = "method op" if sys.version_info < (3, 12) else "method 'op'"
"""As Python says it."""
LEFT_OUT = "update or uninstall polyax-half, or leave it out with POLYAX_DISABLE_PLUGINS=polyax-half"
ALL = "return [BackendSpec("


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The package of a new project, in a folder that has it as if it were installed."""
    distributions.make(tmp_path, "polyax-half", "", entry="half").joinpath("polyax_half.py").unlink()
    (tmp_path / "polyax_half-1.0.dist-info/entry_points.txt").write_text("[polyax]\nhalf = polyax_half.plugin\n")
    project = new_backend("half", "host", tmp_path)
    return (project / "src/polyax_half").rename(tmp_path / "polyax_half")


def told(package: Path) -> str:
    """What the first program of somebody who asks for the platform ends with."""
    path = os.pathsep.join([str(package.parent), os.environ.get("PYTHONPATH", "")])
    done = run(FIRST, PYTHONPATH=path, POLYAX_PLATFORMS="half")
    assert done.returncode == 1, done.stdout
    return done.stderr


@pytest.mark.parametrize(
    "file, cause",
    [
        ("plugin", "ModuleNotFoundError while importing: No module named 'polyax_half.plugin'"),
        ("backend", "ModuleNotFoundError while opening 'half': No module named 'polyax_half.backend'"),
        ("emitter", "ModuleNotFoundError while opening 'half': No module named 'polyax_half.emitter'"),
    ],
)
def test_a_module_that_is_missing(package: Path, file: str, cause: str) -> None:
    (package / f"{file}.py").unlink()
    error = told(package)
    assert cause in error and WHOSE in error and LEFT_OUT in error


@pytest.mark.parametrize(
    "file, written, instead, causes",
    [
        ("plugin", "@hookimpl\n", "", ["polyax_backends, polyax_lowerings lacks the mark @polyax.hookimpl", LEFT_OUT]),
        ("plugin", "def polyax_backends", "def polyax_backend", ["did you mean 'polyax_backends'?", LEFT_OUT]),
        (
            "plugin",
            ALL,
            "return []; [BackendSpec(",
            ["its polyax_backends gives no BackendSpec: return one of that name"],
        ),
        (
            "plugin",
            "return HalfBackend",
            "HalfBackend",
            ["the BackendSpec 'half' opened None, not a Backend", LEFT_OUT],
        ),
        ("backend", "def compile_function", "def compile_functio", ["HalfBackend with", "compile_function", LEFT_OUT]),
        ("backend", "return load", "load", ["compile_function gave None, not a", "kernel 'exp_reduce_sum'"]),
        ("emitter", "def op(", "def opp(", ["HalfEmitter with", NO_OPERATION, "was compiled for half:0"]),
    ],
    ids=["mark", "hook", "no-backend", "opens-nothing", "no-method", "no-function", "no-operation"],
)
def test_a_part_that_is_missing(package: Path, file: str, written: str, instead: str, causes: list[str]) -> None:
    path = package / f"{file}.py"
    text = path.read_text()
    assert written in text
    path.write_text(text.replace(written, instead))
    error = told(package)
    assert WHOSE in error and all(cause in error for cause in causes), error
