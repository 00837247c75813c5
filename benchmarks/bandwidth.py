"""How fast kernels go over arrays that are larger than the caches, as a part of what a copy by NumPy moves.

    POLYAX_PLATFORMS=cpu python benchmarks/bandwidth.py [--megabytes 128] [--rounds 7] [-k WORD]

Each operand and each result counts once. Copy and kernel take turns, and the best turn of each counts. NumPy copies
with one thread; ``POLYAX_NUM_THREADS=1`` gives kernels one, too.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import polyax as jax
import polyax.numpy as jnp

ROW = 2048
KERNELS: dict[str, Callable[[Any], Any]] = {
    "x * 2 + 1": lambda x: x * 2 + 1,
    "exp(-x * x)": lambda x: jnp.exp(-x * x),
    "tanh": jnp.tanh,
    "log": lambda x: jnp.log(x + 9),
    "sigmoid": jax.nn.sigmoid,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
    "sum": jnp.sum,
    "row sums": lambda x: x.sum(1),
    "row maxima": lambda x: x.max(1),
    "column sums": lambda x: x.sum(0),
    "column maxima": lambda x: x.max(0),
    "softmax of rows": lambda x: jax.nn.softmax(x, 1),
    "log-sum-exp of rows": lambda x: jax.nn.logsumexp(x, 1),
    "normalised rows": lambda x: jax.nn.standardize(x, 1),
    "rows by their sums": lambda x: x / x.sum(1, keepdims=True),
}


def seconds(call: Callable[[], Any]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(kernel: Callable[[Any], Any], source: np.ndarray, rounds: int) -> tuple[float, float]:
    """Gigabytes a second that the kernel moves, and the copy."""
    program, x, target = jax.jit(kernel), jnp.asarray(source), np.empty_like(source)
    moved = source.nbytes + program(x).nbytes
    turns = [(seconds(lambda: program(x).block_until_ready()), seconds(lambda: np.copyto(target, source)))
             for _ in range(rounds)]  # fmt: skip
    kernels, copies = zip(*turns, strict=True)
    return moved / min(kernels) / 1e9, 2 * source.nbytes / min(copies) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=128, help="of the operand, float32")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("-k", default="", help="only kernels whose name has this in it")
    options = parser.parse_args()
    chosen = {name: kernel for name, kernel in KERNELS.items() if options.k in name}
    if not chosen:
        sys.exit(f"no kernel's name has {options.k!r} in it; there are {', '.join(KERNELS)}")
    source = np.random.default_rng(0).standard_normal((options.megabytes << 18) // ROW * ROW, np.float32)
    print(f"{'GB/s':22}{'kernel':>8}{'copy':>8}{'ratio':>8}")
    for name, kernel in chosen.items():
        mine, copy = measure(kernel, source.reshape(-1, ROW), options.rounds)
        print(f"{name:22}{mine:8.1f}{copy:8.1f}{mine / copy:8.2f}", flush=True)


if __name__ == "__main__":
    main()
