"""DLPack: memory that is shared with other libraries, both ways, as long as either needs it."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import numpy as jnp
from polyax.dlpack import from_dlpack

SIZE = 1024


class Block(np.ndarray):
    """An array that can be asked whether it is still alive."""


def aligned(skip: int = 0) -> np.ndarray:
    """Numbers whose address is ``skip`` bytes behind a multiple of 64."""
    raw = np.empty(4 * SIZE + 128, np.uint8)
    start = -raw.ctypes.data % 64 + skip
    found = raw[start : start + 4 * SIZE].view(np.float32)
    found[...] = np.arange(SIZE)
    return found


def shares(x: Any, host: np.ndarray) -> bool:
    return x.unsafe_buffer_pointer() == host.ctypes.data


@pytest.fixture(params=["cpu", "hello_c", "reference"], autouse=True)
def device(request: pytest.FixtureRequest) -> Any:
    found = polyax.devices(request.param)[0]
    with polyax.default_device(found):
        yield found


def test_aligned_memory_is_shared(device: Any) -> None:
    host = aligned()
    for options in ({}, {"copy": False}, {"device": device}, {"device": device, "copy": False}):
        x = from_dlpack(host, **options)
        assert shares(x, host) and x.committed and x.devices() == {device}
    host[3] = 7
    assert x[3] == 7 and (x + 1)[3] == 8
    copied = jnp.from_dlpack(host, copy=True)
    host[3] = 8
    assert copied[3] == 7 and not shares(copied, host)


COPIED = {
    "strides": (lambda: np.arange(12.0, dtype="f").reshape(3, 4).T, "the contents don't lie row by row"),
    "backwards": (lambda: np.arange(12.0, dtype="f")[::-1], "the contents don't lie row by row"),
    "type": (lambda: np.arange(3.0), "arrays of float64 become float32"),
}


@pytest.mark.parametrize("case", COPIED)
def test_what_has_to_be_copied(case: str) -> None:
    make, why = COPIED[case]
    host = make()
    np.testing.assert_array_equal(jnp.from_dlpack(host), host)
    np.testing.assert_array_equal(jnp.from_dlpack(host, copy=True), host)
    with pytest.raises(ValueError, match=f"Specified input which requires a copy since {why}.*However copy=False"):
        jnp.from_dlpack(host, copy=False)


def test_unaligned_memory_is_copied_for_native_code() -> None:
    with polyax.default_device(polyax.devices("cpu")[0]):
        host = aligned(4)
        x = jnp.from_dlpack(host)
        assert not shares(x, host)
        np.testing.assert_array_equal(x, host)
        with pytest.raises(ValueError, match="data buffer is not aligned to 64 bytes"):
            jnp.from_dlpack(host, copy=False)


def test_own_memory_is_given_read_only() -> None:
    x = jnp.arange(12.0).reshape(3, 4)
    for host in (np.from_dlpack(x), np.from_dlpack(x, copy=False)):
        assert shares(x, host) and not host.flags.writeable and host.tolist() == x.tolist()
    assert not shares(x, np.from_dlpack(x, copy=True))
    assert "versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    assert "versioned" not in repr(x.__dlpack__()), "what older takers know"
    assert shares(x, np.from_dlpack(_Old(x)))


class _Old:
    """A taker that doesn't say which versions it knows."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __dlpack__(self, **_: Any) -> Any:
        return self.x.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()


def test_arrays_from_arrays() -> None:
    x = jnp.asarray(2.0)
    y = jnp.from_dlpack(x)
    assert y is not x and not y.weak_type and y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    x.delete()
    assert y + 1 == 3
    with polyax.default_device(polyax.devices("cpu")[0]):  # no other library takes this type by the protocol
        assert jnp.from_dlpack(jnp.ones(3, jnp.bfloat16), copy=True).dtype == jnp.bfloat16


def test_nothing_is_never_a_copy(device: Any) -> None:
    """Whatever its address, of which an empty array has none to keep."""
    for empty in (jnp.zeros((0, 3)), aligned(4)[:0].reshape(0, 3)):
        for copy in (None, False, True):
            x = from_dlpack(empty, copy=copy)
            assert x.shape == (0, 3) and x.dtype == jnp.float32 and x.committed and x.devices() == {device}
    with pytest.raises(ValueError, match="arrays of float64 become float32"):
        from_dlpack(np.empty(0), copy=False)


def test_others_memory_is_never_written_to() -> None:
    host = aligned()
    x = from_dlpack(host)
    double = polyax.jit(lambda x: x * 2, donate_argnums=0)
    np.testing.assert_array_equal(double(x), 2 * np.arange(SIZE))
    np.testing.assert_array_equal(host, np.arange(SIZE))
    y = jnp.zeros(SIZE)
    host = np.from_dlpack(y)
    polyax.jit(lambda x: x + 1, donate_argnums=0)(y)
    assert not host.any()


def test_memory_lives_as_long_as_somebody_needs_it() -> None:
    block = aligned().view(Block)
    alive, x = weakref.ref(block), from_dlpack(block)
    del block
    gc.collect()
    y = x + 1
    del x
    np.testing.assert_array_equal(y, np.arange(SIZE) + 1)
    gc.collect()
    assert alive() is None
    x = jnp.arange(SIZE)
    host = np.from_dlpack(x)
    del x
    gc.collect()
    _ = [jnp.full(SIZE, n) for n in range(20)]
    np.testing.assert_array_equal(host, np.arange(SIZE))


def test_memory_in_use_is_counted_once() -> None:
    device = polyax.devices("cpu")[0]
    before = device.memory_stats()
    x = from_dlpack(aligned(), device)
    del x
    gc.collect()
    after = device.memory_stats()
    assert after["bytes_in_use"] == before["bytes_in_use"]
