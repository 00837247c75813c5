"""Sorting and searching, Fourier transforms, linear algebra, random numbers, and loops."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import Any

from operations.operation import Arrays, Operation, cast, normal, square, vector

SYMMETRIC = "cholesky eigh eigvalsh inv det slogdet solve"
FACTORS = "qr svd pinv"
BATCHES = {"4x4": 4, "16x16": 16}
SAMPLERS = "uniform normal bits exponential gumbel laplace cauchy truncated_normal gamma beta poisson permutation"
OPTIONS = {"truncated_normal": (-1.0, 1.0), "gamma": (2.0,), "beta": (2.0, 3.0), "poisson": (3.0,)}


def operations() -> Iterator[Operation]:
    yield from _sorting()
    for name in ("fft", "rfft", "ifft"):
        dtype = "float32" if name == "rfft" else "complex64"
        call = lambda m, x, name=name: getattr(m.numpy.fft, name)(x)
        yield Operation(name, call, cast(vector, dtype), gradient=False)
    yield Operation("fft[rows]", lambda m, x: m.numpy.fft.fft(x), cast(square, "complex64"), gradient=False)
    yield Operation("fft[0]", lambda m, x: m.numpy.fft.fft(x, axis=0), cast(square, "complex64"), gradient=False)
    yield Operation("fft2", lambda m, x: m.numpy.fft.fft2(x), cast(square, "complex64"), gradient=False)
    yield from _linear_algebra()
    for name in SAMPLERS.split():
        yield Operation(f"random.{name}", _sampler(name), lambda n: (normal(n),), gradient=False)
    yield from _loops()


def _sorting() -> Iterator[Operation]:
    yield Operation("sort", lambda m, x: m.numpy.sort(x), vector)
    yield Operation("argsort", lambda m, x: m.numpy.argsort(x), vector, gradient=False)
    yield Operation("int32 sort", lambda m, x: m.numpy.sort((x * 1e6).astype("int32")), vector, gradient=False)
    for axis in (0, 1):
        yield Operation(f"sort[{axis}]", lambda m, x, axis=axis: m.numpy.sort(x, axis), square)
    yield Operation("top_k", lambda m, x: m.lax.top_k(x, 10)[0], vector)
    yield Operation("top_k[rows]", lambda m, x: m.lax.top_k(x, 5)[0], square)
    placed = lambda m, x: m.numpy.searchsorted(m.numpy.linspace(-3, 3, 1000), x)
    yield Operation("searchsorted", placed, vector, gradient=False)
    yield Operation("unique", lambda m, x: m.numpy.unique(x // 0.1, size=100), vector, gradient=False)
    yield Operation("argmax", lambda m, x: m.numpy.argmax(x), vector, gradient=False)


def _spd(n: int) -> Arrays:
    side = isqrt(n) if n < 10_000 else 200
    x = normal(side, side)
    return ((x @ x.T + side * normal(side, side) * 0 + side * _eye(side)).astype("float32"),)


def _eye(side: int) -> Any:
    import numpy as np

    return np.eye(side)


def _batch(side: int) -> Any:
    def inputs(n: int) -> Arrays:
        x = normal(max(1, n // side**2), side, side)
        return ((x @ x.transpose(0, 2, 1) + side * _eye(side)).astype("float32"),)

    return inputs


def _solved(m: Any, name: str, x: Any) -> Any:
    return m.numpy.linalg.solve(x, x[..., :1]) if name == "solve" else getattr(m.numpy.linalg, name)(x)


def _linear_algebra() -> Iterator[Operation]:
    for name in SYMMETRIC.split():
        call = lambda m, x, name=name: _solved(m, name, x)
        yield Operation(f"linalg.{name}", call, _spd, ("small", "cache"))
        for label, side in BATCHES.items():
            yield Operation(f"linalg.{name}[{label}]", call, _batch(side), ("cache",))
    for name in FACTORS.split():
        call = lambda m, x, name=name: getattr(m.numpy.linalg, name)(x)
        yield Operation(f"linalg.{name}", call, _spd, ("small", "cache"), gradient=name != "pinv")
    lower = lambda m, x: m.scipy.linalg.solve_triangular(m.numpy.tril(x), x, lower=True)
    yield Operation("solve_triangular", lower, _spd, ("small", "cache"))
    ones = lambda m, x: m.numpy.ones(x.shape[0] - 1, x.dtype)
    values = lambda m, x: m.scipy.linalg.eigh_tridiagonal(x, ones(m, x), eigvals_only=True)
    yield Operation("eigh_tridiagonal", values, lambda n: (normal(isqrt(n)),), ("small", "cache"), gradient=False)
    yield Operation("expm", lambda m, x: m.scipy.linalg.expm(x / 1e3), _spd, ("small",))


def _sampler(name: str) -> Any:
    def call(m: Any, x: Any) -> Any:
        key, draw = m.random.PRNGKey(0), getattr(m.random, name)
        if name == "permutation":
            return draw(key, x)
        return draw(key, *OPTIONS.get(name, ()), x.shape)

    return call


def _loops() -> Iterator[Operation]:
    ema = lambda m, x: m.lax.scan(lambda c, v: (0.9 * c + v, 0.9 * c + v), 0.0 * x[0], x)[1]
    yield Operation("scan[scalar carry]", ema, vector)
    yield Operation("scan[rows]", ema, square)
    doubled = lambda m, x: m.lax.fori_loop(0, 100, lambda i, c: c * 0.99 + 0.01, x)
    yield Operation("fori_loop", doubled, vector, ("small", "cache"), gradient=False)
    halved = lambda m, x: m.lax.while_loop(lambda c: c[0] < 100, lambda c: (c[0] + 1, m.numpy.sin(c[1])), (0, x))[1]
    yield Operation("while_loop", halved, vector, ("small", "cache"), gradient=False)
    yield Operation("associative_scan", lambda m, x: m.lax.associative_scan(lambda a, b: a * b, x), vector)
    yield Operation("map", lambda m, x: m.lax.map(lambda r: m.numpy.sum(m.numpy.sin(r)), x), square)
    yield Operation("cond", lambda m, x: m.lax.cond(x[0] > 0, m.numpy.sin, m.numpy.cos, x), vector)
