"""Random programs give the same under each transformation on each platform; failures are told as small programs."""

from __future__ import annotations

import pytest
from fuzz.checks import checks_of, measured
from fuzz.programs import Program
from fuzz.search import examine

import polyax as jax

BLOCK = 20
"""Programs in one test."""
SEEDS = {"reference": range(0, 800, BLOCK), "cpu": range(1000, 1200, BLOCK), "opencl": range(2000, 2020, BLOCK)}
"""Most programs run where nothing is compiled."""
BLOCKS = [(name, first) for name, seeds in SEEDS.items() for first in seeds]


@pytest.mark.parametrize(("name", "first"), BLOCKS)
def test_random_programs(name: str, first: int) -> None:
    """Each program by two of its checks in turn, where nothing is compiled; else by one."""
    for seed in range(first, first + BLOCK):
        case = Program(seed, jax, steps=6, depth=2)
        checks = checks_of(case)
        for n in (seed, seed // 2 + 1) if name == "reference" else (seed,):
            examine(case, checks[n % len(checks)], name)


@pytest.mark.parametrize("first", range(5000, 5100, BLOCK))
def test_tangents_of_smooth_programs_are_differences(first: int) -> None:
    with jax.enable_x64(True):
        for seed in range(first, first + BLOCK):
            case = Program(seed, jax, steps=6, depth=2, smooth=True, dtype="float64")
            if case.forward:
                examine(case, measured, "reference")
