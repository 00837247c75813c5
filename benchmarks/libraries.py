"""Times programs of JAX's libraries on polyax and on JAX, in turns.

    python benchmarks/libraries.py --peer-python PYTHON [-k WORD] [--rounds N] [--seconds S]

Each round starts a process of each with a new cache of kernels (JAX keeps none on disk). The programs are those of
``benchmarks/models``; what they need is installed by ``make libraries``, and PYTHON has the same libraries, and JAX.

set-up  what is done before the first step: initialising parameters, one operation at a time
first   the first step: trace, compile, run
again   the first step in a later process, with the kernels of the one before on disk, beside JAX's first
steady  a later step, with both processes alive and in turns

Times are the least of all rounds, in milliseconds; what stands behind each is its ratio to JAX's.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MODELS = HERE / "models"
PYTHON = Path(os.environ.get("POLYAX_LIBRARIES_PYTHON", HERE.parent / ".libraries" / "bin" / "python"))
COLUMNS = ("setup", "first", "again", "steady")
TURNS = 5


class Worker:
    """A process that has run the first step of a program, and waits to run more."""

    def __init__(self, python: Path, module: str, name: str, cache: str | None) -> None:
        door = ["-m", "polyax.as_jax"] if cache else []
        self._process = subprocess.Popen(
            [str(python), *door, str(MODELS), module, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if not os.environ.get("POLYAX_LIBRARIES_VERBOSE") else None,
            text=True,
            env=_environment(cache),
        )
        self.began: dict[str, float] = self._told()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def step(self, count: int = 1) -> float:
        """Seconds of a step, the mean of several."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        return self._told()

    def _told(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        raise RuntimeError((self._process.communicate()[1] or "")[-3000:])


def _environment(cache: str | None) -> dict[str, str]:
    told = {"POLYAX_PLATFORMS": "cpu", "JAX_PLATFORMS": "cpu", "PYTHONWARNINGS": "ignore"}
    told |= {"POLYAX_CACHE_DIR": cache} if cache else {"JAX_ENABLE_COMPILATION_CACHE": "0"}
    settings = ("POLYAX_CHECKS", "POLYAX_HOST_FALLBACK")  # programs run as users run them
    return {k: v for k, v in os.environ.items() if k not in settings} | told


def one_round(peer: Path, module: str, name: str, seconds: float) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds by column: ours and the peer's."""
    with tempfile.TemporaryDirectory() as cache, ExitStack() as stack:
        with Worker(PYTHON, module, name, cache) as cold:
            ours = dict(cold.began)
        theirs = stack.enter_context(Worker(peer, module, name, None))
        mine = stack.enter_context(Worker(PYTHON, module, name, cache))
        ours["again"], peers = mine.began["first"], {**theirs.began, "again": theirs.began["first"]}
        count = max(1, min(200, int(seconds / TURNS / max(theirs.step(), mine.step()))))
        turns = [(mine.step(count), theirs.step(count)) for _ in range(TURNS)]
        ours["steady"], peers["steady"] = (min(column) for column in zip(*turns, strict=True))
    return ours, peers


def measured(peer: Path, module: str, name: str, rounds: int, seconds: float) -> tuple[dict[str, float], ...]:
    """The least of each column in several rounds: ours, the peer's."""
    told = [one_round(peer, module, name, seconds) for _ in range(rounds)]
    return tuple({c: min(r[side][c] for r in told) for c in COLUMNS} for side in (0, 1))


def row(name: str, ours: dict[str, float], theirs: dict[str, float]) -> str:
    cells = (f"{1e3 * ours[c]:9.2f} {ours[c] / theirs[c]:5.2f}" for c in COLUMNS)
    return f"{name:24}" + " ".join(cells)


def summary(ratios: dict[str, dict[str, float]]) -> str:
    """The geometric means, and the worst."""
    columns = {c: [r[c] for r in ratios.values()] for c in COLUMNS}
    means = (f"{math.exp(sum(map(math.log, v)) / len(v)):15.2f}" for v in columns.values())
    worst = (f"{max(v):15.2f}" for v in columns.values())
    return f"{'geometric mean':24}{' '.join(means)}\n{'worst':24}{' '.join(worst)}"


def programs() -> list[tuple[str, str]]:
    """Modules and the names of their programs, in order."""
    found = sorted(MODELS.glob("with_*.py"))
    return [(p.stem, name) for p in found for name in re.findall(r"^@program\ndef (\w+)", p.read_text(), re.M)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", type=Path, required=True, help="a Python that has the libraries and JAX")
    parser.add_argument("-k", default="", help="only programs whose name has this word in it")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each takes its turns in a round")
    options = parser.parse_args()
    print(f"{'ms, and by JAX':24}" + " ".join(f"{c:>15}" for c in COLUMNS), flush=True)
    ratios: dict[str, dict[str, float]] = {}
    for module, name in programs():
        if options.k not in name:
            continue
        try:
            ours, theirs = measured(options.peer_python, module, name, options.rounds, options.seconds)
        except RuntimeError as e:
            print(f"{name:24}{e}", file=sys.stderr, flush=True)
            continue
        ratios[name] = {c: ours[c] / theirs[c] for c in COLUMNS}
        print(row(name, ours, theirs), flush=True)
    if ratios:
        print(summary(ratios))


if __name__ == "__main__":
    main()
