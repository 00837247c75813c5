"""Level 0: arrays in the kinds of memory that a device addresses beside its own. One that has no other is skipped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.sharding import SingleDeviceSharding

pytestmark = pytest.mark.sample
OTHERS = ("pinned_host", "unpinned_host")
ARRAYS = [
    np.arange(6, dtype=np.float32).reshape(2, 3) + 1,
    np.array(True),
    np.arange(-3, 12, dtype=np.int8),
    np.arange(1, 9, dtype=np.uint16).reshape(2, 1, 4),
    np.zeros((2, 0, 3), np.int32),
]
X = ARRAYS[0]


@pytest.fixture(params=OTHERS)
def other(request: pytest.FixtureRequest, platform: str) -> SingleDeviceSharding:
    """Another memory of the device than its own."""
    device: Any = jnp.zeros(()).device
    kinds = [memory.kind for memory in device.addressable_memories()]
    if request.param not in kinds:
        pytest.skip(f"the device addresses {', '.join(kinds)}, and no {request.param}")
    return SingleDeviceSharding(device, memory_kind=request.param)


def own(other: SingleDeviceSharding) -> SingleDeviceSharding:
    return other.with_memory_kind("device")


@pytest.mark.parametrize("x", ARRAYS, ids=lambda x: f"{x.dtype}{list(x.shape)}")
def test_there_and_back(x: np.ndarray, other: SingleDeviceSharding) -> None:
    """Each is an array of its own, whose contents are right."""
    here = jnp.asarray(x)
    there = polyax.device_put(here, other)
    back = polyax.device_put(there, own(other))
    direct = polyax.device_put(x, other)
    assert there.sharding.memory_kind == direct.sharding.memory_kind == other.memory_kind
    assert back.sharding.memory_kind == here.sharding.memory_kind == "device"
    for found in (here, there, back, direct):
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, x)


def test_contents_that_are_still_to_come(other: SingleDeviceSharding) -> None:
    """What is moved is the result of a program that may not have ended, and is let go at once."""
    product = polyax.jit(lambda x: x @ x + 1)
    for n in range(1, 4):
        late = product(jnp.full((300, 300), n / 8, jnp.float32))
        there = polyax.device_put(late, other)
        del late
        np.testing.assert_array_equal(there, np.full((300, 300), 300 * n * n / 64 + 1, np.float32))
        np.testing.assert_array_equal(polyax.device_put(there, own(other)), there)


def test_programs_are_given_arrays_in_it(other: SingleDeviceSharding) -> None:
    there = polyax.device_put(X, other)
    np.testing.assert_array_equal(polyax.jit(lambda x, y: x - 2 * y)(X + 5, there), 5 - X)
    np.testing.assert_array_equal(there + 1, X + 1)
    np.testing.assert_array_equal(there, X)


def test_results_are_put_into_it(other: SingleDeviceSharding) -> None:
    found = polyax.jit(lambda x: x * 3, out_shardings=other)(X)
    assert found.sharding.memory_kind == other.memory_kind
    np.testing.assert_array_equal(found, X * 3)


def test_donated_arrays_leave_those_in_it_alone(other: SingleDeviceSharding) -> None:
    """Whether it was a copy or the same memory under another name."""
    here = jnp.array(X)
    there = polyax.device_put(here, other)
    doubled = polyax.jit(lambda x: x * 2, donate_argnums=0)(here)
    np.testing.assert_array_equal(doubled, X * 2)
    np.testing.assert_array_equal(there, X)
