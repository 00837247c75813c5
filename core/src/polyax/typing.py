"""``polyax.typing``: what functions take, for annotations."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from polyax.runtime.arrays.array import Array

__all__ = ["ArrayLike", "DTypeLike"]


class SupportsDType(Protocol):
    """What has a dtype."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        ...


ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
"""What can be made an array without being a sequence: arrays (traced ones too), NumPy's arrays and scalars, numbers."""

DTypeLike = str | type[Any] | np.dtype | SupportsDType
"""What names a dtype; None isn't among it."""
