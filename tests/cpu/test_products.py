"""Products through BLAS: every layout that needs no copy, against NumPy in float64."""

from __future__ import annotations

import ctypes
from itertools import pairwise

import numpy as np
import pytest

from polyax.ir.aval import ShapedArray
from polyax_cpu import products
from polyax_kernels.host import FUNCTION

F32 = np.dtype("float32")
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
    return np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(shared + free)}", x.astype(float), y.astype(float))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("pieces", [1, 2])
def test_product(name: str, pieces: int) -> None:
    x_shape, y_shape, contracted, batch = CASES[name]
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(F32) for s in (x_shape, y_shape))
    avals = [ShapedArray(s, F32) for s in (x_shape, y_shape)]
    found = products.describe(avals, {"dimension_numbers": (contracted, batch)})
    assert found is not None
    want = expected(x, y, contracted, batch)
    out = np.full(want.shape, np.nan, F32)
    pointers = (ctypes.c_void_p * 3)(x.ctypes.data, y.ctypes.data, out.ctypes.data)
    scalars = (ctypes.c_int64 * len(found.scalars))(*found.scalars)
    function = FUNCTION(products.function("float32"))
    cuts = [found.extent * n // pieces for n in range(pieces + 1)]
    for begin, end in pairwise(cuts):
        function(ctypes.addressof(pointers), ctypes.addressof(scalars), begin, end)
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "x, y, contracted",
    [((5, 7, 4), (7, 6), ((1,), (0,))), ((3, 7, 5), (7, 3, 6), ((0, 1), (1, 0))), ((0, 7), (7, 6), ((1,), (0,)))],
)
def test_what_needs_copies_or_is_empty_is_left_to_numpy(x, y, contracted) -> None:
    params = {"dimension_numbers": (contracted, ((), ()))}
    assert products.describe([ShapedArray(s, F32) for s in (x, y)], params) is None
