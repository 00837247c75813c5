"""From text to a function: here is where your compiler is called. What the text may use is defined here as well."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from polyax_kernels.api.emitters import SCALARS
from polyax_kernels.api.host import Function
from polyax_kernels.api.lowerings import REALS

ENDLESS = 1 << 46
"""More bytes than any array has."""


def load(text: str) -> Function:
    """The function ``kernel`` of ``text``. Several threads may call it at once, with ranges that don't overlap.

    ``buffers`` are addresses, one for each operand that isn't scratch; ``scalars`` are int64.
    """
    names: dict[str, Any] = dict(LANGUAGE)
    exec(compile(text, "<kernel>", "exec"), names)

    def function(buffers: Sequence[int], scalars: Sequence[int], begin: int, end: int) -> None:
        with np.errstate(all="ignore"):
            names["kernel"](buffers, scalars, begin, end)

    return function


def memory(address: int, dtype: type[np.generic]) -> np.ndarray:
    """The array that begins at an address; a kernel reads and writes no more of it than there is."""
    return np.frombuffer((ctypes.c_ubyte * ENDLESS).from_address(address), np.uint8).view(dtype)


def scratch(elements: int, points: np.ndarray, dtype: type[np.generic]) -> np.ndarray:
    return np.zeros((max(1, elements), len(points)), dtype)


def put(target: np.ndarray, at: Any, value: Any, mask: Any, points: np.ndarray) -> None:
    """``target[at] = value`` where ``mask`` holds, at each of the points."""
    places = at if isinstance(at, tuple) else (at,)
    inside, value, *places, _ = np.broadcast_arrays(mask, value, *places, points)
    target[tuple(place[inside] for place in places)] = value[inside]


def count(start: int, stop: int) -> Iterator[np.int64]:
    return map(np.int64, range(int(start), int(stop)))


def cast(x: Any, dtype: type[np.generic]) -> np.ndarray:
    """Floats to integers are cut, and saturate; NaN gives 0. Integers to narrower ones wrap."""
    x, target = np.asarray(x), np.dtype(dtype)
    if target.kind not in "iu" or x.dtype.kind in "biu":
        return (x != 0) if target.kind == "b" else x.astype(target)
    ends = np.iinfo(target)
    x = x.astype(np.float64)
    kept = np.where((x > ends.min) & (x < ends.max), x, 0).astype(target)
    return np.where(x >= ends.max, target.type(ends.max), np.where(x <= ends.min, target.type(ends.min), kept))


def bitcast(x: Any, dtype: type[np.generic]) -> np.ndarray:
    return np.asarray(x).view(dtype)


def operation(name: str) -> Callable[..., np.ndarray]:
    """One of the table: the definition that your language has to meet."""
    scalar = SCALARS[name]
    return lambda *args: np.asarray(scalar.numpy(*args), scalar.result(np.asarray(args[-1]).dtype))


LANGUAGE = {
    **{dtype.name: dtype.type for dtype in REALS},
    **{function.__name__: function for function in (memory, scratch, put, count, cast, bitcast)},
    "OPERATIONS": {name: operation(name) for name in SCALARS},
    "arange": np.arange,
    "where": np.where,
    "nan": np.nan,
    "inf": np.inf,
}
