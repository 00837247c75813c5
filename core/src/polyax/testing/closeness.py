"""Whether two trees of arrays agree, within what their precision allows; if not, an error that shows where and how.

Knows nothing of derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.trace.paths import differences, keystr, tree_leaves_with_path
from polyax.trace.tree import tree_leaves, tree_map, tree_structure

Tolerance = float | dict[Any, float] | None
TOLERANCES = {"bfloat16": 1e-1, "float16": 1e-2, "float32": 2e-3, "float64": 1e-5}


def compare(
    what: str, got: Any, want: Any, *, atol: Tolerance = None, rtol: Tolerance = None, dtype: Any = None
) -> None:
    """Compares inexact leaves with a tolerance for their dtype (or for ``dtype``), all others exactly.

    Raises:
      AssertionError: both arrays, how many elements differ, where the first one is, and what is allowed.
    """
    check_types(what, got, want)
    for (path, g), w in zip(tree_leaves_with_path(got), tree_leaves(want), strict=True):
        kind = dtypes.real_part(aval_of(g).dtype if dtype is None else dtype)
        if kind != dtypes.float0:
            _compare_arrays(_at(what, path), g, w, _tolerance(atol, kind), _tolerance(rtol, kind))


def _compare_arrays(what: str, got: Any, want: Any, atol: float, rtol: float) -> None:
    a, b = wide(got), wide(want)
    size = np.max(np.abs(b[np.isfinite(b)]), initial=0)
    with np.errstate(invalid="ignore"):
        wrong = ~((a == b) | (np.abs(a - b) <= atol + rtol * size) | (np.isnan(a) & np.isnan(b)))
    if not wrong.any():
        return
    place = tuple(map(int, np.argwhere(wrong)[0]))
    where = f", first at {place}: {a[place]} instead of {b[place]}" if place else ""
    raise AssertionError(
        f"{what} isn't what it should be.\n"
        f"computed:\n{a}\nexpected:\n{b}\n{wrong.sum()} of {wrong.size} elements differ{where}; allowed is a "
        f"difference of {atol:g} + {rtol:g} * {size:g}"
    )


def check_types(what: str, got: Any, want: Any, tangent: bool = False) -> None:
    """Structures and shapes agree; if ``got`` are tangents or cotangents of ``want``, the dtypes too."""
    if tree_structure(got) != tree_structure(want):
        where = "; ".join(differences(tree_structure(got), tree_structure(want)))
        raise AssertionError(f"{what} has another structure than expected: {where}")
    for (path, g), w in zip(tree_leaves_with_path(got), tree_leaves(want), strict=True):
        a, b = aval_of(g), aval_of(w)
        b = b.to_tangent_aval() if tangent else b
        if a.shape != b.shape or (tangent and a.dtype != b.dtype):
            raise AssertionError(f"{_at(what, path)} has the type {a}, expected {b}")


def _at(what: str, path: Any) -> str:
    return f"{what} at {keystr(path)}" if path else what


def _tolerance(given: Tolerance, dtype: Any) -> float:
    if isinstance(given, dict):
        given = {np.dtype(k): v for k, v in given.items()}.get(dtype)
    return TOLERANCES.get(dtype.name, 0.0) if given is None else given


def least_precise(xs: Sequence[Any]) -> Any:
    """The dtype of real numbers that limits what can be expected of computations with ``xs``."""
    kinds = [dtypes.real_part(aval_of(x).dtype) for x in xs if is_inexact(x)]
    return max(kinds, key=lambda d: dtypes.finfo(d).eps, default=np.dtype(np.float64))


def is_inexact(x: Any) -> bool:
    return dtypes.is_inexact(aval_of(x).dtype)


def float0(x: Any) -> np.ndarray:
    """What stands for the tangent of an array that has none."""
    return np.zeros(np.shape(x), dtypes.float0)


def wide(x: Any) -> np.ndarray:
    """As double precision, complex if it is."""
    x = np.asarray(x)
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


# --- pytrees of libraries ------------------------------------------------------------------------------------------

EXACT = {"bfloat16": 1e-2, "float16": 1e-3, "float32": 1e-6, "float64": 1e-15}
"""What ``check_close`` allows by default."""


def check_close(xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Compares the leaves of two pytrees.

    Args:
      atol, rtol: what is allowed for each of an array's elements, a number or by dtype, for sums over all of them are
        as imprecise; by default, what suits the dtype, which for integers is nothing.

    Raises:
      AssertionError: shapes differ, or values by more than that.
    """

    def compare(x: Any, y: Any) -> None:
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape, f"{x.shape} isn't {y.shape}. {err_msg}"
        allowed = [x.size * max(_allowed(x.dtype, tol), _allowed(y.dtype, tol)) for tol in (atol, rtol)]
        pair = [a.astype(np.float32) if a.dtype == dtypes.bfloat16 or a.dtype in dtypes.NARROW else a for a in (x, y)]
        np.testing.assert_allclose(*pair, atol=allowed[0], rtol=allowed[1], err_msg=err_msg)

    tree_map(compare, xs, ys)


def _allowed(dtype: Any, given: Any) -> float:
    if given is not None and not isinstance(given, dict):
        return given
    dtype = dtypes.canonicalize(dtype)
    asked = {np.dtype(name): tol for name, tol in (given or {}).items()}
    narrow = 1e-1 if dtypes.is_inexact(dtype) else 0.0
    return asked.get(dtype, EXACT.get(dtypes.real_part(dtype).name, narrow))
