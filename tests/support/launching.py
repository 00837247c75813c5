"""Launches on a device, called directly with NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray


def run(runtime: Any, launches: Callable[..., None], operands: Sequence[np.ndarray], out: ShapedArray) -> np.ndarray:
    """The result of ``launches``, functions of (memory, offset) of each operand and of the result."""
    places = [(runtime.allocate(a.nbytes), 0) for a in operands]
    for x, (memory, _) in zip(operands, places, strict=True):
        runtime.write(memory, 0, np.ascontiguousarray(x))
    result, target = np.zeros(out.shape, out.dtype), runtime.allocate(out.nbytes)
    launches(*places, (target, 0))
    runtime.read(target, 0, result)
    return result
