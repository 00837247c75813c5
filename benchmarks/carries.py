"""Scans with many scalar carries, and their gradients: the time per carry and step should stay level.

    python benchmarks/carries.py [--module MODULE] [--counts 20,40,80,200] [--length N]

Prints nanoseconds per carry and step (the least of several runs), and what the first call took.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

COUNTS = (20, 40, 80, 200)
RUNS = 7


def coupled(m: Any, count: int, length: int) -> Callable[[Any], Any]:
    """The sum of ``count`` carries, each of which depends on its neighbour, after ``length`` steps."""

    def body(c: tuple[Any, ...], x: Any) -> tuple[tuple[Any, ...], None]:
        return tuple(0.9 * a + 0.1 * m.numpy.sin(b) * x for a, b in zip(c, c[1:] + c[:1], strict=True)), None

    def f(start: Any) -> Any:
        xs = m.numpy.linspace(0.0, 1.0, length)
        carry, _ = m.lax.scan(body, tuple(start[k] for k in range(count)), xs)
        return sum(carry)

    return f


def measure(m: Any, f: Callable[[Any], Any], count: int) -> tuple[float, float]:
    """Seconds of the first call, and of a later one."""
    x = m.numpy.asarray(np.linspace(0.1, 1.0, count, dtype=np.float32))
    compiled = m.jit(f)

    def once() -> float:
        began = time.perf_counter()
        m.block_until_ready(compiled(x))
        return time.perf_counter() - began

    first = once()
    return first, min(once() for _ in range(RUNS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default="polyax")
    parser.add_argument("--counts", default=",".join(map(str, COUNTS)))
    parser.add_argument("--length", type=int, default=1000)
    options = parser.parse_args()
    m = importlib.import_module(options.module)
    importlib.import_module(f"{options.module}.numpy")
    print(f"{'carries':>8}  {'forward':>10}  {'first':>9}  {'gradient':>10}  {'first':>9}")
    for count in map(int, options.counts.split(",")):
        f = coupled(m, count, options.length)
        cells = []
        for g in (f, m.grad(f)):
            first, later = measure(m, g, count)
            cells.append(f"{1e9 * later / count / options.length:7.2f} ns  {first:7.2f} s")
        print(f"{count:8}  {'  '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
