"""The WebAssembly backend: its memory grows and is used again, its code is kept, and what is hard in it is right."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("wasmtime")

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.runtime.contract.cache import CACHES
from polyax_wasm import functions
from polyax_wasm.backend import WasmBackend
from polyax_wasm.code import WasmFunction, WasmModule
from polyax_wasm.emitter import FRAME
from polyax_wasm.machine import PAGE, WasmMachine
from polyax_wasm.memory import LinearPool

INF, NAN = np.inf, np.nan


@pytest.fixture
def device() -> Iterator[polyax.Device]:
    (device, *_) = polyax.devices("wasm")
    with polyax.default_device(device):
        yield device


@pytest.fixture
def pool() -> LinearPool:
    """Of a memory of 64 pages beside the frame."""
    return LinearPool("small", WasmMachine(FRAME // PAGE + 64))


def test_programs_are_modules_of_one_function(device: polyax.Device) -> None:
    f = lambda x: x * 2 + 1
    np.testing.assert_array_equal(polyax.jit(f)(jnp.arange(5.0)), [1, 3, 5, 7, 9])
    (kernel,) = polyax.explain(f)(jnp.arange(5.0)).report.kernels
    assert '(func (export "kernel")' in kernel.source and "f32.store" in kernel.source


def test_arrays_are_copied_there_and_back(device: polyax.Device) -> None:
    host = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    x = jnp.asarray(host)
    host[:] = 0
    back = np.asarray(x)
    np.testing.assert_array_equal(back.ravel(), np.arange(6.0))
    machine = device.backend.machine
    assert machine.base + FRAME <= x.buffer.pointer < machine.base + machine.most
    assert not np.shares_memory(back, np.asarray(polyax.device_put(x, device)))


def test_memory_grows_and_is_used_again(pool: LinearPool) -> None:
    first, second, third = (pool.fresh(PAGE) for _ in range(3))
    places = [x.ctypes.data for x in (first, second, third)]
    assert places == [pool.machine.base + FRAME + n * PAGE for n in range(3)]
    size = pool.machine.memory.data_len(pool.machine.store)
    del first, third
    assert pool.fresh(PAGE).ctypes.data == places[0]
    del second
    gc.collect()
    assert pool.fresh(3 * PAGE).ctypes.data == places[0], "neighbours are joined"
    assert pool.machine.memory.data_len(pool.machine.store) == size


def test_views_keep_their_block(pool: LinearPool) -> None:
    block = pool.fresh(PAGE)
    view = block[5:].view(np.uint8)[1:]
    place = block.ctypes.data
    del block
    assert pool.fresh(PAGE).ctypes.data != place
    del view
    assert pool.fresh(PAGE).ctypes.data == place


def test_a_full_memory_says_what_is_asked_for(pool: LinearPool) -> None:
    held = [pool.empty(PAGE * 16) for _ in range(3)]
    with pytest.raises(MemoryError, match=r"small is out of memory: 1,31\d,\d+ bytes .* 3,145,728 are live") as caught:
        pool.empty(PAGE * 20)  # and the guards around it, where those are checked
    assert "the linear memory has" in str(caught.value)
    del held
    assert pool.empty(PAGE * 20).nbytes == PAGE * 20


def test_more_than_addresses_reach(device: polyax.Device) -> None:
    with pytest.raises(MemoryError, match=r"wasm is out of memory: 5,\d+,\d+,\d+ bytes .* beyond 4,294,967,296"):
        jnp.zeros((5, 1 << 28), np.float32).block_until_ready()
    np.testing.assert_array_equal(jnp.zeros(3), [0, 0, 0])


def test_code_is_kept_on_disk() -> None:
    text = f'(module (import "device" "memory" (memory 1)) (func (export "kernel")) (global i64 (i64.const {id([])})))'
    before = CACHES["wasm"].stats()
    for machine in (WasmMachine(), WasmMachine()):
        machine.compiled(text)
    after = CACHES["wasm"].stats()
    assert (after.hits - before.hits, after.misses - before.misses) == (1, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_are_exact(device: polyax.Device, dtype: type) -> None:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(500) * 10.0 ** rng.integers(-30, 30, 500)).astype(dtype)
    y = (rng.standard_normal(500) * 10.0 ** rng.integers(-30, 30, 500)).astype(dtype)
    tiny, huge = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    x[:10] = [0, -0.0, INF, NAN, 1, 1, huge, 5, -5, huge]
    y[:10] = [1, 1, 1, 1, INF, 0, tiny, NAN, 5, -tiny]
    with polyax.enable_x64(True), np.errstate(invalid="ignore"):
        got, want = np.asarray(lax.rem(x, y)), np.fmod(x, y)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(want)]), np.signbit(want[~np.isnan(want)]))


@pytest.mark.parametrize("name", functions.CIRCULAR)
def test_angles_of_many_turns(device: polyax.Device, name: str) -> None:
    with polyax.enable_x64(True):
        for dtype, places in ((np.float32, 6), (np.float64, 14)):
            x = np.array([1e3, 2.0**29, -(2.0**31), 1e15, -1e20, 1e37, INF, NAN], dtype)
            with np.errstate(invalid="ignore"):
                want = getattr(np, name)(x.astype(np.float64))
            np.testing.assert_allclose(getattr(lax, name)(x), want, rtol=10.0**-places)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_halves_are_rounded_as_numpy_does(device: polyax.Device, name: str) -> None:
    """All of them, and floats beside them: ties, the least numbers, and those that overflow."""
    half = jnp.dtype(name)
    every = np.arange(1 << 16, dtype=np.uint16).view(half)
    wide = every.astype(np.float32)
    np.testing.assert_array_equal(lax.convert_element_type(every, np.float32), wide)
    bits = wide[np.isfinite(wide)].view(np.uint32).astype(np.int64)
    floats = np.concatenate([bits + n for n in (-1, 1, 0xFFF, 0x1000, 0x1001, 0x8000)]).astype(np.uint32)
    floats = floats.view(np.float32)[np.isfinite(floats.view(np.float32))]
    with np.errstate(over="ignore"):
        want = floats.astype(half).view(np.uint16)
    np.testing.assert_array_equal(np.asarray(lax.convert_element_type(floats, half)).view(np.uint16), want)


def test_products_and_sums_have_one_rounding() -> None:
    module = WasmModule()
    f = WasmFunction(module, '(export "kernel")', ())
    x = f.variable("double", "(f64.load (i32.const 0))")
    f.line(f"(f64.store (i32.const 0) {f.intrinsic('fma', x, x, x.like(-1.0)).text})")
    module.functions["kernel"] = f.text()
    machine = WasmMachine()
    memory = np.frombuffer(machine.frame, np.float64)
    run = machine.function(module.text())
    x = np.float64(1 + 2.0**-40)
    run((), (), int(x.view(np.int64)), 0)
    assert memory[0] == 2.0**-39 + 2.0**-80


def test_threads_take_turns(device: polyax.Device) -> None:
    f = polyax.jit(lambda x: jnp.sum(jnp.sin(x)) + x[0])
    inputs = [polyax.device_put(np.full(20_000 + n, float(n), np.float32), device) for n in range(4)]
    want = [float(f(x)) for x in inputs]
    got: dict[int, list[float]] = {}

    def work(n: int) -> None:
        got[n] = [float(f(inputs[n])) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert got == {n: [want[n]] * 20 for n in range(4)}


def test_scratch_that_is_too_large_is_refused(device: polyax.Device) -> None:
    from polyax_kernels.ir.kernel import Kernel, Operand
    from polyax_wasm.emitter import WasmEmitter

    emitter = WasmEmitter(Kernel((), (), (Operand((4,), np.dtype("float32"), "out"),)), np.dtype("int32"))
    with pytest.raises(NotImplementedError, match="at most 1,048,576 bytes of scratch"):
        emitter.local(1, np.dtype("float64"), FRAME)


def test_dtypes_that_it_lacks_are_named() -> None:
    assert WasmBackend("wasm").why_no_dtype(np.dtype("float16")) is None
    assert "has no float128" in str(WasmBackend("wasm").why_no_dtype(np.dtype("longdouble")))


def test_indices_have_32_bits(device: polyax.Device) -> None:
    """Unless a kernel has numbers of 64 bits."""
    source = lambda f, x: polyax.explain(f)(jnp.asarray(x)).report.kernels[0].source
    text = source(lambda x: x[::-1].sum(0), np.ones((4, 3), np.float32))
    assert "i32.add" in text and "i64.add" not in text and "i64.mul" not in text
    with polyax.enable_x64(True):
        assert "i64.add" in source(lambda x: x + 1, np.arange(4))
