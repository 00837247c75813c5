"""Segment reductions against loops."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import ops
from polyax.ir.config import config

FOLDS = {
    "segment_sum": (np.add, 0.0),
    "segment_prod": (np.multiply, 1.0),
    "segment_max": (np.maximum, -np.inf),
    "segment_min": (np.minimum, np.inf),
}
X = np.random.default_rng(1).standard_normal((6, 2)).astype(np.float32)
IDS = np.array([0, 3, 0, 2, 9, -1], np.int32)


@pytest.mark.parametrize("name", FOLDS)
def test_equal_ids_meet_and_others_are_dropped(name: str) -> None:
    fold, start = FOLDS[name]
    want = [functools.reduce(fold, X[k == IDS].astype(np.float64), np.full(2, start)) for k in range(4)]
    np.testing.assert_allclose(getattr(ops, name)(X, IDS, 4), want, rtol=1e-6)


def test_the_largest_id_says_how_many() -> None:
    assert ops.segment_sum(X, IDS).shape == (10, 2)
    assert ops.segment_sum(X[:0], IDS[:0]).shape == (0, 2)


def test_integers_begin_at_their_extremes() -> None:
    assert ops.segment_min(np.array([3, 5], np.int32), IDS[:2], 2).tolist() == [3, np.iinfo(np.int32).max]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "bool"])
@pytest.mark.parametrize("name", ["segment_max", "segment_min"])
def test_extrema_of_narrow_types(name: str, dtype: str) -> None:
    x = polyax.numpy.asarray(X * 3).astype(dtype)
    fold = np.ndarray.max if name == "segment_max" else np.ndarray.min
    want = [fold(np.asarray(x).astype(np.float32)[k == IDS], 0) for k in (0, 3, 2)]
    found = getattr(ops, name)(x, IDS, 4)
    assert found.dtype == dtype
    np.testing.assert_array_equal(np.asarray(found).astype(np.float32)[[0, 3, 2]], want)


def test_gradient_is_a_gather() -> None:
    weights = np.arange(8, dtype=np.float32).reshape(4, 2)
    got = polyax.grad(lambda x: (ops.segment_sum(x, IDS, 4) * weights).sum())(X)
    want = [weights[k] if 0 <= k < 4 else np.zeros(2) for k in IDS]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    (
        (lambda: ops.segment_sum(X, IDS[:2], 3), ValueError, "one id for each slice"),
        (lambda: ops.segment_sum(X, IDS, -1), ValueError, "must be non-negative, got -1"),
        (lambda: ops.segment_sum(X, IDS * 1.0, 3), TypeError, "must be integers, got float32"),
        (lambda: polyax.jit(ops.segment_sum)(X, IDS), TypeError, "give num_segments"),
    ),
)
def test_what_does_not_fit_is_named(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("data", [np.float32(2), np.full(1, 2, "f4"), np.full((1, 3), 2, "f4")], ids=np.shape)
def test_what_is_one_counts_for_each_id(data: np.ndarray) -> None:
    sums = ops.segment_sum(data, np.array([0, 2, 0, 1]), 3)
    rest = data.shape[1:]
    np.testing.assert_array_equal(sums, np.broadcast_to(np.array([4, 2, 2]).reshape(3, *[1] * len(rest)), (3, *rest)))
    highest = ops.segment_max(data, np.array([0, 2, 0]), 3)
    np.testing.assert_array_equal(highest[1], np.full(rest, -np.inf))


def test_ids_of_several_dimensions() -> None:
    sums = ops.segment_sum(np.arange(3, dtype="f4"), np.array([[0, 1, 1], [1, 1, 0]]), 2)
    np.testing.assert_array_equal(sums, [0 + 2, 1 + 2 + 0 + 1])


def test_extrema_of_complex_numbers_go_by_their_real_parts_first():
    data, ids = np.array([1 + 1j, 2, 3j, 1 + 5j], np.complex64), np.array([0, 0, 1, 0])
    with config.override(host_fallback="allow"):
        assert ops.segment_max(data, ids, 3).tolist() == [2, 3j, complex(-np.inf, 0)]
        assert ops.segment_min(data, ids, 3).tolist() == [1 + 1j, 3j, complex(np.inf, 0)]
