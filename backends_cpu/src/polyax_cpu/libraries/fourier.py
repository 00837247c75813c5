"""Fourier transforms by DUCC, the fastest, else by SciPy or NumPy: along one axis after the other.

Threads share what many lines there are. Libraries compute several lines at a time and the others alone, which rounds
otherwise: so parts begin where a library begins with several, whatever their number.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax_cpu.libraries.sharing import share

PARALLEL_SIZE = 1 << 14
"""Fewer elements are transformed in one thread, and not worth to load SciPy, which takes a quarter of a second."""
TOGETHER = 16
"""Lines that a library may compute at a time, as many as single numbers fit into a register: parts have multiples."""
PAGE, BLOCK = 4096, 1 << 18
"""Places that are a multiple of the first apart drive each other from the cache, which holds so many bytes nearby."""

Arrays = Sequence[np.ndarray]
AlongAxis = Callable[[np.ndarray, np.ndarray, int], None]
"""Of an operand, its result, and an axis of both."""


def transform(x: ShapedArray, kind: str, lengths: Sequence[int]) -> Callable[[Arrays, Arrays], None]:
    """The function of results and operands that transforms the last dimensions, whose sizes are ``lengths``."""
    axes = range(x.ndim - len(lengths), x.ndim)
    library, large = _library(x.size), x.size >= PARALLEL_SIZE
    if kind == "IRFFT":
        steps = [*((library["IFFT"], axis) for axis in axes[:-1]), (library[kind], axes[-1])]
    else:
        others = "IFFT" if kind == "IFFT" else "FFT"
        steps = [(library[kind], axes[-1]), *((library[others], axis) for axis in axes[:-1])]

    def run(outs: Arrays, args: Arrays) -> None:
        found, out = args[0], outs[0]
        between = np.empty_like(found) if kind == "IRFFT" else out
        for (compute, axis), into in zip(steps, [*[between] * (len(steps) - 1), out], strict=True):
            _each(compute, found, into, axis, large)
            found = into

    return run


def _each(compute: AlongAxis, x: np.ndarray, out: np.ndarray, axis: int, large: bool) -> None:
    """All lines along an axis: those of large arrays in parts of what is before it, or behind it if that is more."""
    before, behind = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    rest = (behind,) if behind != 1 else ()
    x, out = (a.reshape(before, a.shape[axis], *rest) for a in (x, out))
    if not large:
        return compute(x, out, 1)

    def rows(begin: int, end: int) -> None:
        compute(x[begin:end], out[begin:end], 1)

    def columns(begin: int, end: int) -> None:  # of one plane after the other: ends of all would be lines together
        for plane, into in zip(x, out, strict=True):
            compute(plane[:, begin:end], into[:, begin:end], 0)

    share(max(before, behind), rows if before >= behind else columns, TOGETHER)


# --- libraries -------------------------------------------------------------------------------------------------------


def _library(size: int) -> dict[str, AlongAxis]:
    if (ducc := _found("ducc0")) is not None:
        return _ducc(ducc.fft)
    scipy = _found("scipy.fft") if size >= PARALLEL_SIZE else None
    return {kind: _numpy(scipy or np.fft, kind) for kind in ("FFT", "IFFT", "RFFT", "IRFFT")}


def _found(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _ducc(fft: Any) -> dict[str, AlongAxis]:
    back: dict[str, Any] = {"forward": False, "inorm": 2}
    of_kinds: dict[str, AlongAxis] = {
        "FFT": lambda x, out, axis: fft.c2c(x, (axis,), out=out),
        "IFFT": lambda x, out, axis: fft.c2c(x, (axis,), out=out, **back),
        "RFFT": lambda x, out, axis: fft.r2c(x, (axis,), out=out),
        "IRFFT": lambda x, out, axis: fft.c2r(x, (axis,), out.shape[axis], out=out, **back),
    }
    return {kind: _apart(compute) for kind, compute in of_kinds.items()}


def _apart(compute: AlongAxis) -> AlongAxis:
    """By way of blocks whose rows are a little more than pages apart, where those of operand or result are pages."""

    def run(x: np.ndarray, out: np.ndarray, axis: int) -> None:
        size = BLOCK // max(x.strides[0], out.strides[0], 1) // TOGETHER * TOGETHER
        if (x.ndim, axis) != (2, 1) or not size or len(x) == 1 or all(a.strides[0] % PAGE for a in (x, out)):
            return compute(x, out, axis)
        found, made = (_padded(a, min(size, len(x))) for a in (x, out))
        for first in range(0, len(x), size):
            rows = slice(first, first + size)
            count = len(x[rows])
            np.copyto(found[:count], x[rows])
            compute(found[:count], made[:count], axis)
            np.copyto(out[rows], made[:count])

    return run


def _padded(like: np.ndarray, rows: int) -> np.ndarray:
    return np.empty((rows, like.shape[1] + TOGETHER), like.dtype)[:, : like.shape[1]]


def _numpy(module: Any, kind: str) -> AlongAxis:
    """Of NumPy, or a module with its functions."""
    compute = getattr(module, kind.lower())

    def run(x: np.ndarray, out: np.ndarray, axis: int) -> None:
        out[...] = compute(x, out.shape[axis] if kind == "IRFFT" else None, axis)

    return run
