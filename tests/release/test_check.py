"""What archives may hold, and what an environment with ``polyax[cpu]`` may weigh."""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.sources import PACKAGES


@pytest.fixture
def check(script: Callable[[str], Any]) -> Any:
    return script("check")


@pytest.fixture
def projects(script: Callable[[str], Any]) -> Any:
    return script("projects")


def archives(folder: Path, wheel: list[str], source: list[str]) -> None:
    with zipfile.ZipFile(folder / "it-1-py3-none-any.whl", "w") as archive:
        for name in [*wheel, "it-1.dist-info/METADATA"]:
            archive.writestr(name, "")
    with tarfile.open(folder / "it-1.tar.gz", "w:gz") as archive:
        for name in source:
            archive.addfile(tarfile.TarInfo(f"it-1/{name}"), io.BytesIO())


@pytest.fixture
def project(check: Any, projects: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A distribution with one package of two files."""
    for module in (check, projects):
        monkeypatch.setattr(module, "DIST", tmp_path)
    tracked = {"pyproject.toml", "src/it/__init__.py", "src/it/part.py"}
    monkeypatch.setattr(projects.Project, "tracked", property(lambda self: tracked))
    return projects.Project(tmp_path, "it", "src/it")


def test_whole_archives_pass(check: Any, project: Any, tmp_path: Path) -> None:
    archives(tmp_path, ["it/__init__.py", "it/part.py"], [*project.tracked, "PKG-INFO"])
    assert check.differences(project) == []


def test_what_is_missing_or_too_much_is_told(check: Any, project: Any, tmp_path: Path) -> None:
    archives(tmp_path, ["it/__init__.py", "it/__pycache__/part.pyc"], [*project.tracked, "notes.txt"])
    assert check.differences(project) == [
        "it-1-py3-none-any.whl lacks it/part.py",
        "it-1-py3-none-any.whl has it/__pycache__/part.pyc, which git doesn't know",
        "it-1.tar.gz has notes.txt, which git doesn't know",
    ]


def test_every_distribution_is_checked(projects: Any) -> None:
    found = {project.folder / project.package for project in projects.projects()}
    assert found == set(PACKAGES.values()) and projects.projects()[0].name == "polyax"


def test_a_failing_command_ends_with_its_words(projects: Any) -> None:
    with pytest.raises(SystemExit, match=r"(?s)failed:.*no such thing"):
        projects.run(sys.executable, "-c", "import sys; sys.exit('no such thing')")


def test_numbers_stand_at_the_right(projects: Any) -> None:
    assert projects.table(("name", "kB"), [("a", 1), ("long one", 1234)]).splitlines() == [
        "name         kB",
        "a             1",
        "long one  1,234",
    ]
