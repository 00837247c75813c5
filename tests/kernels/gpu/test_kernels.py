"""The table of a device's kernels: what one program needs is compiled together, and what is refused is found alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from kernels.gpu_backend import grouped_backend
from kernels.programs import compiled, launched, traced

import polyax.numpy as jnp
from polyax import lax
from polyax_kernels.gpu.emitter import NAME
from polyax_kernels.gpu.runtime import KernelRejected

X = np.arange(24, dtype=np.float32).reshape(4, 6) / 7


def program(x: Any) -> Any:
    """Kernels that can't be one, some of them inside of a loop."""
    turned = lax.fori_loop(0, 2, lambda _, y: jnp.sort(y.sum(0) + y, 0), x)
    return jnp.sort(turned.sum(1)), turned


def wanted() -> Any:
    y = X
    for _ in range(2):
        y = np.sort(y.sum(0) + y, 0)
    return np.sort(y.sum(1)), y


class Compiler:
    """What stands between a runtime and its compiler: counts what it is given, and refuses more than it takes."""

    def __init__(self, runtime: Any, takes: int) -> None:
        self.load_all, self.takes = runtime.load_all, takes
        self.alone, self.together = 0, list[int]()
        runtime.load, runtime.load_all = self.one, self.all

    def one(self, source: str, name: str) -> Any:
        assert name == NAME
        self.alone += 1
        return self.load_all(source, [name])[0]

    def all(self, source: str, names: Sequence[str]) -> Any:
        self.together.append(len(names))
        if len(names) > self.takes:
            raise KernelRejected("a device", "too many", source)
        return self.load_all(source, names)


@pytest.mark.parametrize(("group", "takes"), [(4, 1), (32, 100)])
def test_what_a_program_needs_is_compiled_together(group: int, takes: int) -> None:
    """If it can't be, each is compiled alone. No other test has devices with these groups, so nothing is known."""
    backend: Any = grouped_backend(group)
    compiler = Compiler(backend.runtimes[0], takes)
    closed = traced(program, [X])
    executable = compiled(backend, closed)
    (number,) = compiler.together
    assert number > 2 and compiler.alone == (number if takes == 1 else 0)
    for got, want in zip(launched(backend, executable, closed, [X]), wanted(), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    compiled(backend, closed)
    assert compiler.together == [number], "all is known"
