"""``polyax.dlpack``: arrays of other libraries, through the protocol that they share."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.runtime.arrays.placing import device_put, from_host

__all__ = ["from_dlpack", "is_supported_dtype"]

_HOST = (1, 3, 11, 13)  # memory that the host reads: its own, pinned by CUDA or ROCm, managed


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Any:
    """An array with the contents of another library's, on ``device`` or the default one.

    Args:
      external_array: has the methods ``__dlpack__`` and ``__dlpack_device__``, as arrays of NumPy and PyTorch have.
      copy: None and True copy, as contents of arrays here never change.

    Raises:
      TypeError: it has no such methods, or a dtype that isn't supported.
      ValueError: ``copy`` is False.
      BufferError: it is in memory that the host can't read.

    >>> from_dlpack(np.ones(2, np.float32)).tolist()
    [1.0, 1.0]
    """
    if not hasattr(external_array, "__dlpack__") or not hasattr(external_array, "__dlpack_device__"):
        raise TypeError("The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods.")
    if copy is False:
        raise ValueError("from_dlpack: copy=False isn't possible: contents of arrays never change, those of others may")
    if hasattr(external_array, "aval"):
        return external_array if device is None else device_put(external_array, device)
    kind, number = external_array.__dlpack_device__()
    if int(kind) not in _HOST:
        raise BufferError(
            f"from_dlpack: the array is in memory of the DLPack device {(int(kind), number)}, which the host can't "
            "read; bring it to the host first"
        )
    host = np.array(np.from_dlpack(external_array))
    made = from_host(host.astype(dtypes.canonicalize(host.dtype), copy=False))
    return made if device is None else device_put(made, device)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be exchanged.

    Raises:
      TypeError: it is no dtype.
    """
    return dtypes.as_dtype(dtype) in dtypes.ALL
