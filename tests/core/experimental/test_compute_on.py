from __future__ import annotations

import pytest

import polyax
import polyax.numpy as jnp
from polyax.experimental.compute_on import compute_on, compute_on2


def test_context_and_decorator():
    @polyax.jit
    @compute_on("device_host")
    def f(x):
        with compute_on("gpu_stream:1"):
            return x * 2

    assert f(jnp.arange(3)).tolist() == [0, 2, 4]


def test_results_in_memories():
    f = compute_on2(compute_type="device_host", out_memory_spaces=polyax.memory.Space.Device)(lambda x: (x + 1, x))
    assert [x.tolist() for x in polyax.jit(f)(jnp.arange(2))] == [[1, 2], [0, 1]]


def test_bad_input():
    with pytest.raises(ValueError, match="Invalid compute type here"), compute_on("here"):
        pass
    with pytest.raises(TypeError, match="must be a string"):
        compute_on2(compute_type=1, out_memory_spaces=None)  # type: ignore[arg-type]
