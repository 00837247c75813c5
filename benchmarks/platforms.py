"""The same programs on two platforms in turns, in one process: milliseconds, and their ratio.

``python benchmarks/platforms.py cpu opencl`` shows what the second takes beside the first. Each time is the best of
many, with arguments on the device and code compiled.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import polyax
import polyax.numpy as jnp

ROUNDS = 15


def sine_chain(x: Any) -> Any:
    for _ in range(10):
        x = 0.5 * x + 0.1 * jnp.sin(x)
    return x


def layer_norm(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def programs() -> Iterator[tuple[str, Callable[[Any], Any], tuple[int, ...]]]:
    """Name, function, and the shape of its argument."""
    yield "sine chain", sine_chain, (1000, 1000)
    yield "x + 1", lambda x: x + 1, (4000, 4000)
    yield "tanh", jnp.tanh, (4000, 4000)
    yield "gelu", polyax.nn.gelu, (1000, 1000)
    yield "softmax", polyax.nn.softmax, (4000, 4000)
    yield "softmax, small", polyax.nn.softmax, (64, 1000)
    yield "log-softmax", polyax.nn.log_softmax, (4000, 4000)
    yield "layer norm", layer_norm, (4000, 4000)
    yield "layer norm, gradient", polyax.grad(lambda x: (layer_norm(x) ** 3).sum()), (1000, 1000)
    yield "standardize", lambda x: (x - x.mean(1)) / x.std(1), (4000, 4000)
    yield "sum of squares", lambda x: ((x - 1) ** 2).sum(), (1000, 1000)
    yield "maxima of rows", lambda x: x.max(-1), (4000, 4000)
    yield "matrix product", lambda x: x @ x, (1024, 1024)


def best_times(fun: Callable[[Any], Any], x: np.ndarray, platforms: list[str]) -> list[float]:
    """Seconds on each platform."""
    run = polyax.jit(fun)
    arguments = [polyax.device_put(x, polyax.devices(p)[0]) for p in platforms]
    best = [float("inf")] * len(platforms)
    for _ in range(ROUNDS + 1):
        for n, argument in enumerate(arguments):
            start = time.perf_counter()
            run(argument).block_until_ready()
            best[n] = min(best[n], time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("platforms", nargs=2)
    platforms = parser.parse_args().platforms
    rng = np.random.default_rng(0)
    print(f"{'':24}{platforms[0]:>12}{platforms[1]:>12}{'ratio':>8}")
    for name, fun, shape in programs():
        first, second = best_times(fun, rng.standard_normal(shape).astype(np.float32), platforms)
        print(f"{name:24}{first * 1e3:12.3f}{second * 1e3:12.3f}{second / first:8.2f}", flush=True)


if __name__ == "__main__":
    main()
