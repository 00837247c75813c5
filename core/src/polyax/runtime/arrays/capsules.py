"""What arrays give to other libraries by the DLPack protocol."""

from __future__ import annotations

from typing import Any

import numpy as np

_OLDEST = (0, 5)
_HOST = (1, 0)


def packed(
    x: Any,
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """A capsule with the contents: their own memory if that is the host's. Takers that speak version 1 are told not to
    write there; older ones must know.

    Raises:
      BufferError: ``x`` lies on several devices, or a version, device, stream or dtype is asked for that can't be had.
      ValueError: ``copy`` is False, and the host has to copy what is in another memory.
    """
    devices = x.devices()
    if len(devices) > 1:
        raise BufferError(
            "to_dlpack can only pack a dlpack tensor from an array on a singular device, but an array with a Sharding "
            f"over {len(devices)} devices was provided."
        )
    if max_version is not None and tuple(max_version) < _OLDEST:
        raise BufferError(
            f"JAX does not support any version below {_OLDEST} but version ({max_version}) was requested."
        )
    if stream is not None:
        raise BufferError(f"__dlpack__: the contents are in host memory, which has no streams; got {stream=}")
    contents = x.__array__()
    if copy is False and not (x.device.backend.in_host_memory and dl_device in (None, _HOST)):
        where = dl_device or _HOST
        raise ValueError(f"__dlpack__: copy=False isn't possible from {x.device} to the DLPack device {where}")
    if copy:
        contents = contents.copy()
    elif max_version is None or max_version[0] < 1:
        contents = _as_if_writable(contents)
    return contents.__dlpack__(dl_device=dl_device, max_version=max_version)


def _as_if_writable(contents: np.ndarray) -> np.ndarray:
    """For capsules that can't say that nobody may write, which NumPy refuses to make of others."""
    view = contents.view()
    try:
        view.flags.writeable = True
    except ValueError:  # the memory was read-only before it came here
        return contents.copy()
    return view
