"""``Array``: an immutable array on a device, whose contents may still be in the making.

Owns conversions, printing, pickling and life; operators are installed by ``numpy`` through ``trace.operators``.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, Typed
from polyax.runtime.arrays.printing import array_repr
from polyax.runtime.arrays.sharding import Shard, SingleDeviceSharding
from polyax.runtime.contract.backend import Buffer, Device
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.operators import register_array_type
from polyax.trace.tracer import Tracer


class _ArrayType(type):
    """Tracers are arrays to ``isinstance``, as in JAX: user code asks that to tell arrays from other things."""

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, Tracer)


class Array(Typed, metaclass=_ArrayType):
    """An array on a device. Made by the functions of ``polyax.numpy``, ``polyax.random`` and so on, and by
    ``device_put``; never by calling this class.

    Immutable: ``x.at[i].set(v)`` gives a changed copy. Asynchronous: shape and dtype are known at once, reading the
    contents waits for them.
    """

    __slots__ = ("__weakref__", "_committed", "_device", "aval", "buffer")
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]  # equality is elementwise

    aval: ShapedArray
    buffer: Buffer
    _device: Device
    _committed: bool  # unset is False: arrays are made often

    def __init__(self, aval: ShapedArray, buffer: Buffer, device: Device) -> None:
        self.aval = aval
        self.buffer = buffer
        self._device = device

    # --- where it is

    @property
    def device(self) -> Device:
        return self._device

    @property
    def committed(self) -> bool:
        """Whether it was put on its device by name; arrays that weren't follow those that were."""
        return getattr(self, "_committed", False)

    def commit(self) -> Array:
        self._committed = True
        return self

    def devices(self) -> set[Device]:
        return {self._device}

    @property
    def sharding(self) -> SingleDeviceSharding:
        return SingleDeviceSharding(self._device)

    @property
    def is_fully_addressable(self) -> bool:
        return True

    @property
    def is_fully_replicated(self) -> bool:
        return True

    @property
    def addressable_shards(self) -> list[Shard]:
        return [Shard(self._device, (slice(None),) * self.ndim, 0, self)]

    @property
    def global_shards(self) -> list[Shard]:
        return self.addressable_shards

    def addressable_data(self, index: int) -> Array:
        """The part of the array on its ``index``-th device; there is one device."""
        return self.addressable_shards[index].data

    def platform(self) -> str:
        return self._device.platform

    def on_device_size_in_bytes(self) -> int:
        return self.nbytes

    # --- its life

    def is_ready(self) -> bool:
        """Whether reading the contents would not wait."""
        return self.alive().ready()

    @api_boundary
    def block_until_ready(self) -> Array:
        """Waits for the contents; raises the error of the computation that was to make them."""
        self.alive().wait()
        return self

    def copy_to_host_async(self) -> None:
        """Does nothing yet that ``np.asarray`` would not do in time; host devices share their memory anyway."""
        self.alive()

    def delete(self) -> None:
        """Frees the memory now. Using the array afterwards is an error."""
        self.buffer = None  # type: ignore[assignment]

    def is_deleted(self) -> bool:
        return self.buffer is None  # pyright: ignore[reportUnnecessaryComparison]

    def alive(self) -> Buffer:
        """The buffer, unless the array was deleted."""
        if self.buffer is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise RuntimeError(f"Array has been deleted with shape={self.aval}.")
        return self.buffer

    # --- as NumPy arrays and Python scalars

    def host_value(self) -> np.ndarray:
        """The contents on the host, read-only; of an extended dtype, those of its representation."""
        return self._device.backend.to_host(self.alive(), self.aval)

    @api_boundary
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if dtypes.is_extended(self.aval.dtype):
            raise TypeError(
                "JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use polyax.random.key_data(arr) if "
                "you wish to extract the underlying integer array."
            )
        value = self.host_value()
        if copy or (dtype is not None and np.dtype(dtype) != value.dtype):
            return value.astype(dtype or value.dtype)
        return value

    def __dlpack__(self, **options: Any) -> Any:
        return self.host_value().copy().__dlpack__(**options)  # a copy, as whoever takes it may write to it

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # host memory

    def _scalar(self) -> Any:
        if self.aval.shape:
            raise TypeError(f"Only scalar arrays can be converted to Python scalars; got arr.ndim={self.ndim}")
        return self.host_value()[()]

    @api_boundary
    def __float__(self) -> float:
        return float(self._scalar())

    @api_boundary
    def __int__(self) -> int:
        return int(self._scalar())

    @api_boundary
    def __complex__(self) -> complex:
        return complex(self._scalar())

    @api_boundary
    def __index__(self) -> int:
        if self.aval.shape or not (dtypes.is_integer(self.dtype) or self.dtype in dtypes.BOOL):
            raise TypeError("Only integer scalar arrays can be converted to a scalar index.")
        return int(self.host_value()[()])

    @api_boundary
    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
            )
        if not self.size:
            raise ValueError(
                "The truth value of an empty array is ambiguous. "
                "Use `array.size > 0` to check that an array is not empty."
            )
        return bool(self.host_value().reshape(())[()])

    @api_boundary
    def item(self, *args: int) -> Any:
        """The element at an index, or the only one, as a Python scalar."""
        if not args and self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return np.asarray(self).item(*args)

    def tolist(self) -> Any:
        return np.asarray(self).tolist()

    def tobytes(self, order: str = "C") -> bytes:
        return np.asarray(self).tobytes(order)  # type: ignore[arg-type]

    # --- as text

    @api_boundary
    def __repr__(self) -> str:
        return array_repr(self.host_value(), self.aval)

    def __str__(self) -> str:
        return repr(self) if dtypes.is_extended(self.dtype) else str(self.host_value())

    def __format__(self, spec: str) -> str:
        value = np.asarray(self)
        return format(value if value.ndim else value[()], spec)

    # --- copies

    def __copy__(self) -> Array:
        copied = self._device.backend.copy(self.alive(), self.aval, self._device, self._device)
        return Array(self.aval, copied, self._device)

    def __deepcopy__(self, memo: Any) -> Array:
        return self.__copy__()

    @api_boundary
    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(
            f"'{type(self)}' object does not support item assignment. JAX arrays are immutable. Instead of "
            "``x[idx] = y``, use ``x = x.at[idx].set(y)`` or another .at[] method"
        )


def all_arrays() -> list[Array]:
    """Those of one device each; asked seldom, so that nobody keeps a list: the garbage collector knows them all."""
    return [x for x in gc.get_objects() if type(x) is Array]


register_array_type(Array)
