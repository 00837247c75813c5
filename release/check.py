"""Builds every distribution into ``dist/`` and says whether it may be published: ``make release-check``.

Wheels are made from the source archives, so that these are whole. Each archive must have the files that git knows,
and no other; ``twine check`` must pass; the core must stay small, and so must what ``pip install "polyax[cpu]"`` brings
into an empty environment. Prints tables, then what is wrong; exits with an error if anything is. The wheel of the CPU
backend gets its object code from the Python that is named, which has the backend (``release/ship.py``).
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections import Counter
from importlib.metadata import Distribution, distributions
from pathlib import Path

from projects import DIST, Project, projects, run, table

KB, MB = 1000, 1000**2
WHEEL_LIMIT = 1.4 * MB
"""Of the core, which has 1.352, and 691 modules; ``docs/support.md`` says what fills it, and why it isn't less."""
CPU_LIMIT = 273 * MB
"""Of what polyax[cpu] installs, which is 271: llvmlite has 179 MB of this, NumPy 57, OpenBLAS 27."""
MADE = {"PKG-INFO", ".gitignore"}
"""What hatch adds to source archives: the metadata, and what git ignores, that it would leave out again."""


def build(project: Project) -> None:
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, project.folder)


def differences(project: Project) -> list[str]:
    """What is missing in the archives, and what is too much."""
    wheel, source = project.archive(".whl"), project.archive(".tar.gz")
    package = f"{project.package}/"
    wanted = {name.removeprefix("src/") for name in project.tracked if name.startswith(package)}
    return [
        *_compared(wheel, {n for n in in_wheel(wheel) if ".dist-info/" not in n}, wanted),
        *_compared(source, in_source(source) - MADE, project.tracked),
    ]


def in_wheel(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


def in_source(path: Path) -> set[str]:
    """Paths below the one folder that a source archive has."""
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def _compared(path: Path, found: set[str], wanted: set[str]) -> list[str]:
    lacks = [f"{path.name} lacks {name}" for name in sorted(wanted - found)]
    return lacks + [f"{path.name} has {name}, which git doesn't know" for name in sorted(found - wanted)]


def installed(*requirements: str) -> Counter[str]:
    """Bytes of each distribution in an empty environment with nothing but these, and what they need."""
    with tempfile.TemporaryDirectory(prefix="polyax-release-") as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin/python"
        before = {d.name for d in distributions(path=[str(p) for p in Path(folder).glob("lib/*/site-packages")])}
        run(python, "-m", "pip", "install", "-q", "--no-compile", "--find-links", DIST, *requirements)
        paths = [str(p) for p in Path(folder).glob("lib/*/site-packages")]
        return Counter({d.name: _size(d) for d in distributions(path=paths) if d.name not in before})


def _size(distribution: Distribution) -> int:
    files = (Path(str(file.locate())) for file in distribution.files or ())
    return sum(file.stat().st_size for file in files if file.exists())


def main(python: str) -> int:
    shutil.rmtree(DIST, ignore_errors=True)
    everything = projects()
    for project in everything:
        build(project)
    wrong = [text for project in everything for text in differences(project)]
    print(run(python, "release/ship.py"))
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(DIST.iterdir()))
    sizes = {p: (p.archive(".whl").stat().st_size, p.archive(".tar.gz").stat().st_size) for p in everything}
    rows = [(p.name, len(in_wheel(p.archive(".whl"))), w // KB, s // KB) for p, (w, s) in sizes.items()]
    print(table(("distribution", "files", "wheel kB", "source kB"), rows))
    if sizes[everything[0]][0] > WHEEL_LIMIT:
        wrong.append(f"the wheel of the core is larger than {WHEEL_LIMIT / MB} MB")
    cpu = installed("polyax[cpu]")
    print("", table(("polyax[cpu] installs", "kB"), [(name, size // KB) for name, size in cpu.most_common()]), sep="\n")
    print(f"{cpu.total() / MB:.0f} MB in all, at most {CPU_LIMIT / MB:.0f}")
    if cpu.total() > CPU_LIMIT:
        wrong.append(f"polyax[cpu] installs more than {CPU_LIMIT / MB:.0f} MB")
    print("", *(wrong or ["nothing is wrong"]), sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
