"""Random programs on random meshes, cut at random: each device gets its part of what one device computes."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from fuzz.checks import assert_close
from fuzz.programs import Program

import polyax as jax
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.meshes.axes import Axes
from polyax.meshes.spec import Cuts
from polyax.partition.partition import Partitioned, partition
from support.meshed import check_blocks

MESHES: tuple[Axes, ...] = (
    (("x", 1),),
    (("x", 2),),
    (("x", 4),),
    (("x", 2), ("y", 2)),
    (("x", 8),),
    (("x", 4), ("y", 2)),
    (("x", 2), ("y", 1), ("z", 3)),
    (("x", 2), ("y", 2), ("z", 2)),
)
SIZES = (1, 2, 4, 4, 6, 8, 8, 12)


def random_cuts(random: Random, shape: Sequence[int], axes: Axes) -> Cuts:
    """Each axis cuts some dimension that it divides, or none."""
    cuts: list[tuple[Any, ...]] = [()] * len(shape)
    left = list(shape)
    for name, size in random.sample(axes, len(axes)):
        fitting = [d for d, n in enumerate(left) if n and n % size == 0]
        if fitting and random.random() < 0.75:
            d = random.choice(fitting)
            left[d] //= size
            cuts[d] += (name,)
    return tuple(cuts)


@dataclass(frozen=True)
class Cutting:
    """A program, a mesh, and how arguments and results are to be cut; None for those that are open."""

    case: Program
    closed: ClosedJaxpr
    axes: Axes
    ins: tuple[Cuts | None, ...]
    outs: tuple[Cuts | None, ...]

    @staticmethod
    def of(seed: int) -> Cutting:
        random = Random(seed)
        case = Program(seed, jax, random.randint(2, 10), random.randint(0, 3), sizes=SIZES)
        closed = jax.make_jaxpr(case.run)(*case.args)
        axes = random.choice(MESHES)

        def cut(avals: Sequence[Any], open_ones: float) -> tuple[Cuts | None, ...]:
            found = [random_cuts(random, a.shape, axes) for a in avals]
            return tuple(None if random.random() < open_ones else c for c in found)

        return Cutting(case, closed, axes, cut(closed.in_avals, 0.2), cut(closed.out_avals, 0.6))

    def partitioned(self) -> Partitioned:
        return partition(self.closed, self.axes, self.ins, self.outs)

    def gathering(self, ins: Sequence[Cuts]) -> int:
        """What each device sends if all arguments are gathered."""
        sizes = dict(self.axes)
        parts = [math.prod(sizes[a] for names in c for a in names) for c in ins]
        return sum(a.nbytes // n * (n - 1) for a, n in zip(self.closed.in_avals, parts, strict=True))

    def check(self) -> Partitioned:
        found = self.partitioned()
        wanted = [np.asarray(y) for y in jax.jit(self.case.run)(*self.case.args)]
        check_blocks(found, self.axes, self.case.args, wanted, assert_close)
        return found

    def __str__(self) -> str:
        return f"{self.case}axes = {self.axes}\nins = {self.ins}\nouts = {self.outs}\n"


def sweep(seeds: range) -> tuple[int, int]:
    """The bytes that these programs move, and those that gathering all arguments would move.

    Raises:
      AssertionError: a program gives something else on a mesh, or moves more than its arguments; it is shown.
    """
    moved = gathered = 0
    for seed in seeds:
        cutting = Cutting.of(seed)
        try:
            found = cutting.check()
        except Exception as e:
            raise AssertionError(f"seed {seed}: {type(e).__name__}: {e}\n\n{cutting}") from e
        all_of_it = cutting.gathering(found.ins)
        assert found.nbytes <= all_of_it, f"seed {seed} moves more than its arguments\n\n{cutting}"
        moved += found.nbytes
        gathered += all_of_it
    return moved, gathered


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=300, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    args = parser.parse_args()
    with jax.default_device(jax.devices("reference")[0]):
        moved, gathered = sweep(range(args.seed, args.seed + args.programs))
    print(f"{args.programs} programs give on meshes what they give on one device.")
    print(f"They move {moved:,} bytes; to gather all arguments would move {gathered:,}.")


if __name__ == "__main__":
    main()
