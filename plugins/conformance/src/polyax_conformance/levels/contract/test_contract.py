"""Level 0: what the core relies on. Arrays of all shapes and dtypes there and back, launches, waits, order, memory."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.backend import Report, registry

pytestmark = pytest.mark.sample
SHAPES = [(), (0,), (1,), (3,), (2, 3), (4, 0, 2), (1, 1, 1), (2, 3, 4, 5)]
DTYPES = ["bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "bfloat16", "float32", "complex64"]
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def device() -> Any:
    return jnp.zeros(()).device


def test_its_plugin_says_which_contract_it_was_written_for(platform: str) -> None:
    mine = [p for p in registry.plugins() if p.platform == platform and p.distribution != "polyax"]
    assert all(p.requires for p in mine), 'the plugin\'s module lacks polyax_requires = ">=1,<2"'


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes_there_and_back(shape: tuple[int, ...], platform: str) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    there = jnp.asarray(x)
    assert there.device.platform == platform
    np.testing.assert_array_equal(there, x)
    np.testing.assert_array_equal(polyax.jit(lambda x: x + 1)(there), x + 1)


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_there_and_back(name: str, platform: str) -> None:
    """A device that lacks one says so."""
    dtype = jnp.dtype(name)
    if (reason := device().client.why_no_dtype(dtype)) is not None:
        with pytest.raises(TypeError, match="can't live on"):
            jnp.asarray(np.zeros(3), dtype)
        pytest.skip(reason)
    x = np.array([0, 1, 3]).astype(dtype)
    got = np.asarray(jnp.asarray(x))
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, x)


def test_the_host_may_change_what_it_gave(platform: str) -> None:
    x = X.copy()
    there = jnp.array(x)
    x[...] = -1
    np.testing.assert_array_equal(there, X)


def test_inputs_stay_as_they_are(platform: str) -> None:
    x, step = jnp.asarray(X), polyax.jit(lambda x: (x * 2, x + 1, x))
    for _ in range(3):
        step(x)
    np.testing.assert_array_equal(x, X)


def test_results_are_not_overwritten_by_later_launches(platform: str) -> None:
    step, x = polyax.jit(lambda x: x + 1), jnp.asarray(X)
    results = [x := step(x) for _ in range(20)]
    for n, y in enumerate(results):
        np.testing.assert_array_equal(y, X + n + 1)


def test_donated_arrays_are_gone_and_their_results_right(platform: str) -> None:
    step, x = polyax.jit(lambda x: x * 2, donate_argnums=0), jnp.array(X)
    y = step(x)
    np.testing.assert_array_equal(y, X * 2)
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)


def test_one_buffer_given_twice(platform: str) -> None:
    x = jnp.asarray(X)
    np.testing.assert_array_equal(polyax.jit(lambda a, b: a + 2 * b)(x, x), 3 * X)


def test_constants_are_arguments(platform: str) -> None:
    """Two functions alike but for their constants give what their own constants make."""
    constants = [jnp.asarray(X + n) for n in range(3)]
    made = [polyax.jit(lambda x, c=c: x * c) for c in constants]
    for n, f in enumerate(made):
        np.testing.assert_array_equal(f(X), X * (X + n))


def test_no_results_and_many(platform: str) -> None:
    assert polyax.jit(lambda x: ())(X) == ()
    many = polyax.jit(lambda x: [x + n for n in range(100)])(X)
    for n, y in enumerate(many):
        np.testing.assert_array_equal(y, X + n)


def test_what_runs_later_sees_what_ran_before(platform: str) -> None:
    """Long programs and short ones, in the order in which they were asked for."""
    large = jnp.zeros((500, 500))
    for _ in range(10):
        large = polyax.jit(lambda x: x @ x + 1)(large * 0)
    np.testing.assert_array_equal(large, np.ones((500, 500)))


def test_several_threads(platform: str) -> None:
    step, found = polyax.jit(lambda x, n: (x + n).sum()), dict[int, float]()

    def work(n: int) -> None:
        with polyax.default_device(where):
            for _ in range(20):
                found[n] = float(step(X, np.float32(n)))

    where = device()
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: X.sum() + 6 * n for n in range(4)}


def test_memory_comes_back(platform: str) -> None:
    stats, step = device().memory_stats(), polyax.jit(lambda x: x + 1)
    if stats is None:
        pytest.skip("the device tells nothing of its memory")
    x = step(jnp.zeros(100_000))
    gc.collect()
    before = device().memory_stats()["bytes_in_use"]
    for _ in range(50):
        x = step(x)
    x.block_until_ready()
    gc.collect()
    assert device().memory_stats()["bytes_in_use"] <= before + 4 * 400_000


def test_it_tells_what_it_compiled(platform: str) -> None:
    report = polyax.jit(lambda x: jnp.sin(x) + 1).lower(X).compile().report
    assert isinstance(report, Report) and report.backend


def test_synchronize_waits_for_everything(platform: str) -> None:
    x = jnp.asarray(np.eye(300, dtype=np.float32))
    for _ in range(5):
        x = polyax.jit(lambda x: x @ x)(x)
    device().client.synchronize(device())
    assert x.is_ready()
