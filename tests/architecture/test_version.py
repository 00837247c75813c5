"""All distributions share one version, which the file VERSION alone states."""

from __future__ import annotations

import re
import subprocess
import tomllib
from importlib.metadata import requires, version
from pathlib import Path
from typing import Any

import pytest

from support.sources import PACKAGES, ROOT

VERSION = (ROOT / "VERSION").read_text().strip()
PROJECTS = [source.parents[1] for source in PACKAGES.values()]
OWN = re.compile(r"(polyax[a-z-]*)(?:\[[a-z,]+\])?\s*(.*)")


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text())


def needed(folder: Path) -> list[str]:
    """Requirements as pyproject.toml writes them, extras' too."""
    stated = project(folder)["project"], project(folder)["tool"]["hatch"]["metadata"]["hooks"]["uv-dynamic-versioning"]
    return [
        requirement
        for table in stated
        for some in (table.get("dependencies", []), *table.get("optional-dependencies", {}).values())
        for requirement in some
    ]


@pytest.mark.parametrize("folder", PROJECTS, ids=lambda f: f.name)
def test_versions_come_from_the_file(folder: Path) -> None:
    told = project(folder)
    source = folder / told["tool"]["uv-dynamic-versioning"]["from-file"]["source"]
    assert source.resolve() == ROOT / "VERSION" and "version" in told["project"]["dynamic"]
    own = [match for match in map(OWN.fullmatch, needed(folder)) if match]
    assert all(match[2] == "=={{ version }}" for match in own), "distributions need each other in one version"


@pytest.mark.parametrize("folder", PROJECTS, ids=lambda f: f.name)
def test_what_is_installed_says_so(folder: Path) -> None:
    name = project(folder)["project"]["name"]
    assert version(name) == VERSION, f"{name} is installed as it was before VERSION changed: make env"
    own = [match for match in map(OWN.match, requires(name) or []) if match]
    assert all(match[2].split(";")[0].strip() == f"=={VERSION}" for match in own)


def test_no_other_file_states_it() -> None:
    """Beside the history, figures that say what they were measured on, and what a user's own project begins with."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = (Path(line) for line in listed.splitlines())
    code = [p for p in names if p.suffix in (".py", ".toml", ".txt", ".yml") or p.name in ("Makefile", "run")]
    said = re.compile(rf"(?:^version\s*=\s*|^__version__\s*=\s*|polyax[a-z-]*\s*==\s*)\W?{re.escape(VERSION)}", re.M)
    stating = [str(p) for p in code if "templates" not in p.parts and said.search((ROOT / p).read_text())]
    assert not stating, f"{', '.join(stating)} state the version beside VERSION"


def test_the_change_log_begins_with_it() -> None:
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert first is not None and first[1] == VERSION


@pytest.mark.parametrize("folder", PROJECTS, ids=lambda f: f.name)
def test_each_distribution_carries_the_license(folder: Path) -> None:
    """As a file: a link out of the distribution would make a source archive that nobody can unpack."""
    copy = folder / "LICENSE"
    assert not copy.is_symlink() and copy.read_text() == (ROOT / "LICENSE").read_text()
