"""``approx_max_k`` and ``approx_min_k``: exact, with the sizes and the refusals of the approximation."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
from polyax import lax

X = np.random.default_rng(0).normal(size=(3, 40)).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_is_exact(axis: int) -> None:
    values, where = lax.approx_max_k(X, 2, axis)
    ordered = np.sort(X, axis)
    want = np.flip(np.take(ordered, [-2, -1], axis), axis)
    assert (np.asarray(values) == want).all() and (np.take_along_axis(X, np.asarray(where), axis) == want).all()
    assert (np.asarray(lax.approx_min_k(X, 2, axis)[0]) == np.take(ordered, [0, 1], axis)).all()


@pytest.mark.parametrize(
    ("size", "k", "settings", "bins"),
    [
        (500, 10, {}, 500),  # one tile
        (5000, 1, {}, 1024),
        (5000, 10, {}, 2048),  # 175 bins would do, so that five tiles can be halved twice
        (5000, 10, {"recall_target": 1.0}, 5000),
        (5000, 100, {"recall_target": 0.99}, 5000),
        (5000, 100, {"recall_target": 0.99, "reduction_input_size_override": 20000}, 3072),
    ],
)
def test_how_many_are_left_before_they_are_aggregated(size: int, k: int, settings: dict[str, float], bins: int) -> None:
    x = np.random.default_rng(1).permutation(size).astype(np.float32)
    made = polyax.eval_shape(lambda x: lax.approx_max_k(x, k, aggregate_to_topk=False, **settings), x)
    assert [a.shape for a in made] == [(bins,)] * 2


BAD = {
    "integers": (lambda: lax.approx_max_k(np.arange(3), 1), ValueError, "must be a floating type, got int32"),
    "booleans": (lambda: lax.approx_max_k(X > 0, 1), ValueError, "must be a floating type, got bool"),
    "a scalar": (lambda: lax.approx_min_k(1.0, 1), TypeError, "must have >= 1 dimension"),
    "none": (lambda: lax.approx_max_k(X, 0), ValueError, "k must be positive, got 0"),
    "too many": (lambda: lax.approx_max_k(X, 41), ValueError, "size of reduction_dim 40, got 41"),
    "recall": (lambda: lax.approx_max_k(X, 1, recall_target=1.5), ValueError, "range in .0, 1., got 1.5"),
    "a part": (lambda: lax.approx_max_k(X, 1, reduction_input_size_override=9), ValueError, "at least .* 40, got 9"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()
