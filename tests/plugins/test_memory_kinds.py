"""A backend that says which kinds of memory its devices address, and moves arrays between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from plugins.faults.broken import OWNER, backend, method
from plugins.pinned import Pinned, WithPinned

import polyax
from polyax.backend import HostBuffer, PluginError
from polyax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

X = np.arange(4, dtype=np.float32)
HOST, DEVICE = polyax.memory.Space.Host, polyax.memory.Space.Device


@pytest.fixture
def device() -> Iterator[polyax.Device]:
    with backend(WithPinned) as device:
        yield device


def place(x: Any) -> tuple[str, set[bool]]:
    """What is said of an array's memory, and whether the memory of its parts is pinned."""
    return x.sharding.memory_kind, {isinstance(part.buffer, Pinned) for part in x.parts}


def sharding(device: polyax.Device, meshed: bool) -> Any:
    if not meshed:
        return SingleDeviceSharding(device)
    return NamedSharding(Mesh([device], ("x",), (AxisType.Auto,)), PartitionSpec("x"))


def test_what_it_says_is_what_devices_address(device: polyax.Device) -> None:
    assert [m.kind for m in device.addressable_memories()] == ["device", "pinned_host"]
    assert device.default_memory().kind == "device"
    with pytest.raises(ValueError, match="can address the following memory kinds: device, pinned_host. Got .*unpinned"):
        device.memory("unpinned_host")


@pytest.mark.parametrize("meshed", [False, True])
def test_arrays_are_moved_there_and_back(device: polyax.Device, meshed: bool) -> None:
    own = sharding(device, meshed)
    pinned = own.with_memory_kind("pinned_host")
    x = polyax.device_put(X, own)
    for away in (polyax.device_put(x, HOST), polyax.device_put(x, pinned), polyax.device_put(X, pinned)):
        assert place(away) == ("pinned_host", {True})
        np.testing.assert_array_equal(away, X)
        np.testing.assert_array_equal(polyax.jit(lambda x, y: x * y)(x, away), X * X)
        for back in (polyax.device_put(away, DEVICE), polyax.device_put(away, own), polyax.device_put(away, device)):
            assert place(back) == ("device", {False})
            np.testing.assert_array_equal(back, X)
    assert place(x) == ("device", {False})


def test_results_are_put_there(device: polyax.Device) -> None:
    pinned = SingleDeviceSharding(device, memory_kind="pinned_host")
    for f in (polyax.jit(lambda x: polyax.device_put(x + 1, HOST)), polyax.jit(lambda x: x + 1, out_shardings=pinned)):
        got = f(X)
        assert place(got) == ("pinned_host", {True})
        np.testing.assert_array_equal(got, X + 1)


def gives(answer: Callable[[Any], Any]) -> type[Any]:
    return type("Broken", (WithPinned,), {"into_memory": lambda self, buffer, *_: answer(buffer)})


@pytest.mark.parametrize(
    "answer, told",
    [
        (lambda b: None, "into_memory gave None, not a Buffer"),
        (lambda b: HostBuffer(b.data[:1]), "into_memory gave a buffer of 4 bytes for an array of 16"),
    ],
)
def test_what_it_gives_is_checked(answer: Callable[[Any], Any], told: str) -> None:
    with backend(gives(answer)), pytest.raises(PluginError, match=f"{OWNER} breaks the contract .*: {told}"):
        polyax.device_put(X, HOST)


@pytest.mark.parametrize(
    "kinds", ["device", (), ("pinned_host", "device"), ("device", "disk"), ("device", "device"), 3]
)
def test_kinds_that_are_none_are_refused(kinds: Any) -> None:
    told = "memory_kinds of backend 'broken' is .*; give 'device' first, then of the others .*: pinned_host, unpinned"
    with pytest.warns(UserWarning, match=f"{OWNER} can't be used: {told}"), pytest.raises(RuntimeError, match=told):
        backend(method("memory_kinds", kinds)).__enter__()
