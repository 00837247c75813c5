"""What arrays give to other libraries by the DLPack protocol."""

from __future__ import annotations

from typing import Any

import numpy as np

_OLDEST = (0, 5)


def packed(
    x: Any,
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """A capsule with a copy of the contents, in host memory: whoever takes it may write to it.

    Raises:
      BufferError: ``x`` lies on several devices, or a version, device, stream or dtype is asked for that can't be had.
      ValueError: ``copy`` is False.
    """
    devices = x.devices()
    if len(devices) > 1:
        raise BufferError(
            "to_dlpack can only pack a dlpack tensor from an array on a singular device, but an array with a Sharding "
            f"over {len(devices)} devices was provided."
        )
    if copy is False:
        raise ValueError("__dlpack__: copy=False isn't possible: contents of arrays never change, those of others may")
    if max_version is not None and tuple(max_version) < _OLDEST:
        raise BufferError(
            f"JAX does not support any version below {_OLDEST} but version ({max_version}) was requested."
        )
    if stream is not None:
        raise BufferError(f"__dlpack__: the copy is in host memory, which has no streams; got {stream=}")
    return np.array(x).__dlpack__(dl_device=dl_device, max_version=max_version)
