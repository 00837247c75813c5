"""Loops on a device with a queue: nothing but predicates comes to the host before the result is asked for."""

from __future__ import annotations

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax
from polyax_opencl.runtime import OpenCLRuntime


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each transfer to the host."""
    sizes: list[int] = []
    original = OpenCLRuntime.read

    def counting(self: OpenCLRuntime, source: object, offset: int, host: np.ndarray) -> None:
        sizes.append(host.nbytes)
        original(self, source, offset, host)

    monkeypatch.setattr(OpenCLRuntime, "read", counting)
    return sizes


def test_loops_of_known_length_read_nothing(read: list[int]) -> None:
    with jax.default_device("opencl"):
        x = jnp.arange(8.0)
        f = jax.jit(lambda x: lax.fori_loop(0, 20, lambda i, c: c.at[i % 8].add(c[0] + 1), x))
        y = jax.block_until_ready(f(x))
        assert read == []
    want = np.arange(8.0)
    for i in range(20):
        want[i % 8] += want[0] + 1
    np.testing.assert_allclose(y, want)


def test_other_loops_read_their_predicates(read: list[int]) -> None:
    with jax.default_device("opencl"):
        f = jax.jit(lambda x: lax.while_loop(lambda c: jnp.sum(c) < 100, lambda c: c * 2, x))
        y = jax.block_until_ready(f(jnp.ones(10)))
        assert read == [1] * 5
    np.testing.assert_allclose(y, np.full(10, 16))


def test_branches_read_their_number(read: list[int]) -> None:
    with jax.default_device("opencl"):
        f = jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: lax.cond(i > 1, jnp.sin, lambda c: c + i, c), x))
        y = jax.block_until_ready(f(jnp.zeros(10)))
        assert read == [4] * 3
    np.testing.assert_allclose(y, np.sin(np.ones(10)), rtol=1e-6)
