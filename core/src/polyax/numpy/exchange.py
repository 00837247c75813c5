"""Arrays that other libraries share."""

from __future__ import annotations

from typing import Any

from polyax import dlpack

__all__ = ["from_dlpack"]


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """An array with the contents of another library's: ``polyax.dlpack.from_dlpack``.

    Raises:
      TypeError: it can't be shared, or has a dtype that isn't supported.
      ValueError: ``copy`` is False, and a copy is needed.
      BufferError: it is in memory that the host can't read.

    >>> import numpy as np
    >>> from_dlpack(np.ones(2, np.float32)).tolist()
    [1.0, 1.0]
    """
    return dlpack.from_dlpack(x, device, copy)
