"""Things that are indexed instead of called: ``mgrid``, ``r_`` and their kin; printing and files."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.numpy.arrays import asarray
from polyax.numpy.grids import meshgrid
from polyax.numpy.joining import concatenate
from polyax.numpy.promotion import as_array, promote_dtypes, refuse_traced
from polyax.numpy.ranges import arange, linspace
from polyax.numpy.shapes import atleast_1d, expand_dims

__all__ = [
    "array_repr", "array_str", "c_", "get_printoptions", "index_exp", "load", "mgrid", "ogrid", "printoptions", "r_",
    "s_", "save", "savez", "set_printoptions",
]  # fmt: skip

index_exp, s_ = np.index_exp, np.s_
printoptions, get_printoptions = np.printoptions, np.get_printoptions
array_repr, array_str = np.array_repr, np.array_str
save, savez = np.save, np.savez


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """How arrays are printed from now on: NumPy's ``set_printoptions``, as arrays are printed as NumPy's are."""
    np.set_printoptions(*args, **kwargs)


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """The array of a file that ``save`` has written; what isn't numeric stays as NumPy loads it.

    NumPy's files don't name the type bfloat16: its elements come back as two bytes without a meaning.
    """
    found = np.load(file, *args, **kwargs)
    if isinstance(found, np.ndarray) and found.dtype == np.dtype("V2"):
        found = found.view(dtypes.bfloat16)
    try:
        return asarray(found) if isinstance(found, np.ndarray) else found
    except TypeError:  # a dtype that only NumPy has, such as object
        return found


def _stretch(s: slice, name: str) -> Any:
    """``start:stop:step``, or ``start:stop:5j`` for five points with both ends."""
    start, stop, step = (
        refuse_traced(getattr(s, part), f"slice {part} of jnp.{name}") for part in ("start", "stop", "step")
    )
    if isinstance(step, complex):
        return linspace(start or 0, stop, int(abs(step)))
    return arange(start or 0, stop, step)


class _Grid:
    """``grid[0:3, 0:1:5j]``: coordinates of all points, together or as vectors that broadcast."""

    def __init__(self, name: str, sparse: bool) -> None:
        self.name, self.sparse = name, sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _stretch(key, self.name)
        if not key:
            return [] if self.sparse else asarray([], dtypes.default_int())
        axes = [as_array(x) for x in promote_dtypes(*(_stretch(s, self.name) for s in key))]
        grids = meshgrid(*axes, indexing="ij", sparse=self.sparse)
        return grids if self.sparse else lax.concatenate([expand_dims(g, 0) for g in grids], 0)

    def __repr__(self) -> str:
        return f"polyax.numpy.{self.name}"


class _Joiner:
    """``r_[1:4, 0, x]``: slices, numbers and arrays joined along an axis.

    A directive may come first. ``'axis,rank,start'``, or the first of these, joins along ``axis``; arrays have at least
    ``rank`` axes, of which their own begin at ``start``, and end with the last for -1. ``'r'`` makes a row of a vector,
    ``'c'`` a column.

    Raises:
      ValueError: the directive isn't one of these.
      TypeError: a string that isn't first.
    """

    def __init__(self, name: str, axis: int, rank: int, start: int) -> None:
        self.name, self.places = name, (axis, rank, start)

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        directive, *parts = parts if parts and isinstance(parts[0], str) else ("", *parts)
        if any(isinstance(p, str) for p in parts):
            raise TypeError(f"jnp.{self.name}: string directive must be placed at the beginning")
        axis, rank, start = self._places(directive)
        joined = concatenate([_raised(self._part(p), rank, start) for p in parts], axis)
        return expand_dims(joined, "rc".index(directive)) if directive in ("r", "c") and joined.ndim == 1 else joined

    def _part(self, part: Any) -> Any:
        return atleast_1d(_stretch(part, self.name) if isinstance(part, slice) else asarray(part))

    def _places(self, directive: str) -> tuple[int, ...]:
        if directive in ("", "r", "c"):
            return self.places
        try:
            given = [int(n) for n in directive.split(",")]
        except ValueError:
            raise ValueError(
                f"jnp.{self.name}: could not understand directive {directive!r}: it is 'r', 'c' or up to three integers"
            ) from None
        return (*given, *self.places[len(given) :])[:3]

    def __repr__(self) -> str:
        return f"polyax.numpy.{self.name}"


def _raised(x: Any, rank: int, start: int) -> Any:
    """``x`` with at least ``rank`` axes, of which its own begin at ``start``."""
    missing = rank - x.ndim
    if missing <= 0:
        return x
    before = start if start >= 0 else missing + 1 + start
    if not 0 <= before <= missing:
        raise ValueError(f"{x.ndim} axes can't begin at axis {start} of {rank}")
    return lax.reshape(x, (*(1,) * before, *x.shape, *(1,) * (missing - before)))


mgrid, ogrid = _Grid("mgrid", sparse=False), _Grid("ogrid", sparse=True)
r_, c_ = _Joiner("r_", 0, 1, -1), _Joiner("c_", -1, 2, 0)
