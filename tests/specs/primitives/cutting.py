"""Further equations for cutting, in sizes that divide: what the cases for derivatives leave out."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax import lax
from specs.primitives.data import RNG, X
from support.case import Case, values

RESHAPES = [
    ((4, 6), (24,)), ((24,), (2, 3, 4)), ((6, 4), (4, 6)), ((4, 6), (2, 12)), ((2, 1, 6, 4), (12, 1, 2, 2)),
    ((3, 4), (4, 3)), ((6, 5, 2), (10, 6)), ((8,), (8, 1)), ((2, 3, 4, 5), (6, 20)), ((0, 4), (4, 0)),
]  # fmt: skip
FLAGS = np.array([[True, False], [True, True], [False, False], [True, True]])


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
}
