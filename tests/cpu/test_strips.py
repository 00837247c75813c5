"""Products of some rows, strip by strip: sums of integers are exact in any order, so bits are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cpu.guarded import at_the_end_of_a_page, run
from cpu.processor import in_many_registers

import polyax
import polyax.numpy as jnp
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax_cpu.libraries import products, strips

RNG = np.random.default_rng(0)
PLAIN, TURNED = (((1,), (0,)), ((), ())), (((0,), (0,)), ((), ()))

pytestmark = in_many_registers


def _product(left: Any, right: Any, numbers: Any = PLAIN) -> products.NativeProduct:
    avals = [ShapedArray(a.shape, a.dtype) for a in (left, right)]
    found = products.describe(avals, {"dimension_numbers": numbers})
    assert found is not None
    return strips.counted(found)


def _integers(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.integers(-3, 4, shape).astype(dtype)


@pytest.mark.parametrize("k", [1, 7, strips.TERMS, 2 * strips.TERMS + 3])
@pytest.mark.parametrize("m", [2, 3, 5, 8, 9, 13, 17, 31, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_are_exact_and_touch_nothing_behind_their_arrays(m: int, k: int, dtype: str) -> None:
    n = 64 + 17 * m % 100
    for numbers in (PLAIN, TURNED):
        a, b = _integers(m, k, dtype=dtype), _integers(k, n, dtype=dtype)
        left = a if numbers is PLAIN else a.T
        product = _product(left, b, numbers)
        x, y, z = map(at_the_end_of_a_page, (np.ascontiguousarray(left), b, np.full((m, n), np.nan, dtype)))
        run(strips.function(dtype, product), (x, y, z), product)
        np.testing.assert_array_equal(z, a @ b)


@pytest.mark.parametrize("k", [1, 7, strips.TERMS + 3])
@pytest.mark.parametrize("n", [2, 10, 16, 33, 48, 64, 96, 112])
@pytest.mark.parametrize("m", [113, 200])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_of_many_rows_are_exact(m: int, n: int, k: int, dtype: str) -> None:
    for numbers in (PLAIN, TURNED):
        a, b = _integers(m, k, dtype=dtype), _integers(k, n, dtype=dtype)
        left = a if numbers is PLAIN else a.T
        product = _product(left, b, numbers)
        assert product.split == products.ROWS
        x, y, z = map(at_the_end_of_a_page, (np.ascontiguousarray(left), b, np.full((m, n), np.nan, dtype)))
        run(strips.function(dtype, product), (x, y, z), product)
        np.testing.assert_array_equal(z, a @ b)


@pytest.mark.parametrize(
    "shapes, numbers, fits",
    [
        (((10000, 64), (64, 64)), PLAIN, True),
        (((64, 10000), (64, 64)), TURNED, True),
        (((10000, 64), (64, 10)), PLAIN, True),
        (((10000, 64), (64, 1)), PLAIN, False),
        (((10000, 64), (64, 100)), PLAIN, False),
        (((1000, 16), (16, 48)), PLAIN, False),
        (((10000, 1024), (1024, 256)), PLAIN, False),
        (((10000, 64), (64, 64)), (((1,), (1,)), ((), ())), False),
        (((8, 256), (256, 512)), PLAIN, True),
        (((256, 8), (256, 512)), TURNED, True),
        (((1, 256), (256, 512)), PLAIN, False),
        (((65, 256), (256, 512)), PLAIN, False),
        (((8, 4096), (4096, 63)), PLAIN, False),
        (((8, 255), (255, 512)), PLAIN, False),
        (((64, 4096), (4096, 64)), PLAIN, False),
        (((8, 256), (512, 256)), (((1,), (1,)), ((), ())), False),
        (((4, 8, 256), (4, 256, 512)), (((2,), (1,)), ((0,), (0,))), False),
    ],
)
def test_are_of_few_rows_or_of_few_columns_in_order(shapes: Any, numbers: Any, fits: bool) -> None:
    left, right = (np.zeros(shape, "float32") for shape in shapes)
    product = _product(left, right, numbers)
    assert strips.fits(product, "float32") is fits
    assert not strips.fits(product, "complex64")


def test_have_the_same_bits_on_any_number_of_threads() -> None:
    x, y = (jnp.asarray(RNG.standard_normal(shape).astype("float32")) for shape in ((13, 700), (700, 1000)))
    results = []
    for threads in (1, 2, 3):
        with config.override(num_threads=threads), polyax.default_device("cpu"):
            results.append(np.asarray(polyax.jit(lambda x, y: x @ y)(x, y)))
    np.testing.assert_allclose(results[0], np.asarray(x, "d") @ np.asarray(y, "d"), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
