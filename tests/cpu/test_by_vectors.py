"""Products of a small matrix and a vector as code of loops, against NumPy, and what is called instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax import numpy as jnp

R = np.random.default_rng(13)
SHAPES = [(9, 9), (16, 16), (17, 5), (5, 17), (32, 32), (3, 40), (40, 3), (64, 16), (1, 64), (64, 2), (20, 33)]
TOLERANCE = {"float32": 1e-5, "float64": 1e-14}

pytestmark = pytest.mark.usefixtures("in_64_bits", "native")


def in_a_loop(f: Any, *args: np.ndarray) -> np.ndarray:
    """What ``f`` makes of the last of its arguments, scaled by the number of the turn."""
    *fixed, x = args
    run = polyax.jit(lambda x, *fixed: lax.map(lambda i: f(*fixed, x * i), jnp.arange(1.0, 3.0, dtype=x.dtype)))
    return np.asarray(run(x, *fixed))[-1] / 2


@pytest.mark.parametrize("way", ["ij,j->i", "ji,j->i", "j,ij->i", "j,ji->i"])
@pytest.mark.parametrize(("rows", "terms"), SHAPES)
def test_products_are_those_of_numpy(rows: int, terms: int, way: str, dtype: str, code: list[str]) -> None:
    shape = (rows, terms) if "ij" in way else (terms, rows)
    a, x = R.uniform(-1, 1, shape).astype(dtype), R.uniform(-1, 1, terms).astype(dtype)
    first = way.split(",")[0] != "j"
    f = lambda a, x: jnp.einsum(way, *((a, x) if first else (x, a)))
    want = np.einsum(way, *((a, x) if first else (x, a)), dtype="float64", casting="same_kind", optimize=False)
    np.testing.assert_allclose(in_a_loop(f, a, x), want, atol=TOLERANCE[dtype] * terms, rtol=TOLERANCE[dtype])
    assert code and not any("@step" in text for text in code)


def test_larger_ones_are_called(dtype: str, code: list[str]) -> None:
    a, x = R.uniform(-1, 1, (40, 40)).astype(dtype), R.uniform(-1, 1, 40).astype(dtype)
    np.testing.assert_allclose(in_a_loop(lambda a, x: a @ x, a, x), a @ x, atol=1e-4)
    assert any("@step" in text for text in code)
