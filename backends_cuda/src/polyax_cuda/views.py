"""Memory of a plan as CuPy arrays, and what the libraries behind CuPy need to know of them."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import cupy
import numpy as np

STORED = {"bfloat16": np.dtype("uint16")}
"""How arrays are typed whose elements CuPy doesn't compute with."""


def arrays(views: Sequence[Any]) -> list[Any]:
    return [array(v) for v in views]


def array(view: Any) -> Any:
    """The memory of a view, which stays where it is."""
    dtype = view.aval.dtype
    return cupy.ndarray(view.aval.shape, STORED.get(dtype.name, dtype), view.memory + view.offset)


def address(x: Any) -> int:
    """Where an array begins, on the device."""
    return x.data.ptr


def addresses(stack: Any) -> Any:
    """An array of the places of the stack's items, as functions for batches take them."""
    start, step = address(stack), stack.strides[0]
    return cupy.arange(start, start + step * len(stack), step, dtype=np.uint64)


@cache
def why_missing(module: str, library: str, distribution: str) -> str | None:
    """None if the library behind a module of CuPy can be loaded, else how to get it."""
    try:
        importlib.import_module(module)
    except ImportError as e:
        return f"{library} can't be loaded ({str(e).splitlines()[0]}); pip install {distribution}"
    return None
