"""Times programs on a GPU beside CuPy and, where it is installed, JAX on the same GPU.

    python benchmarks/gpu.py [--platform cuda] [--scale 1.0] [-k WORD]

Prints a table in Markdown: milliseconds until the result is there, the median of many calls. ``--platform cpu --scale
0.01`` tries the script out where there is no GPU; then CuPy is left out.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take most of the memory at once
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


def attention(m: Any, x: Any) -> Any:
    """Of (batch, length, heads, features) in bfloat16, as it is written without a fused function."""
    q = x.astype("bfloat16")
    weights = m.nn.softmax(m.numpy.einsum("bqhd,bkhd->bhqk", q, q) * 0.125, -1)
    return m.numpy.einsum("bhqk,bkhd->bqhd", weights, q)


def perceptron_step(m: Any, x: Any) -> Any:
    """The gradient of two layers by their weights, here one square matrix."""

    def loss(w: Any) -> Any:
        return m.numpy.mean((m.nn.gelu(m.numpy.tanh(x @ w)) @ w - 1) ** 2)

    return x - 0.1 * m.grad(loss)(x)


def convolution(m: Any, x: Any) -> Any:
    window = m.numpy.ones((3, 3, x.shape[-1], x.shape[-1]), x.dtype)
    return m.lax.conv_general_dilated(x, window, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def recurrence(m: Any, x: Any) -> Any:
    return m.lax.scan(lambda c, _: (m.numpy.tanh(c @ x), None), x, None, length=100)[0]


def histogram(m: Any, x: Any) -> Any:
    return m.numpy.zeros(1000, x.dtype).at[m.numpy.int32(m.numpy.abs(x) * 200)].add(1.0)


def programs(scale: float) -> Iterator[tuple[str, Function, np.ndarray]]:
    """As ``cases``, of functions that take a module with JAX's interface, which CuPy hasn't."""

    def normal(*shape: int) -> np.ndarray:
        sizes = [max(8, int(n * scale ** (1 / len(shape)))) for n in shape]
        return np.random.default_rng(0).standard_normal(sizes, np.float32)

    yield "bfloat16 product", lambda m, x: x.astype("bfloat16") @ x.astype("bfloat16"), normal(8192, 8192)
    yield "attention", attention, normal(8, 1024, 16, 64)
    yield "perceptron step", perceptron_step, normal(2048, 2048)
    yield "convolution", convolution, normal(32, 56, 56, 64)
    yield "scan of 100 products", recurrence, normal(256, 256)
    yield "cumsum", lambda m, x: m.numpy.cumsum(x), normal(50_000_000)
    yield "scatter-add", histogram, normal(10_000_000)
    yield "random normal", lambda m, x: m.random.normal(m.random.key(0), x.shape), normal(50_000_000)
    yield "top-k", lambda m, x: m.lax.top_k(x, 8)[0], normal(4096, 4096)
    yield "small eigh", lambda m, x: m.numpy.linalg.eigh(x)[0], positive(normal(512, 512))


def of_module(name: str, platform: str, fun: Function, x: np.ndarray, whole: bool) -> Callable[[], Any] | None:
    """A call of the jitted function in a module with JAX's interface; None if that isn't there.

    The function is given the ``whole`` module, or its ``numpy``.
    """
    try:
        m, xp = importlib.import_module(name), importlib.import_module(f"{name}.numpy")
        device = m.devices("gpu" if name == "jax" and platform == "cuda" else platform)[0]
    except (ImportError, RuntimeError):
        return None
    argument, jitted = m.device_put(x, device), m.jit(lambda x: fun(m if whole else xp, x))
    return lambda: m.block_until_ready(jitted(argument))


def of_cupy(fun: Function, x: np.ndarray) -> Callable[[], Any]:
    import cupy

    argument = cupy.asarray(x)

    def call() -> None:
        fun(cupy, argument)
        cupy.cuda.get_current_stream().synchronize()

    return call


def milliseconds(call: Callable[[], Any] | None, seconds: float) -> str:
    """The median, after the first calls, which compile and fetch memory; what went wrong, if something did."""
    if call is None:
        return "–"
    try:
        return f"{1e3 * median(call, seconds):.3f}"
    except Exception as e:  # of any library that takes part; the next case may run
        traceback.print_exc()
        return type(e).__name__


def median(call: Callable[[], Any], seconds: float) -> float:
    for _ in range(5):  # programs that run again are recorded
        call()
    times, end = list[float](), time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", default="cuda")
    parser.add_argument("--scale", type=float, default=1.0, help="of the arguments' sizes")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each is timed")
    parser.add_argument("-k", default="", help="only cases whose names contain this")
    options = parser.parse_args()
    print("| ms | polyax | JAX | CuPy |\n|---|---:|---:|---:|")
    named = [(*case, False) for case in cases(options.scale)] + [(*case, True) for case in programs(options.scale)]
    for name, fun, x, whole in named:
        if options.k in name:
            calls = [of_module(m, options.platform, fun, x, whole) for m in ("polyax", "jax")]
            calls.append(of_cupy(fun, x) if options.platform == "cuda" and not whole else None)
            figures = [milliseconds(call, options.seconds) for call in calls]
            print(f"| {name} {x.shape} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
