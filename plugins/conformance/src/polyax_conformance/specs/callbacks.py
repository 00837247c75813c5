"""What tests of callbacks call, and how they see what was called."""

from __future__ import annotations

from typing import Any

import numpy as np

import polyax

SCALAR = polyax.ShapeDtypeStruct((), np.float32)
X = np.arange(4, dtype=np.float32)


def double(x: Any) -> Any:
    return (2 * x).astype(x.dtype)


def pure(x: Any, method: str = "sequential") -> Any:
    return polyax.pure_callback(double, polyax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method=method)


class Log:
    """Counts calls, and keeps what they got."""

    def __init__(self) -> None:
        self.seen: list[list[Any]] = []

    def __call__(self, *args: Any) -> None:
        self.seen.append([np.asarray(a).tolist() for a in args])

    def number(self, x: Any) -> np.float32:
        self(x)
        return np.float32(len(self.seen))

    def take(self) -> list[Any]:
        polyax.effects_barrier()
        seen, self.seen = [x[0] if len(x) == 1 else x for x in self.seen], []
        return seen
