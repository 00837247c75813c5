"""``polyax.dlpack``: arrays of other libraries, through the protocol that they share."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray
from polyax.runtime.arrays.array import Array, is_concrete
from polyax.runtime.arrays.placing import device_put, from_host
from polyax.runtime.contract import edge
from polyax.runtime.contract.backend import Device
from polyax.runtime.plugins.default_device import default_device_now

__all__ = ["from_dlpack", "is_supported_dtype"]

_HOST = (1, 3, 11, 13)  # memory that the host reads: its own, pinned by CUDA or ROCm, managed


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Any:
    """An array with the contents of another library's, on ``device`` or the default one.

    As in JAX it shares the memory where it can, so it shows what the other library writes there later: where the
    device works on the host's memory, the contents lie row by row, and their address is aligned.

    Args:
      external_array: has the methods ``__dlpack__`` and ``__dlpack_device__``, as arrays of NumPy and PyTorch have.
      copy: True for memory of its own, False for an error where one is needed.

    Raises:
      TypeError: it has no such methods, or a dtype that isn't supported.
      ValueError: ``copy`` is False, and a copy is needed.
      BufferError: it is in memory that the host can't read.

    >>> from_dlpack(np.ones(2, np.float32)).tolist()
    [1.0, 1.0]
    """
    if not hasattr(external_array, "__dlpack__") or not hasattr(external_array, "__dlpack_device__"):
        raise TypeError("The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods.")
    target = device if isinstance(device, Device) else default_device_now()
    host, why = _on_host(external_array), "it was asked for"
    if copy is not True:
        made, why = _shared(host, target)
        if made is not None:
            return made if device in (None, target) else device_put(made, device, may_alias=copy)
    if copy is False:
        raise ValueError(
            f"Specified input which requires a copy since {why}.  However copy=False. Set copy=True or copy=None to "
            "perform the requested operation."
        )
    made = from_host(host.astype(dtypes.canonicalize(host.dtype), copy=False), target)
    return made.commit() if device in (None, target) else device_put(made, device)


def _on_host(x: Any) -> np.ndarray:
    """The contents, where they are if the host sees them there."""
    if is_concrete(x):
        return x.host_value()
    kind, number = x.__dlpack_device__()
    if int(kind) not in _HOST:
        raise BufferError(
            f"from_dlpack: the array is in memory of the DLPack device {(int(kind), number)}, which the host can't "
            "read; bring it to the host first"
        )
    return np.from_dlpack(x)


def _shared(host: np.ndarray, device: Device) -> tuple[Array | None, str]:
    """An array in the same memory, or the reason why there can't be one."""
    if dtypes.canonicalize(host.dtype) != host.dtype:
        return None, f"arrays of {host.dtype} become {dtypes.canonicalize(host.dtype)}"
    if not host.flags.c_contiguous:
        return None, f"the contents don't lie row by row: the strides of shape {host.shape} are {host.strides} bytes"
    if not host.size:  # nothing to share, and nothing that a copy would change
        return from_host(host, device).commit(), ""
    aval = ShapedArray(host.shape, host.dtype)
    buffer = edge.adopt(host.view(aval.stored.dtype), aval, device)
    if buffer is None:
        return None, f"the source data buffer is not aligned to 64 bytes, or {device} has memory of its own"
    return Array(aval, buffer, device.chosen), ""


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be exchanged.

    Raises:
      TypeError: it is no dtype.
    """
    return dtypes.as_dtype(dtype) in dtypes.ALL
