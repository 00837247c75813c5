"""What a trace costs: programs without one and under one, by turns.

    POLYAX_PLATFORMS=cpu python benchmarks/tracing.py [-k WORD]

Microseconds of a call, the least of several rounds each.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import polyax as jax
import polyax.numpy as jnp
from polyax import profiler

ROUNDS, SECONDS, WARM = 9, 0.08, 30
RANDOM = np.random.default_rng(0)

Work = Callable[[], object]


def training(sizes: Sequence[int], batch: int) -> Work:
    """Steps of a perceptron."""
    draw = lambda *shape: jnp.asarray(RANDOM.normal(size=shape).astype(np.float32))
    inputs, labels = draw(batch, sizes[0]), jnp.asarray(RANDOM.integers(0, sizes[-1], batch))
    params = [(draw(m, n) * m**-0.5, jnp.zeros(n)) for m, n in pairwise(sizes)]

    def loss(params: Any) -> Any:
        *hidden, (w_last, b_last) = params
        x = inputs
        for w, b in hidden:
            x = jnp.tanh(x @ w + b)
        return -jax.nn.log_softmax(x @ w_last + b_last)[jnp.arange(batch), labels].mean()

    @jax.jit
    def step(params: Any) -> Any:
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))

    return lambda: jax.block_until_ready(step(params))


def scan() -> Work:
    turn = lambda carry, _: (jnp.tanh(carry @ carry * 0.01 + carry), carry.sum())
    f = jax.jit(lambda x: jax.lax.scan(turn, x, None, length=50))
    x = jnp.ones((32, 32))
    return lambda: jax.block_until_ready(f(x))


def operations(size: int) -> Work:
    """Sixty of them, one after the other, without ``jit``."""
    x = jnp.ones(size)

    def chain() -> Any:
        y = x
        for _ in range(20):
            y = jnp.sin(y) * 1.01 + x
        return y.block_until_ready()

    return chain


CASES: dict[str, Callable[[], Work]] = {
    "training 64-32-10": lambda: training([64, 32, 10], 64),
    "training 256-256-10": lambda: training([256, 256, 10], 256),
    "training 784-512-512-10": lambda: training([784, 512, 512, 10], 128),
    "scan of 50 turns": scan,
    "60 operations on 8": lambda: operations(8),
    "60 operations on 100,000": lambda: operations(100_000),
}


def seconds(work: Work, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - start) / count


def measured(work: Work) -> tuple[float, float]:
    """Seconds without and with a trace."""
    seconds(work, WARM)
    count = max(3, int(SECONDS / seconds(work, 3)))
    without, within = [], []
    for _ in range(ROUNDS):
        without.append(seconds(work, count))
        with profiler.trace(tempfile.mkdtemp()):
            work()
            within.append(seconds(work, count))
        seconds(work, WARM)
    return min(without), min(within)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", default="", help="only cases whose name holds this")
    word = parser.parse_args().k
    print(f"{'microseconds':26}{'alone':>10}{'traced':>10}{'more':>9}")
    for name, make in CASES.items():
        if word in name:
            without, within = measured(make())
            print(f"{name:26}{without * 1e6:10.1f}{within * 1e6:10.1f}{within / without - 1:9.1%}", flush=True)


if __name__ == "__main__":
    main()
