"""Arrays convert, print, copy and refuse as JAX's do; the expected texts are JAX's."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import polyax.runtime.running.dispatch  # noqa: F401  # evaluates what the tests run
from polyax.api.jit import jit
from polyax.ops.elementwise import add, sin
from polyax.runtime.arrays.array import Array
from polyax.runtime.arrays.devices import devices
from polyax.runtime.arrays.placing import device_put
from polyax.runtime.plugins.default_device import default_device


@pytest.fixture(autouse=True)
def on_reference() -> Any:
    with default_device("reference"):
        yield


def f32(*shape: int) -> Array:
    return device_put(np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape))


ONES = "1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1."
REPRS = [
    (np.arange(3, dtype=np.float32), "Array([0., 1., 2.], dtype=float32)"),
    (2.0, "Array(2., dtype=float32, weak_type=True)"),
    (3 + 1j, "Array(3.+1.j, dtype=complex64, weak_type=True)"),
    (np.zeros((0, 3), np.float32), "Array([], shape=(0, 3), dtype=float32)"),
    (np.array([True]), "Array([ True], dtype=bool)"),
    (ml_dtypes.bfloat16(2), "Array(2, dtype=bfloat16)"),
    (np.ones((2, 3), np.int8), "Array([[1, 1, 1],\n       [1, 1, 1]], dtype=int8)"),
    (np.ones(22, np.int8), "Array([" + "1, " * 21 + "1],      dtype=int8)"),
    (np.ones((1, 17), np.float32), f"Array([[{ONES},\n        1.]], dtype=float32)"),
    (
        np.arange(2000, dtype=np.float32),
        "Array([0.000e+00, 1.000e+00, 2.000e+00, ..., 1.997e+03, 1.998e+03,\n       1.999e+03], dtype=float32)",
    ),
]


@pytest.mark.parametrize("value, text", REPRS, ids=[text[:30] for _, text in REPRS])
def test_repr(value: Any, text: str) -> None:
    assert repr(device_put(value)) == text


def test_str_and_format() -> None:
    assert str(f32(3)) == "[0. 1. 2.]"
    assert f"{device_put(2.0):.3f}" == "2.000"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{f32(3):.3f}"


def test_type_is_known_without_the_contents() -> None:
    x = f32(2, 3)
    assert (x.shape, x.dtype, x.ndim, x.size, x.itemsize, x.nbytes, len(x)) == ((2, 3), np.float32, 2, 6, 4, 24, 2)
    assert not x.weak_type and device_put(1.0).weak_type


def test_numpy_sees_the_contents_read_only() -> None:
    x = f32(3)
    seen = np.asarray(x)
    assert not seen.flags.writeable
    assert np.array(x).flags.writeable, "np.array copies"
    assert np.asarray(x, np.float64).dtype == np.float64
    np.testing.assert_array_equal(np.from_dlpack(x), [0, 1, 2])
    assert bytes(x) == x.tobytes() == np.asarray(x).tobytes()


def test_python_scalars() -> None:
    x = device_put(np.float32(2.5))
    assert (float(x), int(x), complex(x), bool(x), x.item(), x.tolist()) == (2.5, 2, 2.5 + 0j, True, 2.5, 2.5)
    assert ["a", "b"][device_put(1)] == "b"
    assert f32(3).item(1) == 1.0 and f32(2).tolist() == [0.0, 1.0]
    assert bool(device_put(np.ones((1, 1)))) is True


SCALAR = "Only scalar arrays can be converted to Python scalars; got arr.ndim=1"
INDEX = "Only integer scalar arrays can be converted to a scalar index."
REFUSED: list[tuple[Callable[[Array], Any], type[Exception], str]] = [
    (float, TypeError, SCALAR),
    (int, TypeError, SCALAR),
    (complex, TypeError, SCALAR),
    (lambda x: x.__index__(), TypeError, INDEX),
    (lambda x: device_put(1.5).__index__(), TypeError, INDEX),
    (bool, ValueError, "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"),
    (
        lambda x: bool(f32(0)),
        ValueError,
        "The truth value of an empty array is ambiguous. Use `array.size > 0` to check",
    ),
    (hash, TypeError, "unhashable type: 'Array'"),
    (lambda x: len(f32()), TypeError, "len() of unsized object"),
    (lambda x: x.item(), ValueError, "can only convert an array of size 1 to a Python scalar"),
    (lambda x: x.__setitem__(0, 1), TypeError, "does not support item assignment. JAX arrays are immutable."),
]


@pytest.mark.parametrize("use, error, text", REFUSED)
def test_refused(use: Callable[[Array], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        use(f32(3))
    assert text in str(caught.value)


def test_deleted() -> None:
    x = f32(3)
    x.delete()
    assert x.is_deleted() and x.shape == (3,)
    told = (lambda x: x.block_until_ready(), lambda x: x.devices(), lambda x: x.device)
    for use in (repr, np.asarray, copy.copy, *told):
        with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3\]\."):
            use(x)


@pytest.mark.parametrize("value", [2.0, np.arange(3, dtype=np.int8), np.zeros((2, 0)), ml_dtypes.bfloat16(1.5), 1j])
def test_copies_and_pickles(value: Any) -> None:
    x = device_put(value)
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y is not x and repr(y) == repr(x) and y.aval == x.aval


def test_place() -> None:
    x, device = f32(3), devices("reference")[0]
    assert x.device is device and x.devices() == {device} and x.sharding.device_set == {device}
    assert repr(x.sharding) == "SingleDeviceSharding(device=ReferenceDevice(id=0), memory_kind=device)"
    assert x.sharding.has_addressable_devices and x.__dlpack_device__() == (1, 0)
    (shard,) = x.addressable_shards
    assert shard.device is device and x.is_fully_addressable and x.is_fully_replicated


def test_tracers_are_arrays_to_isinstance() -> None:
    seen: list[bool] = []

    def f(x: Any) -> Any:
        seen.append(isinstance(x, Array))
        return x

    jit(f)(1.0)
    assert seen == [True] and not isinstance(1.0, Array)


def test_results_come_later_and_are_right() -> None:
    x = device_put(np.ones((1500, 1500), np.float32))
    y = jit(lambda x: sin(sin(sin(sin(x)))))(x)
    assert y.shape == (1500, 1500) and not y.is_ready()
    z = add(y, y)
    want = np.sin(np.sin(np.sin(np.sin(np.float32(1)))))
    np.testing.assert_allclose(np.asarray(z)[0, 0], 2 * want, rtol=1e-6)
    assert y.is_ready() and y.block_until_ready() is y


def test_numpy_may_forbid_a_copy() -> None:
    x = device_put(np.float32([1, 2]))
    assert np.shares_memory(np.asarray(x, copy=False), np.asarray(x))
    assert not np.shares_memory(np.asarray(x, copy=True), np.asarray(x))
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        np.asarray(x, np.float64, copy=False)
