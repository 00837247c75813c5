"""The printed form of arrays, which is JAX's: NumPy's digits inside ``Array(..., dtype=...)``."""

from __future__ import annotations

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray

_PREFIX = "Array("


def array_repr(value: np.ndarray, aval: ShapedArray) -> str:
    """``Array([1., 2.], dtype=float32)``.

    >>> array_repr(np.float32([1, 2]), ShapedArray((2,), np.dtype("float32"), weak_type=True))
    'Array([1., 2.], dtype=float32, weak_type=True)'
    """
    if dtypes.is_extended(aval.dtype):
        return f"{_PREFIX}{aval.shape}, dtype={aval.dtype}) overlaying:\n{value}"
    kind = f"dtype={aval.dtype.name}{', weak_type=True' if aval.weak_type else ''})"
    body = _body(value)
    last_line = len(body) - (body.rfind("\n") + 1)
    room = last_line + len(kind) + 1 <= np.get_printoptions()["linewidth"]
    return f"{_PREFIX}{body},{' ' if room else ' ' * len(_PREFIX)}{kind}"


def _body(value: np.ndarray) -> str:
    if value.size == 0:
        return f"[], shape={value.shape}"
    return np.array2string(value, separator=", ", prefix=_PREFIX, suffix=",")
