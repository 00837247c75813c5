"""Products of every layout: the shapes and dimension numbers of ``dot_general``, and NumPy's answer in float64."""

from __future__ import annotations

import numpy as np

CASES = {
    "matrices": ((5, 7), (7, 6), ((1,), (0,)), ((), ())),
    "left transposed": ((7, 5), (7, 6), ((0,), (0,)), ((), ())),
    "right transposed": ((5, 7), (6, 7), ((1,), (1,)), ((), ())),
    "both transposed": ((7, 5), (6, 7), ((0,), (1,)), ((), ())),
    "matrix and vector": ((5, 7), (7,), ((1,), (0,)), ((), ())),
    "transposed matrix and vector": ((7, 5), (7,), ((0,), (0,)), ((), ())),
    "vector and matrix": ((7,), (7, 6), ((0,), (0,)), ((), ())),
    "vector and transposed matrix": ((7,), (6, 7), ((0,), (1,)), ((), ())),
    "vectors": ((7,), (7,), ((0,), (0,)), ((), ())),
    "outer": ((5,), (6,), ((), ()), ((), ())),
    "batch": ((3, 5, 7), (3, 7, 6), ((2,), (1,)), ((0,), (0,))),
    "batch of transposed": ((3, 7, 5), (3, 6, 7), ((1,), (2,)), ((0,), (0,))),
    "batch in the middle": ((5, 3, 7), (3, 7, 6), ((2,), (1,)), ((1,), (0,))),
    "batch of vectors": ((3, 7), (3, 7), ((1,), (1,)), ((0,), (0,))),
    "two free dimensions": ((4, 5, 7), (7, 6), ((2,), (0,)), ((), ())),
    "two contracted dimensions": ((5, 3, 7), (3, 7, 6), ((1, 2), (0, 1)), ((), ())),
    "ones": ((1, 7), (7, 1), ((1,), (0,)), ((), ())),
    "one column": ((5, 1), (1, 6), ((1,), (0,)), ((), ())),
}


def expected(x: np.ndarray, y: np.ndarray, contracted, batch) -> np.ndarray:
    letters = iter("abcdefghijklmnop")
    left = [next(letters) for _ in x.shape]
    right = [next(letters) for _ in y.shape]
    for i, j in (*zip(*contracted, strict=True), *zip(*batch, strict=True)):
        right[j] = left[i]
    shared = [left[d] for d in batch[0]]
    free = [n for d, n in enumerate(left) if d not in batch[0] and d not in contracted[0]]
    free += [n for d, n in enumerate(right) if d not in batch[1] and d not in contracted[1]]
    return np.einsum(
        f"{''.join(left)},{''.join(right)}->{''.join(shared + free)}",
        *[a.astype(complex if a.dtype.kind == "c" else float) for a in (x, y)],
    )
