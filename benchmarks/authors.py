"""A fresh author's path by the clock: from ``new-backend`` to a first computed array, and to level 1 of the suite.

``python benchmarks/authors.py [--kind host] [--level 1]``; nothing is fetched from a network.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

INSTALL = ("-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index")
FIRST = "import polyax; print(polyax.jit(lambda x: polyax.numpy.exp(x).sum())(polyax.numpy.arange(3.0)))"


def timed(what: str, *arguments: str, **environment: str) -> float:
    """Seconds that Python takes for ``arguments``; ends the program if it fails."""
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=os.environ | environment, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    print(f"{what:<40}{seconds:8.1f} s")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", default="host", choices=("host", "gpu", "graph"))
    parser.add_argument("--level", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site, project = str(Path(folder, "site")), str(Path(folder, "polyax-fresh"))
        path = os.pathsep.join([site, os.environ.get("PYTHONPATH", "")])
        total = timed("new-backend", "-m", "polyax", "new-backend", "fresh", "--kind", options.kind, "--into", folder)
        total += timed("install", *INSTALL, "--target", site, project)
        total += timed("a first array", "-c", FIRST, PYTHONPATH=path, POLYAX_PLATFORMS="fresh")
        print(f"{'from nothing to a first array':<40}{total:8.1f} s")
        levels = [word for n in range(options.level + 1) for word in ("--level", str(n))]
        timed(f"graded to level {options.level}", "-m", "polyax", "check", "fresh", *levels, PYTHONPATH=path)


if __name__ == "__main__":
    main()
