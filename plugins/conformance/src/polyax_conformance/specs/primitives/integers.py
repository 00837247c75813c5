"""Primitives of integers, booleans and bits, which have no derivatives."""

from __future__ import annotations

import numpy as np

from polyax import lax
from polyax_conformance.specs.case import Case, values
from polyax_conformance.specs.primitives.data import X

I = np.arange(1, 13, dtype=np.int32).reshape(3, 4) * 77777
J = np.arange(12, dtype=np.int32).reshape(3, 4) % 5
U = I.astype(np.uint32) * 40503
B = J > 2
BS = np.stack([B, ~B])

BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right_arithmetic", "shift_right_logical")

CASES: dict[str, Case] = {
    **{name: values(getattr(lax, name), I, J) for name in BITS},
    **{name: values(getattr(lax, name), I) for name in ("bitwise_not", "population_count", "clz")},
    "bitwise_and of booleans": values(lax.bitwise_and, B, B[::-1]),
    "dot_general of booleans": values(
        lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((0,), (0,)))), BS, BS[:, ::-1]
    ),
    "mulhi": values(lax.mulhi, U, U[::-1]),
    "bitcast_convert_type": values(lambda x: lax.bitcast_convert_type(x, np.int32), X.astype(np.float32)),
    "threefry2x32": values(lambda a, b, x, y: lax.threefry2x32_p.bind(a, b, x, y), U[0, 0], U[0, 1], U[1], U[2]),
    "reduce_and": values(lambda x: lax.reduce_and(x, (0,)), B),
    "reduce_or": values(lambda x: lax.reduce_or(x, (1,)), B),
    "reduce_xor": values(lambda x: lax.reduce_xor(x, (0, 1)), I),
    "argmax": values(lambda x: lax.argmax(x, 1, np.int32), X),
    "argmin": values(lambda x: lax.argmin(x, 0, np.int32), X),
    "iota": values(lambda x: lax.add(x, lax.broadcasted_iota(np.int32, (3, 4), 1)), I),
}
