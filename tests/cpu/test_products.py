"""Products through BLAS: every layout that needs no copy, against NumPy in float64."""

from __future__ import annotations

import ctypes
from itertools import pairwise

import numpy as np
import pytest

from polyax.ir.aval import ShapedArray
from polyax_cpu.libraries import products
from polyax_kernels.host.backend import FUNCTION
from support.products import CASES, expected

F32 = np.dtype("float32")


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
