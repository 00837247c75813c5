"""Installs the checkout with each extra into empty environments, by pip and by uv, and asks it what it can do.

``make extras`` runs both documented commands: ``pip install --find-links dist "./core[EXTRA]"`` with the wheels that
``make wheels`` left in ``dist/``, and ``uv sync --extra EXTRA`` in a copy of the workspace. Prints what each answered;
exits with an error if an installation couldn't be made, or answers what it shouldn't.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

from projects import DIST, ROOT, run, table

QUESTIONS = {
    "cpu": "import polyax as p; print(p.devices()[0].platform, p.jit(lambda x: p.numpy.sin(x).sum())(p.numpy.ones(3)))",
    "opencl": "import polyax as p; print(p.devices('opencl'))",
    "cuda": "import polyax as p; print(p.devices('cuda'))",
    "mpi": "import polyax as p; p.distributed.initialize(); print(p.process_count(), 'process')",
    "inspect": "import polyax as p; print(type(p.draw(lambda x: p.numpy.sin(x) + 1)(1.0)).__name__)",
    "wasm": "import polyax as p; print(p.devices('wasm'))",
}
ANSWERS = {
    "cpu": ("cpu 2.52",),
    "opencl": ("OpenclDevice", "no OpenCL platform"),
    "cuda": ("CudaDevice", "no NVIDIA driver"),
    "mpi": ("1 process",),
    "inspect": ("Drawing",),
    "wasm": ("WasmDevice",),
}
"""What must stand in the answer; of devices that a machine may lack, also what is said then."""


def by_pip(extra: str, folder: Path) -> Path:
    venv.create(folder / "env", with_pip=True)
    python = folder / "env/bin/python"
    run(python, "-m", "pip", "install", "-q", "--find-links", DIST, f"./core[{extra}]")
    return python


def by_uv(extra: str, folder: Path) -> Path:
    """In a copy of what git knows, so that neither environment nor lock of the checkout plays a part."""
    for name in filter(None, run("git", "ls-files", "-z").split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    run("uv", "sync", "--quiet", "--extra", extra, folder=folder)
    return folder / ".venv/bin/python"


WAYS: dict[str, Callable[[str, Path], Path]] = {"pip": by_pip, "uv": by_uv}


def answer(python: Path, extra: str) -> str:
    """The line with what was asked for; the last one that the installation prints or fails with, if there is none."""
    words = [str(python), "-W", "ignore", "-c", QUESTIONS[extra]]
    own = {k: v for k, v in os.environ.items() if not k.startswith(("POLYAX_", "PYTHON"))}
    done = subprocess.run(words, cwd=python.parent, env=own, capture_output=True, text=True)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return next((line for line in lines if any(text in line for text in ANSWERS[extra])), lines[-1])


def tried(way: str, extra: str) -> tuple[str, str, str, str]:
    """A line of the table; its last cell is empty if all is well."""
    with tempfile.TemporaryDirectory(prefix="polyax-extra-") as folder:
        said = answer(WAYS[way](extra, Path(folder)), extra)
    wrong = "" if any(text in said for text in ANSWERS[extra]) else "WRONG"
    return way, extra, said if len(said) < 90 else f"{said[:87]}...", wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extras", nargs="*", help="which of them; all, if none is named")
    parser.add_argument("--by", choices=WAYS, action="append", help="pip or uv; both, if neither is named")
    options = parser.parse_args()
    rows = [tried(way, extra) for way in options.by or WAYS for extra in options.extras or QUESTIONS]
    print(table(("by", "extra", "answers", ""), rows))
    return int(any(row[-1] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
