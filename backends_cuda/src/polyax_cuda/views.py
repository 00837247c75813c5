"""Memory of a plan as CuPy arrays, and whether the libraries behind CuPy are there."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import cupy
import numpy as np

STORED = {"bfloat16": np.dtype("uint16")}
"""How arrays are typed whose elements CuPy doesn't compute with."""


def array(view: Any) -> Any:
    """The memory of a view, which stays where it is."""
    dtype = view.aval.dtype
    return cupy.ndarray(view.aval.shape, STORED.get(dtype.name, dtype), view.memory + view.offset)


def address(x: Any) -> int:
    """Where an array begins, on the device."""
    return x.data.ptr


@cache
def why_missing(module: str, library: str, distribution: str) -> str | None:
    """None if a module that needs a library can be imported, else how to get it."""
    try:
        importlib.import_module(module)
    except ImportError as e:
        return f"{library} can't be loaded ({str(e).splitlines()[0]}); pip install {distribution}"
    return None
