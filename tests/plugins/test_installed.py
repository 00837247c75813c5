"""Entry points are found as ``importlib.metadata`` finds them, which isn't loaded for what lies in folders."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import zipfile
from pathlib import Path

import pytest

from polyax.runtime.plugins.installed import EntryPoint, entry_points
from support import distributions
from support.process import output

SOURCE = "value = 3"


def told(group: str) -> set[EntryPoint]:
    """What ``importlib.metadata`` says."""
    found = importlib.metadata.distributions()
    points = [(p, d) for d in found for p in d.entry_points.select(group=group)]
    return {EntryPoint(p.name, p.value, d.name, d.version) for p, d in points}


@pytest.mark.parametrize("group", ["polyax", "pytest11", "console_scripts"])
def test_this_environment(group: str) -> None:
    assert set(entry_points(group)) == told(group) != set()


def test_devices_are_found_without_metadata() -> None:
    program = """
        import sys
        import polyax
        polyax.devices()
        print(*{"email", "importlib.metadata", "socket"} & set(sys.modules))
    """
    assert output(program, POLYAX_PLATFORMS="cpu") == ""


def test_a_distribution_in_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributions.make(tmp_path, "polyax-packed", SOURCE, entry="packed", version="2.5")
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(tmp_path.rglob("*")):
            if path != archive:
                file.write(path, path.relative_to(tmp_path))
    monkeypatch.setattr(sys, "path", [str(archive), *sys.path])
    (point,) = [p for p in entry_points("polyax") if p.name == "packed"]
    assert point == EntryPoint("packed", "polyax_packed", "polyax-packed", "2.5")
    assert point.load().value == 3


def test_a_finder_of_its_own_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributions.make(tmp_path, "polyax-hidden", SOURCE, entry="hidden")

    class Finder:
        @staticmethod
        def find_spec(*_: object) -> None: ...
        @staticmethod
        def find_distributions(_: object) -> object:
            return [importlib.metadata.PathDistribution(tmp_path / "polyax_hidden-1.0.dist-info")]

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert "hidden" in {p.name for p in entry_points("polyax")}


def test_forms_of_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments, other groups, extras, attributes; folders that aren't there; information of other installers."""
    distributions.make(tmp_path, "polyax-forms", "class A:\n    b = 7", entry="forms")
    old = tmp_path / "polyax_forms-1.0.dist-info"
    new = old.rename(tmp_path / "polyax_forms.egg-info")
    (new / "METADATA").rename(new / "PKG-INFO")
    lines = "# ours\n[other]\nx = y\n\n[polyax]\n # not this = one\nforms.b=polyax_forms:A.b [extra]\n[last]\nz = w\n"
    (new / "entry_points.txt").write_text(lines)
    monkeypatch.setattr(sys, "path", [os.fspath(tmp_path), os.fspath(tmp_path / "missing"), *sys.path])
    (point,) = [p for p in entry_points("polyax") if p.name.startswith("forms")]
    assert point == EntryPoint("forms.b", "polyax_forms:A.b [extra]", "polyax-forms", "1.0")
    assert point.load() == 7
