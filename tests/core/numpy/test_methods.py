"""Methods of arrays that change no number: bytes, places, devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp


@pytest.mark.parametrize("dtype", ["int32", "float32", "uint16", "int8", "complex64"])
def test_byteswap(dtype: str) -> None:
    x = np.array([1, 2, 300], dtype="int32").astype(dtype)
    swapped = np.asarray(polyax.jit(lambda a: a.byteswap())(x))
    wanted = x.real.byteswap() + 1j * x.imag.byteswap() if dtype == "complex64" else x.byteswap()
    np.testing.assert_array_equal(swapped.view("uint8"), wanted.astype(dtype).view("uint8"))


def test_functions_as_methods() -> None:
    x = jnp.array([[3, 1, 2], [6, 5, 4]])
    np.testing.assert_array_equal(x.compress(jnp.array([False, True]), axis=0), [[6, 5, 4]])
    np.testing.assert_array_equal(jnp.array([1, 0]).choose([np.array([1, 2]), np.array([3, 4])]), [3, 2])
    order = np.asarray(x.argpartition(1))
    np.testing.assert_array_equal(np.take_along_axis(np.asarray(x), order, 1)[:, 1], [2, 5])


def test_to_device() -> None:
    device = polyax.devices("reference")[0]
    assert jnp.arange(3).to_device(device).devices() == {device}
    stream: Any = 1
    with pytest.raises(NotImplementedError, match="stream"):
        jnp.arange(3).to_device(device, stream=stream)
