"""What a check finds, as a table; and how results are compared. Must not know what is checked."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SHOWN = 20
"""Rows of a table; more are counted."""


@dataclass(frozen=True)
class Wrong:
    """Something that isn't as it should be."""

    case: str
    """What was computed."""
    fault: str
    """What is wrong, in a line; of values, the first that differs."""
    inputs: str = ""
    text: str = ""
    """The kernel or program, as somebody wrote it."""

    def __str__(self) -> str:
        lines = [f"{self.case}: {self.fault}", *([f"  inputs: {self.inputs}"] if self.inputs else [])]
        return "\n".join([*lines, textwrap.indent(self.text.strip(), "  | ")]).rstrip()


@dataclass
class Findings:
    """What a check found; ``wrong`` is empty if the part is right. As text it is a table."""

    part: str
    checked: int = 0
    """How many cases were computed."""
    wrong: list[Wrong] = field(default_factory=list[Wrong])
    lacking: dict[str, str] = field(default_factory=dict[str, str])
    """Cases that the part declines, and the reasons: no faults."""

    def __str__(self) -> str:
        more = len(self.wrong) - SHOWN
        counts = f"{self.part}: {self.checked} cases, {len(self.wrong)} wrong, {len(self.lacking)} declined"
        rest = [f"... and {more} more"] if more > 0 else []
        return "\n\n".join([counts, *map(str, self.wrong[:SHOWN]), *rest])


def raised(error: Exception) -> str:
    """An error, in a line."""
    return f"it raises {type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def difference(got: Any, want: Any, rtol: float, inputs: Sequence[Any] = ()) -> tuple[str, str] | None:
    """How an array differs from the one expected, and the inputs at that place; None if it doesn't by more than
    ``rtol``. With 0 the signs of zeros count as well."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"its shape is {got.shape}, expected {want.shape}", told(inputs)
    if got.dtype != want.dtype:
        return f"its dtype is {got.dtype}, expected {want.dtype}", told(inputs)
    places = np.argwhere(~_same(got, want, rtol))
    if not len(places):
        return None
    at = tuple(places[0])
    where = f"[{', '.join(map(str, at))}]" if at else ""
    count = f"; {len(places)} of {want.size} values are wrong" if want.size > 1 else ""
    return f"it is {got[at]!s} {where}, expected {want[at]!s}{count}".replace(" ,", ","), told(inputs, want.shape, at)


def _same(got: Any, want: Any, rtol: float) -> np.ndarray:
    if want.dtype.kind in "biu":
        return np.equal(got, want)
    if want.dtype.kind == "c" and not rtol:
        return _same(got.real, want.real, 0.0) & _same(got.imag, want.imag, 0.0)
    with np.errstate(all="ignore"):
        kind = np.complex128 if want.dtype.kind == "c" else np.float64
        g, w = got.astype(kind), want.astype(kind)
        same = (g == w) | (np.isnan(g) & np.isnan(w))
        if not rtol:
            return same & ((np.signbit(g) == np.signbit(w)) | (w != 0) | np.isnan(w))
        scale = np.max(np.abs(w), initial=0.0, where=np.isfinite(w))
        return same | (np.isfinite(w) & (np.abs(g - w) <= rtol * np.maximum(np.abs(w), 0.1 * scale)))


def told(inputs: Sequence[Any], shape: tuple[int, ...] | None = None, at: tuple[int, ...] = ()) -> str:
    """Inputs as text: those of the shape of a result at a place of it alone."""
    return ", ".join(_told(np.asarray(x), shape, at) for x in inputs)


def _told(x: np.ndarray, shape: tuple[int, ...] | None, at: tuple[int, ...]) -> str:
    if x.shape == shape:
        return f"{x[at]!s}:{x.dtype}"
    listed = np.array2string(x, threshold=8, edgeitems=2, separator=", ").replace("\n", "")
    return f"{listed}:{x.dtype}{list(x.shape)}"
