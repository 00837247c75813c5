"""Eight threads on several platforms for as long as you like: ``make soak``, or in this folder

    python run.py --seconds 3600 --platforms cpu,opencl --plot memory.svg

Each result must have the bits that it has when it is computed alone, and memory must not grow. Prints what differed and
how memory went; exits with an error if anything did, or if it grew.
"""

from __future__ import annotations

import argparse
import gc
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tqdm import tqdm

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from soak.jobs import JOBS

import polyax as jax

THREADS = 8
SEEDS = 24
"""Each job has so many forms, whose results alone are known."""
GROWTH = 0.05
"""Memory at the end, by what it was after the first half, may be larger by this part: fragments, and new programs."""


@dataclass
class Soak:
    """What has been found so far. ``memory``: seconds, and bytes in use by the process."""

    platforms: Sequence[str]
    alone: dict[tuple[str, int, str], list[bytes]] = field(default_factory=dict)
    ran: int = 0
    failures: list[str] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)

    def run(self, seconds: float) -> None:
        for name in JOBS:
            for platform in self.platforms:
                for seed in range(SEEDS):
                    self.alone[name, seed, platform] = bits(name, seed, platform)
        end = time.monotonic() + seconds
        threads = [threading.Thread(target=self._work, args=(n, end)) for n in range(THREADS)]
        for t in threads:
            t.start()
        self._watch(seconds, end)
        for t in threads:
            t.join()

    def _work(self, n: int, end: float) -> None:
        random = Random(n)
        while time.monotonic() < end:
            what = random.choice([*JOBS]), random.randrange(SEEDS), random.choice(self.platforms)
            try:
                if bits(*what) != self.alone[what]:
                    self.failures.append(f"{what} has other bits than alone")
            except Exception as e:  # told at the end, and the others go on
                self.failures.append(f"{what}: {type(e).__name__}: {e}")
            self.ran += 1

    def _watch(self, seconds: float, end: float) -> None:
        start = time.monotonic()
        with tqdm(total=round(seconds), unit="s", disable=None) as bar:
            while (now := time.monotonic()) < end:
                self.memory.append((now - start, resident()))
                bar.set_postfix(jobs=self.ran, failures=len(self.failures), mb=self.memory[-1][1] >> 20)
                bar.update(round(now - start) - bar.n)
                time.sleep(max(0.0, min(1.0, seconds / 100, end - now)))

    def growth(self) -> float:
        """Of the smallest use in the last quarter, by that in the third."""
        third, last = np.array_split([used for _, used in self.memory], 4)[2:]
        return last.min() / third.min() - 1


def bits(name: str, seed: int, platform: str) -> list[bytes]:
    result = JOBS[name](seed, jax.devices(platform)[0])
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(result)]


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def left_over() -> int:
    """Arrays that still live though nobody has them."""
    gc.collect()
    return len(jax.live_arrays())


def plot(memory: Sequence[tuple[float, int]], path: str) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    seconds, used = zip(*memory, strict=True)
    figure, axes = pyplot.subplots(figsize=(7, 3), layout="constrained")
    axes.plot(seconds, [n / 2**20 for n in used])
    axes.set(xlabel="seconds", ylabel="MB in use", ylim=(0, None))
    figure.savefig(path)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--platforms", default="cpu,reference", help="where jobs run, in turns")
    parser.add_argument("--plot", help="an SVG of memory over time")
    options: Any = parser.parse_args(arguments)
    soak, before = Soak(options.platforms.split(",")), left_over()
    soak.run(options.seconds)
    over = left_over() - before
    print(f"{soak.ran:,} jobs of {len(JOBS)} kinds in {THREADS} threads on {', '.join(soak.platforms)}")
    print(f"{len(soak.failures)} failures, {over} arrays left over, memory {soak.growth():+.1%} in the second half")
    print(*soak.failures[:20], sep="\n")
    if options.plot:
        plot(soak.memory, options.plot)
    return int(bool(soak.failures) or over > 0 or (options.seconds >= 300 and soak.growth() > GROWTH))


if __name__ == "__main__":
    sys.exit(main())
