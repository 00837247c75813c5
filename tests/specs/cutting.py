"""Further equations for cutting, in sizes that divide: what the cases for derivatives leave out."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax import lax, vmap
from polyax_conformance.specs.case import Case, case, values
from polyax_conformance.specs.primitives.data import RNG, X
from polyax_conformance.specs.primitives.windows import FOLDS, smooth_or

RESHAPES = [
    ((4, 6), (24,)), ((24,), (2, 3, 4)), ((6, 4), (4, 6)), ((4, 6), (2, 12)), ((2, 1, 6, 4), (12, 1, 2, 2)),
    ((3, 4), (4, 3)), ((6, 5, 2), (10, 6)), ((8,), (8, 1)), ((2, 3, 4, 5), (6, 20)), ((0, 4), (4, 0)),
]  # fmt: skip
FLAGS = np.array([[True, False], [True, True], [False, False], [True, True]])


SEVERAL = RNG.uniform(-1, 1, (4, 3, 3)) + 3 * np.eye(3)
TABLE = RNG.uniform(-1, 1, (4, 6))
BLOCKS = RNG.uniform(-1, 1, (2, 3, 4))
MANY = np.array([[3, 1], [-1, 0], [2, 4], [9, 3]], np.int32)
"""Index vectors, some of which point outside of a table of 4 x 6."""
ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
ELEMENTS = lax.GatherDimensionNumbers((), (0, 1), (0, 1))
RUNS = lax.GatherDimensionNumbers((1, 2), (), (0, 1))
OF_EACH = lax.GatherDimensionNumbers((2,), (1,), (1,), (0,), (0,))
MODES = ("clip", "fill", "promise_in_bounds")
SCATTERS = ("scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max")


def put(numbers: lax.GatherDimensionNumbers) -> lax.ScatterDimensionNumbers:
    return lax.ScatterDimensionNumbers(*numbers)


def gather(numbers: lax.GatherDimensionNumbers, sizes: tuple[int, ...], mode: str) -> Any:
    return lambda x, i: lax.gather(x, i, numbers, sizes, mode=mode)


def inside(indices: np.ndarray, mode: str) -> np.ndarray:
    return np.clip(indices, 0, 3) if mode == "promise_in_bounds" else indices


def scatter(name: str, numbers: lax.GatherDimensionNumbers, mode: str) -> Any:
    return lambda x, i, u: getattr(lax, name)(x, i, u, put(numbers), mode=mode)


def conv(layout: Any = None, **groups: int) -> Any:
    return lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=layout, **groups)


def reshape(new: tuple[int, ...]) -> Any:
    return lambda x: lax.reshape(x, new)


CASES: dict[str, Case] = {
    **{f"reshape {old} to {new}": values(reshape(new), RNG.uniform(-1, 1, old)) for old, new in RESHAPES},
    "iota": values(lambda x: lax.add(x, lax.broadcasted_iota(np.float64, (3, 4), 0)), X),
    "reduce_and": values(lambda x: lax.reduce_and(x, (0,)), FLAGS),
    "reduce_xor": values(lambda x: lax.reduce_xor(x, (1,)), FLAGS),
    "reduce_or": values(lambda x: lax.reduce_or(x, (0, 1)), FLAGS),
    "bitcast to bytes": values(lambda x: lax.bitcast_convert_type(x, np.int16), X.astype(np.float32)),
    "bitcast from bytes": values(
        lambda x: lax.bitcast_convert_type(x, np.int64), np.arange(8, dtype=np.int32).reshape(4, 2)
    ),
    **{
        f"gather {what}, {mode}": values(gather(numbers, sizes, mode), TABLE, inside(MANY[:, :columns], mode))
        for mode in MODES
        for what, numbers, sizes, columns in (
            ("rows", ROWS, (1, 6), 1),
            ("elements", ELEMENTS, (1, 1), 2),
            ("runs", RUNS, (1, 3), 2),
        )
    },
    "gather unsigned": values(gather(ROWS, (1, 6), "clip"), TABLE, np.array([[0], [250], [2], [3]], np.uint8)),
    "gather booleans": values(gather(ROWS, (1, 2), "clip"), FLAGS, MANY[:, :1]),
    "gather of each": values(gather(OF_EACH, (1, 1, 4), "fill"), BLOCKS, np.array([[[0], [2]], [[1], [5]]], np.int32)),
    **{
        f"{name} rows, {mode}": values(scatter(name, ROWS, mode), TABLE, inside(MANY[:, :1], mode), TABLE[::-1] * 2)
        for name in SCATTERS
        for mode in MODES
    },
    **{
        f"{name} of each": values(
            scatter(name, OF_EACH, "fill"), BLOCKS, np.array([[[0], [2]], [[1], [5]]], np.int32), -BLOCKS[:, :2]
        )
        for name in SCATTERS
    },
    "scatter_add elements": values(scatter("scatter_add", ELEMENTS, "clip"), TABLE, MANY, TABLE[:, 0]),
    "scatter_add runs": values(scatter("scatter_add", RUNS, "clip"), TABLE, MANY, RNG.uniform(-1, 1, (4, 1, 3))),
    **{
        f"dynamic_slice at {i}": values(lambda x, i: lax.dynamic_slice(x, (i, i), (1, 6)), TABLE, np.int32(i))
        for i in (0, 3, 7)
    },
    "dynamic_slice of booleans": values(lambda x, i: lax.dynamic_slice(x, (i, i), (1, 2)), FLAGS, np.uint8(2)),
    **{
        f"dynamic_update_slice at {i}": values(
            lambda x, u, i: lax.dynamic_update_slice(x, u, (i, i)), TABLE, TABLE[:1] * 2, np.int32(i)
        )
        for i in (0, 3, 7)
    },
    "slice": values(lambda x: lax.slice(x, (0, 1), (4, 3)), TABLE),
    "pad": values(lambda x: lax.pad(x, 1.0, ((0, 0, 0), (1, 0, 1))), TABLE),
    "conv": values(conv(), RNG.uniform(-1, 1, (4, 6, 5)), RNG.uniform(-1, 1, (2, 6, 3))),
    "conv, features in groups": values(
        conv(feature_group_count=2), RNG.uniform(-1, 1, (4, 8, 5)), RNG.uniform(-1, 1, (6, 4, 3))
    ),
    "conv, features alone": values(
        conv(("NHC", "HIO", "NHC"), feature_group_count=4), RNG.uniform(-1, 1, (2, 5, 4)), RNG.uniform(-1, 1, (3, 1, 8))
    ),
    "conv, batch in groups": values(
        conv(batch_group_count=2), RNG.uniform(-1, 1, (8, 3, 5)), RNG.uniform(-1, 1, (4, 3, 3))
    ),
    **{
        f"reduce_window_{name}": case(
            lambda x, fold=fold: lax.reduce_window(x, fold[1], fold[0], (1, 2), (1, 2)), TABLE
        )
        for name, fold in {**FOLDS, "": (smooth_or, 0.0)}.items()
    },
    "sort": values(lambda x, y: lax.sort((x, y), 1, num_keys=2), np.round(TABLE), TABLE),
    "top_k": values(lambda x: lax.top_k(x, 2, axis=0), TABLE),
    **{f"{name} of several": values(getattr(lax.linalg, name), SEVERAL) for name in ("lu", "qr", "eigh", "svd", "eig")},
    **{
        f"{name} of several": values(getattr(lax.linalg, name), SEVERAL)
        for name in ("geqrf", "hessenberg", "tridiagonal", "schur")
    },
    "qr of several with pivoting": values(lambda x: lax.linalg.qr(x, pivoting=True), SEVERAL),
    "ormqr of several": values(lax.linalg.ormqr, SEVERAL, SEVERAL[:, 0], SEVERAL),
    "cholesky_update of several": values(vmap(lax.linalg.cholesky_update), SEVERAL, SEVERAL[:, 0]),
    "symmetric_product of several": values(lax.linalg.symmetric_product, SEVERAL, SEVERAL),
    "lu_pivots_to_permutation of several": values(
        lambda p: lax.linalg.lu_pivots_to_permutation(p, 4), np.array([[2, 3], [0, 1], [3, 3], [1, 1]], np.int32)
    ),
    "tridiagonal_solve of several": values(
        lax.linalg.tridiagonal_solve, SEVERAL[:, 0], SEVERAL[:, 1] + 4, SEVERAL[:, 2], SEVERAL
    ),
    "cholesky of several": values(lambda x: lax.linalg.cholesky(x @ x.transpose(0, 2, 1)), SEVERAL),
    "triangular_solve of several": values(
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
        SEVERAL,
        RNG.uniform(-1, 1, (4, 3, 2)),
    ),
    "householder_product of several": values(lax.linalg.householder_product, SEVERAL, SEVERAL[:, 0]),
}
