"""Every input has a defined result, as in XLA: division by zero, shifts past the width, casts, NaNs, signed zeros.

The oracles are Python's exact integers and written-out expectations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from polyax import lax

pytestmark = pytest.mark.sample
NAN, INF = math.nan, math.inf
WIDTHS = ("int8", "int32", "uint8", "uint32")


def corners(dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.array([0, 1, 2, 3, 7, info.max, info.min, info.max - 1, info.min + 1], dtype)


def wrapped(value: int, dtype: str) -> int:
    """``value`` modulo two to the width, in the range of ``dtype``."""
    info = np.iinfo(dtype)
    return (value - info.min) % (info.max - info.min + 1) + info.min


def truncated(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def quotient(x: int, y: int, dtype: str) -> int:
    return wrapped(-1 if y == 0 else truncated(x, y), dtype)


def remainder(x: int, y: int, dtype: str) -> int:
    return x if y == 0 else x - y * truncated(x, y)


def left(x: int, y: int, dtype: str) -> int:
    bits = np.iinfo(dtype).bits
    return wrapped(x << y, dtype) if 0 <= y < bits else 0


def logical(x: int, y: int, dtype: str) -> int:
    bits = np.iinfo(dtype).bits
    return wrapped(x % 2**bits >> y, dtype) if 0 <= y < bits else 0


def arithmetic(x: int, y: int, dtype: str) -> int:
    bits = np.iinfo(dtype).bits
    signed = wrapped(x, f"int{bits}")
    return wrapped(signed >> (y if 0 <= y < bits else bits), dtype)


INTEGERS: dict[str, Callable[[int, int, str], int]] = {
    "add": lambda x, y, dtype: wrapped(x + y, dtype),
    "sub": lambda x, y, dtype: wrapped(x - y, dtype),
    "mul": lambda x, y, dtype: wrapped(x * y, dtype),
    "div": quotient,
    "rem": remainder,
    "shift_left": left,
    "shift_right_logical": logical,
    "shift_right_arithmetic": arithmetic,
}


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("name", INTEGERS)
def test_integer_arithmetic(name: str, dtype: str, platform: str) -> None:
    x, y = (m.ravel() for m in np.meshgrid(corners(dtype), corners(dtype)))
    want = [INTEGERS[name](int(a), int(b), dtype) for a, b in zip(x, y)]
    got = np.asarray(getattr(lax, name)(x, y))
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, np.array(want, dtype))


@pytest.mark.parametrize("dtype", WIDTHS)
def test_counting_bits(dtype: str, platform: str) -> None:
    x, bits = corners(dtype), np.iinfo(dtype).bits
    patterns = [int(v) % 2**bits for v in x]
    np.testing.assert_array_equal(lax.population_count(x), [p.bit_count() for p in patterns])
    np.testing.assert_array_equal(lax.clz(x), [bits - p.bit_length() for p in patterns])


@pytest.mark.parametrize("dtype", WIDTHS)
def test_float_to_integer_truncates_and_saturates(dtype: str, platform: str) -> None:
    info = np.iinfo(dtype)
    x = np.array([0.9, -0.9, 2.5, -2.5, 1e20, -1e20, INF, -INF, NAN], np.float32)
    want = [0, 0, 2, max(-2, info.min), info.max, info.min, info.max, info.min, 0]
    got = np.asarray(lax.convert_element_type(x, dtype))
    np.testing.assert_array_equal(got, np.array(want, dtype))


def test_other_conversions(platform: str) -> None:
    bools = lax.convert_element_type(np.array([0.0, -0.0, 0.5, NAN], np.float32), bool)
    np.testing.assert_array_equal(bools, [False, False, True, True])
    narrowed = lax.convert_element_type(np.array([300, -1], np.int32), np.uint8)
    np.testing.assert_array_equal(narrowed, [44, 255])


PAIRS = [
    ("max", NAN, 1.0, NAN), ("max", 1.0, NAN, NAN), ("max", -0.0, 0.0, 0.0), ("max", 0.0, -0.0, 0.0),
    ("min", NAN, 1.0, NAN), ("min", 1.0, NAN, NAN), ("min", -0.0, 0.0, -0.0), ("min", 0.0, -0.0, -0.0),
    ("rem", 5.5, -2.0, 1.5), ("rem", -5.5, 2.0, -1.5), ("rem", 1.0, 0.0, NAN), ("rem", 1.0, INF, 1.0),
    ("div", 1.0, 0.0, INF), ("div", -1.0, 0.0, -INF), ("div", 0.0, 0.0, NAN),
    ("pow", 0.0, 0.0, 1.0), ("pow", NAN, 0.0, 1.0), ("pow", -8.0, 3.0, -512.0), ("pow", -8.0, 0.5, NAN),
    ("atan2", 0.0, -1.0, math.pi), ("atan2", -0.0, -1.0, -math.pi), ("atan2", INF, INF, math.pi / 4),
]  # fmt: skip


@pytest.mark.parametrize(("name", "x", "y", "want"), PAIRS)
def test_float_pairs(name: str, x: float, y: float, want: float, platform: str) -> None:
    got = np.asarray(getattr(lax, name)(np.array([x], np.float32), np.array([y], np.float32)))
    np.testing.assert_allclose(got, [np.float32(want)], rtol=1e-6)
    assert np.signbit(got[0]) == np.signbit(want) or math.isnan(want)


UNARY = [
    ("sign", [NAN, -0.0, 0.0, -3.0, INF], [NAN, -0.0, 0.0, -1.0, 1.0]),
    ("floor", [-0.5, 0.5, INF, NAN], [-1.0, 0.0, INF, NAN]),
    ("ceil", [-0.5, 0.5, -INF], [-0.0, 1.0, -INF]),
    ("round", [0.5, 1.5, -2.5, 0.49999997, 1e9], [1.0, 2.0, -3.0, 0.0, 1e9]),
    ("sqrt", [-1.0, -0.0, INF], [NAN, -0.0, INF]),
    ("rsqrt", [0.0, INF, -1.0], [INF, 0.0, NAN]),
    ("cbrt", [-8.0, 27.0], [-2.0, 3.0]),
    ("log", [0.0, -1.0, INF], [-INF, NAN, INF]),
    ("log1p", [-1.0, -2.0, 1e-10], [-INF, NAN, 1e-10]),
    ("expm1", [1e-10, -INF, INF], [1e-10, -1.0, INF]),
    ("exp", [-INF, INF, 200.0, NAN], [0.0, INF, INF, NAN]),
    ("tanh", [INF, -INF, 1e-10], [1.0, -1.0, 1e-10]),
    ("logistic", [INF, -INF, 0.0], [1.0, 0.0, 0.5]),
    ("asin", [2.0, 1.0], [NAN, math.pi / 2]),
    ("acosh", [0.5, 1.0], [NAN, 0.0]),
    ("atanh", [1.0, -1.0, 2.0], [INF, -INF, NAN]),
    ("erf_inv", [1.0, -1.0, 2.0, 0.0], [INF, -INF, NAN, 0.0]),
    ("lgamma", [0.0, -1.0, 1.0, INF, -INF], [INF, INF, 0.0, INF, INF]),
    ("digamma", [1.0, 0.5], [-0.5772156649015329, -1.9635100260214235]),
    ("erfc", [10.0, -10.0, 0.0], [2.088487583762545e-45, 2.0, 1.0]),
]


@pytest.mark.parametrize(("name", "x", "want"), UNARY, ids=[row[0] for row in UNARY])
def test_float_functions_at_their_ends(name: str, x: list[float], want: list[float], platform: str) -> None:
    got = np.asarray(getattr(lax, name)(np.array(x, np.float32)))
    np.testing.assert_allclose(got, np.array(want, np.float32), rtol=2e-6, atol=1e-7)


def test_rounding_halves_to_even(platform: str) -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32)
    np.testing.assert_array_equal(lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), [0, 2, 2, -0.0, -2])


def test_reductions_of_nans_and_of_nothing(platform: str) -> None:
    x = np.array([[1.0, NAN], [2.0, 3.0]], np.float32)
    np.testing.assert_array_equal(lax.reduce_max(x, (0,)), [2.0, NAN])
    np.testing.assert_array_equal(lax.reduce_min(x, (1,)), [NAN, 2.0])
    np.testing.assert_array_equal(lax.argmax(x, 1, np.int32), [1, 1])
    np.testing.assert_array_equal(lax.argmin(x, 1, np.int32), [1, 0])
    nothing = np.zeros((0, 2), np.float32)
    np.testing.assert_array_equal(lax.reduce_max(nothing, (0,)), [-INF, -INF])
    np.testing.assert_array_equal(lax.reduce_prod(nothing, (0,)), [1.0, 1.0])
    np.testing.assert_array_equal(lax.reduce_and(nothing > 0, (0,)), [True, True])


def test_choices(platform: str) -> None:
    cases = [np.full(5, k, np.float32) for k in range(3)]
    np.testing.assert_array_equal(lax.select_n(np.array([0, 1, 2, 3, -1], np.int32), *cases), [0, 1, 2, 2, 0])
    x = np.array([NAN, -5.0, 5.0, 0.5], np.float32)
    np.testing.assert_array_equal(lax.clamp(np.float32(0), x, np.float32(1)), [NAN, 0.0, 1.0, 0.5])
    np.testing.assert_array_equal(lax.clamp(np.float32(2), x, np.float32(1)), [NAN, 1.0, 1.0, 1.0])


X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(("start", "row"), [(-9, 0), (0, 0), (1, 1), (2, 1), (9, 1)])
def test_dynamic_slices_are_clamped(start: int, row: int, platform: str) -> None:
    starts = lax.convert_element_type(np.int32(start), np.int32), np.int32(1)
    if start >= 0:
        np.testing.assert_array_equal(lax.dynamic_slice(X, starts, (2, 2)), X[row : row + 2, 1:3])
    got = lax.dynamic_update_slice(X, np.ones((2, 2), np.float32), (np.uint32(max(start, 0)), np.uint32(1)))
    want = X.copy()
    want[row : row + 2, 1:3] = 1
    np.testing.assert_array_equal(got, want)


INDICES = np.array([[0], [2], [5], [-1]], np.int32)
ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
TO_ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))


def test_gathers_out_of_bounds(platform: str) -> None:
    clipped = lax.gather(X, INDICES, ROWS, (1, 4), mode="clip")
    np.testing.assert_array_equal(clipped, X[[0, 2, 2, 0]])
    filled = lax.gather(X, INDICES, ROWS, (1, 4), mode="fill")
    np.testing.assert_array_equal(filled, np.stack([X[0], X[2], np.full(4, NAN), np.full(4, NAN)]))
    integers = lax.gather(X.astype(np.int32), INDICES, ROWS, (1, 4), mode="fill", fill_value=-7)
    np.testing.assert_array_equal(integers[2:], np.full((2, 4), -7))


@pytest.mark.parametrize(
    ("name", "combine"),
    [
        ("scatter", lambda x, u: u),
        ("scatter_add", np.add),
        ("scatter_sub", np.subtract),
        ("scatter_mul", np.multiply),
        ("scatter_min", np.minimum),
        ("scatter_max", np.maximum),
    ],
)
def test_scatters_drop_or_clip(name: str, combine: Callable[[Any, Any], Any], platform: str) -> None:
    updates = np.arange(16, dtype=np.float32).reshape(4, 4) - 6
    dropped, clipped = X.copy(), X.copy()
    for i, u in zip(INDICES[:, 0], updates):
        if 0 <= i < 3:
            dropped[i] = combine(dropped[i], u)
        clipped[np.clip(i, 0, 2)] = combine(clipped[np.clip(i, 0, 2)], u)
    np.testing.assert_array_equal(getattr(lax, name)(X, INDICES, updates, TO_ROWS), dropped)
    np.testing.assert_array_equal(getattr(lax, name)(X, INDICES, updates, TO_ROWS, mode="clip"), clipped)


def test_sorting_puts_nans_last_and_keeps_the_order_of_equals(platform: str) -> None:
    x = np.array([NAN, 1.0, -INF, -0.0, 0.0, NAN, INF, -1.0], np.float32)
    values, order = lax.sort((x, np.arange(8, dtype=np.int32)))
    np.testing.assert_array_equal(values, [-INF, -1.0, -0.0, 0.0, 1.0, INF, NAN, NAN])
    np.testing.assert_array_equal(order, [2, 7, 3, 4, 1, 6, 0, 5])
    largest, where = lax.top_k(np.array([3.0, 1.0, 3.0, 2.0], np.float32), 3)
    np.testing.assert_array_equal(largest, [3.0, 3.0, 2.0])
    np.testing.assert_array_equal(where, [0, 2, 3])


def test_threefry_has_the_published_values(platform: str) -> None:
    """The test vectors of Random123."""
    vectors = [
        ((0, 0, 0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 4, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ]
    for words, want in vectors:
        got = lax.threefry2x32_p.bind(*(np.array([w], np.uint32) for w in words))
        assert tuple(int(np.asarray(g)[0]) for g in got) == want
