"""``Array``: an immutable array on one device or several, whose contents may still be in the making.

Owns conversions, printing, pickling and life; operators are installed by ``numpy`` through ``trace.operators``.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, Typed
from polyax.ir.primitive import not_repeatable
from polyax.ir.refs import is_ref
from polyax.meshes.formats import Format, row_by_row
from polyax.meshes.memories import DEFAULT
from polyax.meshes.sharding import NamedSharding, Sharding, SingleDeviceSharding, bounds, make_single_device_sharding
from polyax.runtime.arrays import guards
from polyax.runtime.arrays.printing import array_repr
from polyax.runtime.arrays.shards import Shard
from polyax.runtime.contract import edge, questions
from polyax.runtime.contract.backend import Buffer, Device, Seat
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.operators import register_array_type
from polyax.trace.tracer import Tracer


class _ArrayType(type):
    """Tracers are arrays to ``isinstance``, as in JAX: user code asks that to tell arrays from other things. Who needs
    a value asks ``is_concrete``."""

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or (isinstance(instance, Tracer) and not is_ref(instance))


class Array(Typed, metaclass=_ArrayType):
    """An array on a device, or in parts on several. Made by the functions of ``polyax.numpy``, ``polyax.random`` and so
    on, and by ``device_put``; never by calling this class.

    Immutable: ``x.at[i].set(v)`` gives a changed copy. Asynchronous: shape and dtype are known at once, reading the
    contents waits for them.
    """

    __slots__ = ("__weakref__", "_host", "_origin", "_parts", "_seat", "_sharding", "aval", "buffer")
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]  # equality is elementwise

    aval: ShapedArray
    buffer: Any
    """None if it was deleted, or lies on several devices: nobody can take a part for the whole."""
    _seat: Seat | None
    """Its place on its device; None if it lies on several."""
    # what follows is unset in most arrays, as they are made often
    _sharding: Sharding
    _parts: Sequence[Array]
    _host: np.ndarray | None
    _origin: Any
    """Where it was made, if that was noted."""

    def __init__(self, aval: ShapedArray, buffer: Buffer | None, seat: Seat | None) -> None:
        self.aval = aval
        self.buffer = buffer
        self._seat = seat

    @classmethod
    def of_parts(cls, aval: ShapedArray, parts: Sequence[Array], sharding: Sharding) -> Array:
        """The array whose parts, arrays on one device each, lie as ``sharding`` says; those in this process, if
        there are more. They are its own from now on."""
        single = len(parts) == 1 and sharding.num_devices == 1 and not isinstance(sharding, NamedSharding)
        x = cls(aval, parts[0].buffer, parts[0]._seat) if single else cls(aval, None, None)  # a mesh stays a mesh
        x._sharding, x._parts, x._host = sharding, () if single else parts, None
        return x.commit()

    # --- where it is

    @property
    def _device(self) -> Any:
        """Its device; None if it lies on several."""
        return None if self._seat is None else self._seat.device

    @property
    def device(self) -> Any:
        """Its device; its sharding, as in JAX, if there are several."""
        self.alive()
        return self._device or self._sharding

    @property
    def committed(self) -> bool:
        """Whether it was put on its devices by name; arrays that weren't follow those that were."""
        return self._seat is None or self._seat.committed

    _committed = committed  # JAX's name of it, which libraries and tests read

    def commit(self) -> Array:
        if self._seat is not None:
            self._seat = self._seat.device.chosen
        return self

    def committed_alias(self) -> Array:
        """An array with the same contents in the same memory that is committed to where they are."""
        if self.committed:
            return self
        buffer = self.alive()
        buffer.share()
        return Array(self.aval, buffer, self._seat).commit()

    @property
    def parts(self) -> Sequence[Array]:
        """What is on each device of this process: the array itself, if it lies on one."""
        return (self,) if self._device is not None else self._parts

    def devices(self) -> set[Device]:
        self.alive()
        return {self._device} if self._device is not None else self._sharding.device_set

    @property
    def sharding(self) -> Sharding:
        return getattr(self, "_sharding", None) or SingleDeviceSharding(self._device)

    @property
    def format(self) -> Format:
        """In which order its dimensions lie in memory, and where."""
        return Format(row_by_row(self.ndim), self.sharding)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all of it is in this process."""
        return self._device is not None or self._sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        return self.sharding.is_fully_replicated

    @property
    def is_sum(self) -> bool:
        """Whether what devices have are parts of a sum that is still to be made."""
        return (
            self._device is None and isinstance(self._sharding, NamedSharding) and bool(self._sharding.spec.unreduced)
        )

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts in this process, and which they are."""
        return [s for s in self.global_shards if s.data is not None]

    @property
    def global_shards(self) -> list[Shard]:
        """All parts; those of other processes without contents."""
        self.alive()
        seen: list[Any] = []
        found: list[Shard] = []
        here = {x._device: x for x in self.parts}
        sharding = self.sharding
        blocks = sharding.blocks if isinstance(sharding, NamedSharding) else sharding.devices_indices_map
        for device, index in blocks(self.shape).items():
            place = bounds(index, self.shape)
            part = here.get(device)
            if part is not None and part is not self:  # looking at an array doesn't tie it to its device
                part.commit()
            data = None if part is None else self._in_its_memory(part)
            found.append(Shard(device, index, seen.count(place), data))
            seen.append(place)
        return found

    def addressable_data(self, index: int) -> Array:
        """The part of the array on its ``index``-th device."""
        self.alive()
        return self._in_its_memory(self.parts[index])

    def _in_its_memory(self, part: Array) -> Array:
        """What lies in other memory than the device's own has a sharding that says so."""
        kind = self.sharding.memory_kind
        if part is self or kind in (None, DEFAULT):
            return part
        return Array.of_parts(part.aval, [part], make_single_device_sharding(part.device, memory_kind=kind))

    def unsafe_buffer_pointer(self) -> int:
        """The address of the contents on its device, which has to be one; whoever writes there breaks promises."""
        buffer = self.alive()
        if buffer is None:
            raise ValueError(
                f"an array on several devices has several addresses: ask its parts. It lies as {self.sharding}"
            )
        return questions.address(buffer, self._device)

    def platform(self) -> str:
        return self.sharding.device_list[0].platform

    def on_device_size_in_bytes(self) -> int:
        return sum(x.nbytes for x in self.parts)

    # --- its life

    def is_ready(self) -> bool:
        """Whether reading the contents would not wait."""
        self.alive()
        return all(questions.ready(x.buffer, x._device) for x in self.parts)

    @api_boundary
    def block_until_ready(self) -> Array:
        """Waits for the contents; raises the error of the computation that was to make them."""
        buffer = self.alive()
        if buffer is not None:  # nearly always: it lies on one device
            self._wait(buffer)
            return self
        for x in self.parts:
            x._wait(x.buffer)
        return self

    def _wait(self, buffer: Any) -> None:
        try:
            buffer.wait()
        except Exception as e:
            edge.late(e, buffer, self.aval, self.device)
            raise

    def copy_to_host_async(self) -> None:
        """Does nothing yet that ``np.asarray`` would not do in time; host devices share their memory anyway."""
        self.alive()

    def delete(self) -> None:
        """Frees the memory now. Using the array afterwards is an error."""
        for x in self.parts:
            x.buffer = None

    def is_deleted(self) -> bool:
        return any(x.buffer is None for x in self.parts)

    def alive(self) -> Any:
        """The buffer, unless the array was deleted; None if it lies on several devices."""
        if self.buffer is None and self.is_deleted():
            raise RuntimeError(f"Array has been deleted with shape={self.aval.str_short()}.")
        return self.buffer

    # --- as NumPy arrays and Python scalars

    def host_value(self) -> np.ndarray:
        """The contents on the host, read-only; of an extended dtype, those of its representation."""
        not_repeatable()
        if self._device is not None:
            if guards.on and not self._device.backend.in_host_memory:
                guards.passes("device_to_host", self.aval, self._device)
            value = edge.to_host(self.alive(), self.aval.stored, self._device)
            return value.view(self.aval.dtype) if self.aval.dtype in dtypes.NARROW else value
        self.alive()
        if self._host is None:
            self._host = _joined_on_host(self)
        return self._host

    @api_boundary
    def __array__(self, dtype: Any = None, context: None = None, copy: bool | None = None) -> np.ndarray:
        if dtypes.is_extended(self.aval.dtype):
            raise TypeError(
                "JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use polyax.random.key_data(arr) if "
                "you wish to extract the underlying integer array."
            )
        return np.asarray(self.host_value(), dtype, copy=copy)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        from polyax.runtime.arrays import capsules  # seldom asked for

        return capsules.packed(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        if self._seat is None and len(self.devices()) > 1:
            raise BufferError("__dlpack__ only supported for unsharded arrays.")
        return (1, 0)  # host memory

    def _scalar(self) -> Any:
        if self.aval.shape:
            raise TypeError(f"Only scalar arrays can be converted to Python scalars; got arr.ndim={self.ndim}")
        return self.__array__()[()]

    def _real_scalar(self, wanted: str) -> Any:
        scalar = self._scalar()
        if self.dtype.kind == "c":
            raise TypeError(f"{wanted} or a real number, not 'complex'")
        return scalar

    @api_boundary
    def __float__(self) -> float:
        return float(self._real_scalar("float() argument must be a string"))

    @api_boundary
    def __int__(self) -> int:
        return int(self._real_scalar("int() argument must be a string, a bytes-like object"))

    @api_boundary
    def __complex__(self) -> complex:
        return complex(self._scalar())

    @api_boundary
    def __index__(self) -> int:
        if self.aval.shape or not dtypes.is_integer(self.dtype):
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
        if dtypes.is_extended(self.dtype):
            raise TypeError("key array cannot be converted to boolean.")
        return bool(self.host_value().reshape(())[()])

    @api_boundary
    def item(self, *args: int) -> Any:
        """The element at an index, or the only one, as a Python scalar."""
        if not args and self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return np.asarray(self).item(*args)

    def tolist(self) -> Any:
        return np.asarray(self).tolist()

    def __bytes__(self) -> bytes:
        return self.tobytes()

    def tobytes(self, order: str = "C") -> bytes:
        return np.asarray(self).tobytes(order)  # type: ignore[arg-type]

    # --- as text

    @api_boundary
    def __repr__(self) -> str:
        if self.is_sum:
            return f"Array(shape={self.shape}, dtype={self.dtype.name}, sharding={self.sharding})"
        if not _is_here(self):
            return f"Array(shape={self.shape}, dtype={self.dtype.name})"
        return array_repr(self.host_value(), self.aval)

    def __str__(self) -> str:
        shown = not self.is_sum and not dtypes.is_extended(self.dtype) and _is_here(self)
        return str(self.host_value()) if shown else repr(self)

    def __format__(self, spec: str) -> str:
        if self.is_sum:
            return repr(self)
        if dtypes.is_extended(self.dtype):
            return format(str(self), spec)
        value = np.asarray(self)
        return format(value if value.ndim else value[()], spec)

    # --- copies

    def __copy__(self) -> Array:
        if self._device is None:
            return Array.of_parts(self.aval, [x.__copy__() for x in self.parts], self._sharding)
        copied = edge.copy(self.alive(), self.aval.stored, self._device, self._device)
        return Array(self.aval, copied, self._seat)

    def __deepcopy__(self, memo: Any) -> Array:
        return self.__copy__()

    @api_boundary
    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(
            f"'{type(self)}' object does not support item assignment. JAX arrays are immutable. Instead of "
            "``x[idx] = y``, use ``x = x.at[idx].set(y)`` or another .at[] method"
        )


register_array_type(Array)


def all_arrays() -> list[Array]:
    """Asked seldom, so that nobody keeps a list: the garbage collector knows them all, as they refer to their class.

    It isn't asked for all objects: among them are tuples that other threads are just making, and CPython ends that with
    a SystemError while somebody else has a reference to such a tuple.
    """
    return [x for x in gc.get_referrers(Array) if type(x) is Array and _is_made(x)]


def _is_made(x: Array) -> bool:
    """Another thread may be at it: the collector knows of objects that have nothing yet."""
    return hasattr(x, "_seat") and (x._seat is not None or hasattr(x, "_parts"))


def is_concrete(x: Any) -> TypeGuard[Array]:
    """Whether ``x`` is an array with a value; ``isinstance(x, Array)`` holds for tracers too."""
    return type(x) is Array


def _is_here(x: Array) -> bool:
    """Whether this process has all of it."""
    return x.is_fully_addressable or (x.is_fully_replicated and bool(x.parts))


def check_addressable(x: Array) -> None:
    """Raises RuntimeError if parts that are needed are in other processes."""
    if not _is_here(x):
        raise RuntimeError(
            "Fetching value for `jax.Array` that spans non-addressable (non process local) devices is not possible. "
            "You can use `jax.experimental.multihost_utils.process_allgather` to print the global array or use "
            "`.addressable_shards` method of jax.Array to inspect the addressable (process local) shards. "
            f"It has the type {x.aval} and lies on {len(x.sharding.device_list)} devices, {len(x.parts)} of them in "
            "this process."
        )


def _joined_on_host(x: Array) -> np.ndarray:
    check_addressable(x)
    if x.is_sum:
        x.sharding.devices_indices_map(x.shape)  # raises: no device has the value
    if x.is_fully_replicated:
        return x.parts[0].host_value()
    shards = [s for s in x.addressable_shards if s.replica_id == 0]
    contents = [s.data.host_value() for s in shards]
    more = contents[0].shape[x.ndim :]  # of the representation of an extended dtype
    value = np.empty((*x.shape, *more), contents[0].dtype)
    for shard, part in zip(shards, contents, strict=True):
        value[shard.index] = part
    value.flags.writeable = False
    return value
