"""``new-backend``, ``new-lowering`` and ``new-fuser``: what they write installs, passes its own tests, and is clean."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("polyax_conformance")

from polyax.__main__ import main
from polyax.backend import API, UsageError
from polyax.runtime.plugins.versions import why_not_for
from polyax_conformance.authoring import BACKENDS, PARTS, TEMPLATES, new_backend, new_part

KINDS = [f"backend {kind}" for kind in BACKENDS] + list(PARTS)
NEEDED = {"backend gpu": ["cc"]}
FILLED = Path(__file__).parent / "filled"
EXPLAINED = "import polyax; print(polyax.explain(polyax.numpy.exp)(polyax.numpy.ones(3)).report.kernels[0].source)"


def make(kind: str, name: str, folder: Path) -> Path:
    what, _, kind = kind.partition(" ")
    return new_backend(name, kind, folder) if kind else new_part(name, what, folder)


def ran(*command: str, cwd: Path, **environment: str) -> str:
    """What a command prints; it must end well."""
    done = subprocess.run(command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def installed(project: Path, site: Path) -> str:
    """The PYTHONPATH with which it is found."""
    install = ("pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index")
    ran(sys.executable, "-m", *install, "--target", str(site), str(project), cwd=site.parent)
    return os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_installs_and_passes(kind: str, tmp_path: Path) -> None:
    """Its own tests grade it: two levels of the suite, and, of parts, the checks for their kind."""
    if missing := [tool for tool in NEEDED.get(kind, ()) if shutil.which(tool) is None]:
        pytest.skip(f"needs {missing[0]}")
    project = make(kind, "my_own", tmp_path)
    path = installed(project, tmp_path / "site")
    told = ran(sys.executable, "-m", "pytest", "-q", cwd=project, PYTHONPATH=path, PYTEST_ADDOPTS="")
    assert re.search(r"\d passed", told) and "skipped" not in told
    assert "polyax-my-own" in ran(sys.executable, "-m", "polyax", "info", cwd=tmp_path, PYTHONPATH=path)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs cc")
def test_with_its_emitter_filled_in_it_computes_in_the_language(tmp_path: Path) -> None:
    """``benchmarks/authors.py --level 3`` grades the rest."""
    project = new_backend("my_own", "host", tmp_path)
    for file in FILLED.glob("*.py"):
        shutil.copy(file, project / "src/polyax_my_own")
    path = installed(project, tmp_path / "site")
    told = ran(sys.executable, "-c", EXPLAINED, cwd=tmp_path, PYTHONPATH=path, POLYAX_PLATFORMS="my_own")
    assert "void kernel(void **buffers" in told
    for level in ("0", "1"):
        ran(sys.executable, "-m", "polyax", "check", "my_own", "--level", level, cwd=tmp_path, PYTHONPATH=path)


@pytest.mark.parametrize("name", ["x", "a_long_name_for_a_plugin"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_clean(kind: str, name: str, tmp_path: Path) -> None:
    pytest.importorskip("ruff")
    project = make(kind, name, tmp_path)
    for arguments in (["check"], ["format", "--check"]):
        ran(sys.executable, "-m", "ruff", *arguments, "--no-cache", ".", cwd=project)
    files = [p for p in project.rglob("*") if p.is_file()]
    assert not [p for p in files if "newcomer" in str(p.relative_to(tmp_path)) + p.read_text().lower()]
    needed = {"pyproject.toml", "README.md", "gaps.toml", "ruff.toml", ".gitignore", "ci.yml", "plugin.py"}
    assert needed <= {p.name for p in files}


@pytest.mark.parametrize("kind", KINDS)
def test_the_versions_that_it_requires_are_this_one(kind: str, tmp_path: Path) -> None:
    project = make(kind, "mine", tmp_path)
    (requires,) = re.findall(r'polyax_requires = "(.*)"', (project / "src/polyax_mine/plugin.py").read_text())
    assert why_not_for(requires, API) is None
    assert tomllib.loads((project / "pyproject.toml").read_text())["project"]["name"] == "polyax-mine"


def test_templates_are_in_the_distribution() -> None:
    assert {p.name for p in TEMPLATES.iterdir() if p.is_dir()} >= {*BACKENDS, *PARTS}


# --- the commands -----------------------------------------------------------------------------------------------------


def test_commands_say_what_comes_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["new-backend", "one"], ["new-lowering", "two"], ["new-fuser", "three"]):
        assert main([*command, "--into", str(tmp_path)]) == 0
        project = tmp_path / f"polyax-{command[1]}"
        assert f"cd {project}" in capsys.readouterr().out and (project / "README.md").exists()


@pytest.mark.parametrize(
    "name, told",
    [
        ("my-chip", "'my-chip' can't be .* a plugin: take small letters, digits and single _ .* such as my_chip"),
        ("Chip", "such as chip"),
        ("3d", "such as d"),
        ("class", "can't be the name of a plugin"),
        ("", "can't be the name of a plugin"),
        ("../up", "such as up"),
        ("cpu", "the name 'cpu' is taken by a platform; choose another"),
        ("any", "is taken by a platform"),
        ("fusion", "is taken by plugin 'any.fusion' of polyax-fusion .*; choose another, or uninstall that"),
    ],
)
def test_names_that_cannot_be_had(name: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new-backend", "--into", str(tmp_path), "--", name]) == 2
    assert re.search(f"polyax new-backend: .*{told}", capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


def test_a_module_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "polyax_known.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UsageError, match="there is a module polyax_known already; choose another, or uninstall that"):
        new_part("known", "fuser", tmp_path)


def test_a_kind_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no kind 'npu' of backend; kinds are: host \(.*\); gpu \(.*\); graph \(.*\)"):
        new_backend("mine", "npu", tmp_path)


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    project = new_backend("mine", "host", tmp_path)
    (project / "README.md").write_text("my words")
    with pytest.raises(UsageError, match="polyax-mine exists already: choose another name, or another place by --into"):
        new_backend("mine", "graph", tmp_path)
    assert (project / "README.md").read_text() == "my words"
