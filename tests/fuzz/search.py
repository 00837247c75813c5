"""Looking for programs that fail: ``python search.py --seconds 3600 --seed 7`` in this folder, or ``make fuzz``.

Prints each failure as a small program, and exits with an error if there was one.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from random import Random

from tqdm import tqdm

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.checks import Check, checks_of, measured
from fuzz.programs import Case, Program
from fuzz.shrink import shrunk

import polyax as jax

PLATFORMS = ("reference", "reference", "cpu", "cpu", "cpu", "opencl")
"""Where programs are tried, each as often as it is listed."""


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
        examine(case, check, random.choice(platforms))


def installed() -> list[str]:
    known = {device.platform for device in jax.devices()}
    for name in set(PLATFORMS) - known:
        try:
            known |= {device.platform for device in jax.devices(name)}
        except RuntimeError:
            print(f"{name} isn't installed here")
    return [name for name in PLATFORMS if name in known]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to look")
    parser.add_argument("--seed", type=int, default=None, help="of the first program; by default another each time")
    options = parser.parse_args()
    first = options.seed if options.seed is not None else time.time_ns() % 10**9
    jax.config.update("device", "reference")  # programs are written there
    platforms, failures, end = installed(), 0, time.monotonic() + options.seconds
    with tqdm(total=round(options.seconds), unit="s", desc=f"from seed {first}") as bar:
        seed = first
        while time.monotonic() < end:
            try:
                attempt(seed, platforms)
            except Exception as e:
                failures += 1
                tqdm.write("\n".join([f"--- seed {seed}", str(e), *getattr(e, "__notes__", [])]))
            seed += 1
            bar.set_postfix(programs=seed - first, failures=failures, refresh=False)
            bar.update(round(options.seconds - max(0.0, end - time.monotonic())) - bar.n)
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
