"""What users read when something goes wrong on a device."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax_kernels.gpu.runtime import DeviceError, DeviceOutOfMemory, KernelRejected
from polyax_opencl.backend import OpenCLBackend
from polyax_opencl.emitter import OpenCLEmitter
from polyax_opencl.probe import cl


def test_out_of_memory_names_sizes_and_what_is_live(opencl: OpenCLBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime: Any = opencl.runtimes[0]
    held = jax.block_until_ready(jnp.ones((300, 100)))
    monkeypatch.setattr(runtime, "capacity", runtime.pool.managed_bytes + 1000)
    with pytest.raises(DeviceOutOfMemory) as e:
        jax.block_until_ready(jnp.zeros((4000, 4000)))
    text = str(e.value)
    assert text.startswith("opencl:0 (") and "64,000,000 bytes were asked for" in text
    assert "float32[300,100] (120,000 bytes)" in text and re.search(r"while [\d,]+ are live", text)
    assert f"it has {runtime.capacity:,} bytes" in text
    assert held.shape == (300, 100)


def test_memory_of_dead_arrays_is_found(opencl: OpenCLBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays in a cycle of references live until the garbage collector comes."""
    runtime: Any = opencl.runtimes[0]
    cycle: list[object] = [jnp.ones((1000, 1000)).block_until_ready()]
    cycle.append(cycle)
    monkeypatch.setattr(runtime, "capacity", runtime.pool.managed_bytes + 1000)
    del cycle
    assert float(jnp.zeros((1000, 1000)).sum()) == 0


def test_arrays_on_different_devices(two: OpenCLBackend) -> None:
    x, y = (jax.device_put(np.ones(3, np.float32), d) for d in two.devices())
    with pytest.raises(
        ValueError, match=r"(?s)incompatible devices.*ids \[0\] on platform OPENCL.*ids \[1\] on platform OPENCL"
    ):
        jax.jit(lambda x, y: x + y)(x, y)


def test_a_rejected_kernel(opencl: OpenCLBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler's words, the program with line numbers, and no frame of ours."""
    monkeypatch.setattr(OpenCLEmitter, "barrier_words", "nonsense")
    monkeypatch.setattr(OpenCLEmitter, "header", "no C at all;\n" + OpenCLEmitter.header)
    with pytest.raises(KernelRejected) as e:
        jax.jit(lambda x: x * 3 - 17)(jnp.ones(3))
    text = str(e.value)
    assert "error: " in text and re.search(r"\n *1  no C at all;\n", text)


def test_a_lost_device(opencl: OpenCLBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error belongs to what should have been computed."""
    x = jax.block_until_ready(jnp.ones(3))
    f = jax.jit(lambda x: jnp.sin(x) + 2)
    f(x)

    def lost(*args: object, **kwargs: object) -> None:
        raise cl.RuntimeError("clEnqueueNDRangeKernel failed: OUT_OF_RESOURCES")

    with monkeypatch.context() as m:
        m.setattr(cl, "enqueue_nd_range_kernel", lost)
        y = f(x)
        with pytest.raises(DeviceError, match=r"OUT_OF_RESOURCES.*the device is lost"):
            y.block_until_ready()
    np.testing.assert_allclose(f(x), np.sin(1) + 2, rtol=1e-6)


def test_a_device_lost_in_the_middle_of_a_program(opencl: OpenCLBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each of its kernels: the program and what needs its results fail, others don't, and no memory stays behind."""
    device: Any = jax.devices("opencl")[0]
    x = jax.block_until_ready(jnp.arange(64, dtype="float32").reshape(8, 8))
    f = jax.jit(lambda x: jnp.cumsum(jnp.sin(x) @ jnp.cos(x), 0).sum(1) - jnp.mean(x) ** 2)
    right, launch, count = np.asarray(f(x)), cl.enqueue_nd_range_kernel, [0]
    gc.collect()
    used = device.memory_stats()["bytes_in_use"]

    def lost_at(turn: int) -> Callable[..., Any]:
        def enqueue(*args: Any, **kwargs: Any) -> Any:
            count[0] += 1
            if count[0] == turn:
                raise cl.RuntimeError("clEnqueueNDRangeKernel failed: OUT_OF_RESOURCES")
            return launch(*args, **kwargs)

        return enqueue

    with monkeypatch.context() as m:
        m.setattr(cl, "enqueue_nd_range_kernel", lost_at(0))
        f(x).block_until_ready()
    kernels, count[0] = count[0], 0
    assert kernels > 2, "there is no middle"
    for turn in range(1, kernels + 1):
        with monkeypatch.context() as m:
            m.setattr(cl, "enqueue_nd_range_kernel", lost_at(turn))
            with pytest.raises(DeviceError, match="the device is lost"):
                (f(x) + 1).block_until_ready()
        count[0] = 0
        np.testing.assert_array_equal(f(x), right)
    gc.collect()
    assert device.memory_stats()["bytes_in_use"] == used
