"""Reading and writing at indices that programs compute, and sorting."""

from __future__ import annotations

import numpy as np

from polyax import lax
from polyax_conformance.specs.case import Case, case, values
from polyax_conformance.specs.primitives.data import SIGNED, X, Y

STARTS = np.int32(1), np.int32(2)
ROWS = np.array([[2], [0], [2]], np.int32)
OUTSIDE = np.array([[5], [1]], np.int32)
UNIQUE = np.array([[2], [0]], np.int32)
TAKE_ROWS = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
PUT_ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))

CASES: dict[str, Case] = {
    "dynamic_slice": case(lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 2)), X, *STARTS),
    "dynamic_update_slice": case(lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)), X, Y[:2, :2], *STARTS),
    "gather": case(lambda x, i: lax.gather(x, i, TAKE_ROWS, (1, 4)), X, ROWS),
    "gather, out of bounds": case(
        lambda x, i: lax.gather(x, i, TAKE_ROWS, (1, 4), mode="fill", fill_value=2.0), X, OUTSIDE
    ),
    "gather, clipped": case(lambda x, i: lax.gather(x, i, TAKE_ROWS, (1, 4), mode="clip"), X, OUTSIDE),
    **{
        name: case(lambda x, i, u, n=name: getattr(lax, n)(x, i, u, PUT_ROWS), X, ROWS, Y)
        for name in ("scatter", "scatter_add", "scatter_sub", "scatter_min", "scatter_max")
    },
    "scatter_mul": case(lambda x, i, u: lax.scatter_mul(x, i, u, PUT_ROWS, unique_indices=True), X, UNIQUE, Y[:2]),
    "sort": case(lambda x: lax.sort(x, 0), SIGNED),
    "sort of two": case(lambda x, y: lax.sort((x, y), 1), SIGNED, Y),
    "sort of integers": values(lambda i: lax.sort(i, 0), ROWS),
    "top_k": case(lambda x: lax.top_k(x, 2), SIGNED),
}
