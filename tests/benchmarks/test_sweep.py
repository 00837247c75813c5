"""The sweep's operations: each can be traced, forward and backward, at the least size that it is timed at."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from typing import Any

import pytest

import polyax as jax

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))
try:
    SWEEP: Any = importlib.import_module("sweep")
    SIDES: Any = importlib.import_module("sides")
    OPERATIONS: Any = importlib.import_module("operations.operation")
finally:
    sys.path.remove(str(BENCHMARKS))  # files there have names of packages


@pytest.mark.parametrize("name", sorted(SWEEP.every()))
def test_operation(name: str) -> None:
    operation = SWEEP.find(name)
    arrays = operation.inputs(OPERATIONS.SIZES[operation.sizes[0]])
    with jax.enable_x64("float64" in name):
        out = jax.eval_shape(lambda *a: operation.call(jax, *a), *arrays)
        assert jax.tree.leaves(out)
        if operation.gradient:
            gradient = jax.grad(lambda *a: SIDES.total(jax, operation.call(jax, *a)))
            assert jax.eval_shape(gradient, *arrays).shape == arrays[0].shape


def test_ratios_are_of_the_first_peer() -> None:
    row = {"steady": {"polyax": 1.0, "jax": 4.0, "numpy": 2.0}, "result": {"polyax": 1.0, "jax": 1.5}}
    sides = [SIDES.Side(name, "python") for name in ("polyax", "jax", "numpy")]
    assert SWEEP.ratio(row, sides) == 0.25 and not SWEEP.agree(row, sides)
    assert SWEEP.ratio(row, sides[:1]) is None


def test_the_next_side_waits_for_threads_that_look_for_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """As OpenBLAS's do after a call, here for a fifth of a second; others never end."""
    for spinning, waits in ((0.2, 0.2), (math.inf, SIDES.SPINNING)):
        clock = Clock(spinning)
        monkeypatch.setattr(SIDES, "time", clock)
        SIDES.rest()
        assert waits <= clock.now <= waits + 3 * SIDES.GLANCE


class Clock:
    """A process whose threads use a core for so long."""

    def __init__(self, spinning: float) -> None:
        self.spinning, self.now = spinning, 0.0

    def perf_counter(self) -> float:
        return self.now

    def process_time(self) -> float:
        return min(self.now, self.spinning)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
