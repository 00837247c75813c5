"""Looking for programs that fail, on all cores: ``python search.py --seconds 3600`` in this folder, or ``make fuzz``.

Prints each failure as a small program, and exits with an error if there was one. What was found, and how many programs
were tried in all, is kept in a file, from which the next search goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

from tqdm import tqdm

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.checks import WHOLE, Check, checks_of, measured
from fuzz.programs import Case, Program
from fuzz.several import Crew, Tried
from fuzz.shrink import shrunk

import polyax as jax

AS_ONE = {"reference": 60.0, "cpu": 25.0, "opencl": 2.0, "hello_c": 4.0, "wasm": 4.0}
"""How often a platform gets a program that is compiled as a whole."""
IN_PIECES = {"reference": 80.0, "cpu": 12.0, "opencl": 0.2, "hello_c": 0.8, "wasm": 3.0}
"""And one whose operations are compiled one by one: compilers that take long to begin do that for each."""
KEPT = Path(__file__).parents[2] / ".fuzz/found.json"


class Failure(AssertionError):
    """A program for which a check fails; the message is a small one as text."""


def examine(case: Case, check: Check, platform: str) -> None:
    """Raises:
    Failure: the check fails.
    """
    try:
        check(case, platform)
    except Exception as e:
        small = shrunk(case, check, platform)
        raise Failure(f"{check.__name__} on {platform} fails for\n\n{small}\nwith {type(e).__name__}: {e}") from e


def attempt(seed: int, platforms: list[str]) -> None:
    """One program of any size by one of its checks."""
    random = Random(seed)
    steps, depth, smooth = random.randint(2, 14), random.randint(0, 4), random.random() < 0.2
    with jax.enable_x64(smooth):
        case = Program(seed, jax, steps, depth, smooth, "float64" if smooth else "float32")
        check = measured if smooth and case.forward else random.choice(checks_of(case))
        often = AS_ONE if check in WHOLE else IN_PIECES
        examine(case, check, random.choices(platforms, [often[name] for name in platforms])[0])


def installed() -> list[str]:
    known = {device.platform for device in jax.devices()}
    for name in AS_ONE.keys() - known:
        try:
            known |= {device.platform for device in jax.devices(name)}
        except RuntimeError:
            print(f"{name} isn't installed here")
    return [name for name in AS_ONE if name in known]


@dataclass
class Found:
    """What searches have found so far."""

    programs: int = 0
    seed: int = 0
    """Of the next program."""
    failures: dict[str, str] = field(default_factory=dict)
    """By seed."""

    @classmethod
    def read(cls, path: Path) -> Found:
        return cls(**json.loads(path.read_text())) if path.exists() else cls()

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(asdict(self), indent=1))
        os.replace(new, path)

    def add(self, tried: Tried) -> None:
        self.programs += 1
        if tried.failure is not None:
            self.failures[str(tried.seed)] = tried.failure


def prepared(seed: int, platforms: list[str]) -> None:
    """``attempt`` in a process of its own. Programs are written on the reference."""
    with jax.default_device(jax.devices("reference")[0]):
        attempt(seed, platforms)


def search(crew: Crew, found: Found, kept: Path, seconds: float, programs: float) -> int:
    """Adds to ``found``; how many failed."""
    failed, end = 0, time.monotonic() + seconds
    with tqdm(total=round(seconds), unit="s", desc=f"from seed {found.seed}") as bar:
        while (left := end - time.monotonic()) > 0 and found.programs < programs:
            for tried in crew.tried(min(left, 1.0)):
                found.add(tried)
                if tried.failure is not None:
                    failed += 1
                    tqdm.write(f"--- seed {tried.seed}\n{tried.failure}")
            bar.set_postfix(programs=f"{found.programs:,}", failures=len(found.failures), refresh=False)
            if bar.update(round(seconds - max(0.0, left)) - bar.n):
                found.seed = crew.seed
                found.write(kept)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to look")
    parser.add_argument(
        "--programs", type=float, default=float("inf"), help="how many to try, former searches included"
    )
    parser.add_argument("--seed", type=int, help="of the first program; by default where the last search ended")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: all cores)")
    parser.add_argument("--kept", type=Path, default=KEPT, metavar="FILE", help="what was found (default: %(default)s)")
    options = parser.parse_args()
    found = Found.read(options.kept)
    if options.seed is not None:
        found.seed = options.seed
    with closing(Crew(prepared, installed(), options.jobs, found.seed)) as crew:
        failed = search(crew, found, options.kept, options.seconds, options.programs)
    found.seed = crew.seed
    found.write(options.kept)
    print(f"{found.programs:,} programs so far, of which failed: {', '.join(found.failures) or 'none'}")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
