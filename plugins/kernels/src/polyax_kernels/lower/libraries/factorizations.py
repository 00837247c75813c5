"""Which factorizations of matrices LAPACK and its likes compute. Knows no library."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from polyax.ir.aval import ShapedArray

LETTERS = {"float32": "s", "float64": "d"}
"""What names of routines begin with."""


def why_not(
    avals: Sequence[ShapedArray], params: Mapping[str, Any], dtypes: Collection[str] = LETTERS.keys()
) -> str | None:
    """Why a use of ``cholesky``, ``qr``, ``eigh`` and so on isn't one of them, for numbers of such ``dtypes``."""
    names = {a.dtype.name for a in avals}
    odd = [p for p in ("pivoting", "subset_by_index", "algorithm") if params.get(p)]
    if not names <= set(dtypes):
        return f"LAPACK is called for {' and '.join(dtypes)}, not for {' and '.join(sorted(names))}"
    if odd:
        return f"LAPACK is not called for {' and '.join(f'{p}={params[p]}' for p in odd)}"
    if any(0 in a.shape[-2:] for a in avals):
        return "LAPACK takes no empty matrices"
    return None
