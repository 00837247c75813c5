"""Fourier transforms by NumPy; large ones by SciPy, which computes several values at a time on several threads. Loading
it takes a quarter of a second, and it is large: where it isn't installed, NumPy does all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax_kernels.host.threads import num_threads

NAMES = {"FFT": "fftn", "IFFT": "ifftn", "RFFT": "rfftn", "IRFFT": "irfftn"}
PARALLEL_SIZE = 1 << 14
"""Fewer elements are transformed by NumPy."""

Arrays = Sequence[np.ndarray]


def transform(x: ShapedArray, kind: str, lengths: Sequence[int]) -> Callable[[Arrays, Arrays], None]:
    """The function of results and operands that transforms the last dimensions, whose sizes are ``lengths``."""
    axes = tuple(range(x.ndim - len(lengths), x.ndim))
    compute = (_fast if x.size >= PARALLEL_SIZE else _plain)(NAMES[kind])

    def run(outs: Arrays, args: Arrays) -> None:
        outs[0][...] = compute(args[0], lengths, axes)

    return run


def _plain(name: str) -> Callable[..., Any]:
    return getattr(np.fft, name)


def _fast(name: str) -> Callable[..., Any]:
    try:
        import scipy.fft
    except ImportError:
        return _plain(name)
    return functools.partial(getattr(scipy.fft, name), workers=num_threads())
