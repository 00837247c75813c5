"""Methods of arrays that change no number: bytes, places, devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax


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


def test_view_of_narrow_types() -> None:
    x = jnp.array([[0x21, 0x43], [0x65, 0x07]], "uint8")
    assert x.view("uint4").tolist() == [[1, 2, 3, 4], [5, 6, 7, 0]]
    assert x.view("uint4").view("uint16").tolist() == [[0x4321], [0x0765]]
    assert jnp.array([1, 2], "uint8").view("uint2").tolist() == [1, 0, 0, 0, 2, 0, 0, 0]
    with polyax.enable_x64(True):
        assert jnp.complex64(1 + 2j).view("uint64") == 0x400000003F800000
    with pytest.raises(ValueError, match="its size must be a divisor"):
        jnp.ones(3, "uint4").view("uint8")


@pytest.mark.parametrize(
    "types", [("bool", "uint8"), ("uint8", "bool"), ("complex64", "float32"), ("uint64", "complex64")]
)
def test_bits_of_bools_and_complex_numbers(types: tuple[str, str]) -> None:
    with polyax.enable_x64(True), pytest.raises(TypeError, match=r"Consider using the arr.view\(\) method"):
        lax.bitcast_convert_type(jnp.zeros(4, types[0]), types[1])
    assert lax.bitcast_convert_type(jnp.ones(2, bool), bool).tolist() == [True, True]


def test_nothing_can_be_viewed_as_complex_numbers() -> None:
    assert jnp.zeros((2, 0), "uint32").view("complex64").shape == (2, 0)
    assert jnp.arange(4.0).view("complex64").tolist() == [1j, 2 + 3j]


def test_the_order_of_dimensions_may_be_an_array() -> None:
    x, order = jnp.ones((2, 3)), np.argsort([1, 0])
    assert x.transpose(order).shape == np.transpose(x, order).shape == (3, 2)
    assert x.transpose(1, 0).shape == x.transpose((1, 0)).shape == x.transpose().shape == x.transpose(None).shape
