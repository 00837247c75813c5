"""Programs on complex numbers, for any module of JAX's shape: ``CASES[name](module) -> function, arguments``.

Run beside another module in turns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Case = tuple[Callable[..., Any], tuple[Any, ...]]
SIZE = 1 << 18
FUNCTIONS = "abs", "exp", "log", "sqrt", "tanh"


def _numbers(m: Any, *shape: int) -> Any:
    rng = np.random.default_rng(0)
    return m.numpy.asarray((rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64))


def _of_one(compute: Callable[[Any, Any], Any]) -> Callable[[Any], Case]:
    return lambda m: (m.jit(lambda z: compute(m, z)), (_numbers(m, SIZE),))


def _of_two(compute: Callable[[Any, Any], Any]) -> Callable[[Any], Case]:
    return lambda m: (m.jit(compute), (_numbers(m, SIZE), _numbers(m, SIZE)[::-1]))


def matrices(m: Any) -> Case:
    return m.jit(lambda z: z @ z), (_numbers(m, 256, 256),)


def columns(m: Any) -> Case:
    return m.jit(lambda z: z.sum(0)), (_numbers(m, 512, 512),)


def transforms(m: Any) -> Case:
    fft = m.numpy.fft
    return m.jit(lambda z: fft.ifft(fft.fft(z) * 2)), (_numbers(m, 512, 512),)


def gradient(m: Any) -> Case:
    f = m.grad(lambda x: abs(m.numpy.exp(1j * x) * (x + 2j)).sum())
    return m.jit(f), (_numbers(m, SIZE).real,)


def turns(m: Any) -> Case:
    """A loop of ten thousand small steps, each with an output."""

    def loop(z: Any) -> Any:
        return m.lax.scan(lambda c, x: (c * x * 0.5 + 1j, c), z[0], z)[1]

    return m.jit(loop), (_numbers(m, 10_000),)


CASES: dict[str, Callable[[Any], Case]] = {
    "mul": _of_two(lambda z, w: z * w),
    "div": _of_two(lambda z, w: z / w),
    "pow": _of_two(lambda z, w: z**w),
    "polynomial": _of_two(lambda z, w: (z * w + z) * w - z * 1j),
    **{name: _of_one(lambda m, z, name=name: getattr(m.numpy, name)(z)) for name in FUNCTIONS},
    **{f.__name__: f for f in (matrices, columns, transforms, gradient, turns)},
}
