"""Distributions that are sampled by loops: numbers recorded from JAX 0.10.2, moments, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import random

KEY = np.array([0, 0], np.uint32)
A = np.array([0.3, 1.0, 2.5, 40.0], np.float32)
RATES = np.array([0.0, 0.5, 3.0, 9.0, 11.0, 100.0, 1e4, np.nan], np.float32)

CALLS: dict[str, Callable[[], Any]] = {
    "gamma": lambda: random.gamma(KEY, A),
    "loggamma": lambda: random.loggamma(KEY, 1e-3, (3,)),
    "beta": lambda: random.beta(KEY, A, 2.0),
    "dirichlet": lambda: random.dirichlet(KEY, A),
    "chisquare": lambda: random.chisquare(KEY, A),
    "f": lambda: random.f(KEY, A, 3.0),
    "t": lambda: random.t(KEY, A, (4,)),
    "generalized_normal": lambda: random.generalized_normal(KEY, 1.5, (4,)),
    "ball": lambda: random.ball(KEY, 2, 2, (2,)),
    "poisson": lambda: random.poisson(KEY, RATES),
}

RECORDED = {
    "gamma": [0.07526813, 0.073628, 1.293755, 38.32242],
    "loggamma": [-589.3492, -256.9156, -470.3244],
    "beta": [0.006339051, 0.1890848, 0.5536152, 0.9541765],
    "dirichlet": [0.001892821, 0.001851576, 0.03253496, 0.9637206],
    "chisquare": [0.009703842, 0.007571719, 0.7959637, 37.44939],
    "f": [28.17625, 0.2931675, 1.045132, 9.740512],
    "t": [0.03897548, 4.615596, -1.468324, 0.02091119],
    "generalized_normal": [-0.3283165, 0.3462304, 0.1322916, -0.03212744],
    "ball": [0.291548, -0.7957644, -0.365236, 0.8038861],
    "poisson": [0.0, 0.0, 6.0, 11.0, 10.0, 97.0, 10081.0, -1.0],
}


@pytest.mark.parametrize("name", CALLS)
def test_numbers_are_those_of_jax(name: str) -> None:
    with polyax.threefry_partitionable(False):
        np.testing.assert_allclose(np.ravel(CALLS[name]()), RECORDED[name], rtol=2e-5)


def test_moments() -> None:
    n = 2000
    draws = np.asarray(random.gamma(KEY, 2.5, (n,)))
    np.testing.assert_allclose([draws.mean(), draws.var()], [2.5, 2.5], rtol=0.1)
    counts = np.asarray(random.poisson(KEY, 20.0, (n,)))
    np.testing.assert_allclose([counts.mean(), counts.var()], [20.0, 20.0], rtol=0.1)
    points = np.asarray(random.ball(KEY, 3, shape=(n,)))
    radii = np.linalg.norm(points, axis=-1)
    assert radii.max() <= 1
    np.testing.assert_allclose((radii**3).mean(), 0.5, rtol=0.1)


def test_vectors_sum_to_one() -> None:
    np.testing.assert_allclose(np.sum(random.dirichlet(KEY, A, (5,)), -1), np.ones(5), rtol=1e-6)


def test_under_jit_and_vmap() -> None:
    keys = random.split(KEY, 3)
    got = polyax.jit(polyax.vmap(lambda k: random.gamma(k, A)))(keys)
    np.testing.assert_allclose(got, np.stack([random.gamma(k, A) for k in keys]), rtol=1e-5)


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="gamma parameter shapes must be broadcast-compatible"):
        random.gamma(KEY, A, (1,))
    with pytest.raises(ValueError, match="dirichlet requires alpha.ndim >= 1"):
        random.dirichlet(KEY, 1.0)
