"""The distributions of this repository, as git and hatch know them."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"


@dataclass(frozen=True)
class Project:
    """One distribution: its folder, its name, and its package."""

    folder: Path
    name: str
    package: str

    @property
    def tracked(self) -> set[str]:
        """Files that git knows, as paths in the folder. What else lies there has no business in an archive."""
        return set(run("git", "ls-files", "-z", folder=self.folder).strip("\0").split("\0"))

    def archive(self, ending: str) -> Path:
        """The one in ``dist/``: of one version, since that folder is emptied before it is filled."""
        (found,) = DIST.glob(f"{self.name.replace('-', '_')}-[0-9]*{ending}")
        return found


def projects() -> list[Project]:
    """All, the core first."""
    workspace = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["workspace"]
    folders = [folder for member in workspace["members"] for folder in sorted(ROOT.glob(member))]
    return [_project(folder) for folder in folders if (folder / "pyproject.toml").exists()]


def _project(folder: Path) -> Project:
    told = tomllib.loads((folder / "pyproject.toml").read_text())
    (package,) = told["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return Project(folder, told["project"]["name"], package)


def run(*words: str | Path, folder: Path = ROOT) -> str:
    """What a command prints; ends this program with its words if it fails."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lines with columns of one width; numbers stand at the right."""
    cells = [[f"{c:,}" if isinstance(c, int) else str(c) for c in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [isinstance(c, int) for c in rows[0]]
    return "\n".join(
        "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)).rstrip()
        for row in cells
    )
