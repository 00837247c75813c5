"""A fresh author's path by the clock: from ``new-backend`` to a first computed array, and to a passed level.

``python benchmarks/authors.py [--kind host] [--level 1] [--filled FOLDER]``; nothing is fetched from a network. What is
in the folder takes the place of the project's files of the same names: ``tests/conformance/filled`` is for C.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

INSTALL = ("-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index", "--upgrade")
FIRST = "import polyax; print(polyax.jit(lambda x: polyax.numpy.exp(x).sum())(polyax.numpy.arange(3.0)))"


def timed(what: str, *arguments: str, **environment: str) -> float:
    """Seconds that Python takes for ``arguments``; ends the program if it fails."""
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=os.environ | environment, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    print(f"{what:<40}{seconds:8.1f} s", flush=True)
    return seconds


def fill_in(project: Path, filled: Path) -> None:
    for file in filled.glob("*.py"):
        shutil.copy(file, project / "src/polyax_fresh")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", default="host", choices=("host", "gpu", "graph"))
    parser.add_argument("--level", type=int, default=1)
    parser.add_argument("--filled", type=Path, help="a folder with the files that an author fills in")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site, project = str(Path(folder, "site")), Path(folder, "polyax-fresh")
        path = os.pathsep.join([site, os.environ.get("PYTHONPATH", "")])
        total = timed("new-backend", "-m", "polyax", "new-backend", "fresh", "--kind", options.kind, "--into", folder)
        total += timed("install", *INSTALL, "--target", site, str(project))
        total += timed("a first array", "-c", FIRST, PYTHONPATH=path, POLYAX_PLATFORMS="fresh")
        print(f"{'from nothing to a first array':<40}{total:8.1f} s")
        if options.filled:
            fill_in(project, options.filled)
            timed("install it with what is filled in", *INSTALL, "--target", site, str(project))
        for level in map(str, range(options.level + 1)):
            timed(f"graded on level {level}", "-m", "polyax", "check", "fresh", "--level", level, PYTHONPATH=path)


if __name__ == "__main__":
    main()
