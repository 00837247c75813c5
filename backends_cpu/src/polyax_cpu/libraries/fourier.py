"""Fourier transforms by DUCC, the fastest, else by SciPy or NumPy: along one axis after the other.

Threads share what many lines there are. Libraries compute several lines at a time and the others alone, which rounds
otherwise: so parts begin where a library begins with several, whatever their number.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax_cpu.libraries.sharing import share

PARALLEL_SIZE = 1 << 14
"""Fewer elements are transformed in one thread, and not worth to load SciPy, which takes a quarter of a second."""
TOGETHER = 16
"""Lines that a library may compute at a time, as many as single numbers fit into a register: parts have multiples."""
PAGE, WAYS = 4096, 8
"""Of the nearest cache, which holds this many places that are a multiple of a page apart."""

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
    """All lines along an axis: those of large arrays in parts of the largest other dimension."""
    along = max((n for n in range(x.ndim) if n != axis), key=lambda n: x.shape[n], default=axis)
    if along == axis or not large:
        return compute(x, out, axis)
    before = (slice(None),) * along

    def part(begin: int, end: int) -> None:
        lines = (*before, slice(begin, end))
        compute(x[lines], out[lines], axis)

    share(x.shape[along], part, TOGETHER)


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
    return {kind: _by_sets(compute) for kind, compute in of_kinds.items()}


def _by_sets(compute: AlongAxis) -> AlongAxis:
    """Few rows at a time, where they start multiples of a page apart: of more, one drives the other from the cache."""

    def run(x: np.ndarray, out: np.ndarray, axis: int) -> None:
        row = x.ndim - 2
        if axis != x.ndim - 1 or row < 0 or x.shape[row] <= WAYS or all(a.strides[row] % PAGE for a in (x, out)):
            return compute(x, out, axis)
        for first in range(0, x.shape[row], WAYS):
            lines = (..., slice(first, first + WAYS), slice(None))
            compute(x[lines], out[lines], axis)

    return run


def _numpy(module: Any, kind: str) -> AlongAxis:
    """Of NumPy, or a module with its functions."""
    compute = getattr(module, kind.lower())

    def run(x: np.ndarray, out: np.ndarray, axis: int) -> None:
        out[...] = compute(x, out.shape[axis] if kind == "IRFFT" else None, axis)

    return run
