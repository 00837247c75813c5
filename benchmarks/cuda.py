"""Times programs on a GPU beside CuPy and, where it is installed, JAX on the same GPU.

    python benchmarks/cuda.py [--platform cuda] [--scale 1.0] [-k WORD]

Prints a table in Markdown: milliseconds until the result is there, the median of many calls. ``--platform cpu --scale
0.01`` tries the script out where there is no GPU; then CuPy is left out.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Function = Callable[..., Any]


def chain(xp: Any, x: Any) -> Any:
    for _ in range(10):
        x = 0.5 * x + 0.1 * xp.sin(x)
    return x


def softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(xp: Any, x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / xp.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def positive(x: np.ndarray) -> np.ndarray:
    return x @ x.T / len(x) + np.eye(len(x), dtype=x.dtype)


def cases(scale: float) -> Iterator[tuple[str, Function, np.ndarray]]:
    """Name, function of an array module and an argument, and the argument."""

    def normal(*shape: int) -> np.ndarray:
        sizes = [max(8, int(n * scale ** (1 / len(shape)))) for n in shape]
        return np.random.default_rng(0).standard_normal(sizes, np.float32)

    yield "small step", lambda xp, x: x * 2 + 1, normal(8)
    yield "sine chain", chain, normal(10_000, 10_000)
    yield "softmax", softmax, normal(8192, 8192)
    yield "layer norm", layer_norm, normal(8192, 8192)
    yield "sum", lambda xp, x: x.sum(), normal(100_000_000)
    yield "sum of columns", lambda xp, x: x.sum(0), normal(10_000, 10_000)
    yield "transpose", lambda xp, x: x.T + 1, normal(10_000, 10_000)
    yield "product", lambda xp, x: x @ x, normal(8192, 8192)
    yield "cholesky", lambda xp, x: xp.linalg.cholesky(x), positive(normal(4096, 4096))
    yield "sort", lambda xp, x: xp.sort(x), normal(10_000_000)
    yield "fft", lambda xp, x: xp.fft.fft(x), normal(4096, 4096)


def of_module(name: str, platform: str, fun: Function, x: np.ndarray) -> Callable[[], Any] | None:
    """A call of the jitted function in a module with JAX's interface; None if that isn't there."""
    try:
        m, xp = importlib.import_module(name), importlib.import_module(f"{name}.numpy")
        device = m.devices("gpu" if name == "jax" and platform == "cuda" else platform)[0]
    except (ImportError, RuntimeError):
        return None
    argument, jitted = m.device_put(x, device), m.jit(lambda x: fun(xp, x))
    return lambda: m.block_until_ready(jitted(argument))


def of_cupy(fun: Function, x: np.ndarray) -> Callable[[], Any]:
    import cupy

    argument = cupy.asarray(x)

    def call() -> None:
        fun(cupy, argument)
        cupy.cuda.get_current_stream().synchronize()

    return call


def milliseconds(call: Callable[[], Any] | None, seconds: float = 1.0) -> str:
    """The median, after the first calls, which compile and fetch memory."""
    if call is None:
        return "–"
    for _ in range(3):
        call()
    times, end = list[float](), time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return f"{1e3 * statistics.median(times):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", default="cuda")
    parser.add_argument("--scale", type=float, default=1.0, help="of the arguments' sizes")
    parser.add_argument("-k", default="", help="only cases whose names contain this")
    options = parser.parse_args()
    print("| ms | polyax | JAX | CuPy |\n|---|---:|---:|---:|")
    for name, fun, x in cases(options.scale):
        if options.k in name:
            calls = [of_module(m, options.platform, fun, x) for m in ("polyax", "jax")]
            calls.append(of_cupy(fun, x) if options.platform == "cuda" else None)
            print(f"| {name} {x.shape} | {' | '.join(map(milliseconds, calls))} |", flush=True)


if __name__ == "__main__":
    main()
