"""The Gumbel distribution in its three resolutions."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import random
from polyax.random import gumbels

KEY = np.array([0, 0], np.uint32)

OF_JAX = {
    "high": [0.27473828196525574, 0.843376636505127, 0.8293889164924622, -1.1137425899505615],
    "highest": [0.274738073348999, 0.8433769941329956, 0.8293889164924622, -1.1137429475784302],
}
"""For the original layout of bits."""


@pytest.mark.parametrize("mode", sorted(OF_JAX))
def test_numbers_are_those_of_jax(mode: str) -> None:
    np.testing.assert_allclose(random.gumbel(KEY, (4,), mode=mode), OF_JAX[mode], rtol=2e-6)
    np.testing.assert_allclose(polyax.jit(lambda: random.gumbel(KEY, (4,), mode=mode))(), OF_JAX[mode], rtol=2e-6)


def test_other_dtypes_have_no_highest_mode() -> None:
    for dtype in ("float16", "bfloat16"):
        numbers = [np.asarray(random.gumbel(KEY, (50,), dtype, mode), np.float32) for mode in ("high", "highest")]
        np.testing.assert_array_equal(*numbers)


def test_categories() -> None:
    logits = np.array([[0.5, -1.0, 2.0], [0.0, 1.0, -0.5]], np.float32)
    chosen = random.categorical(KEY, logits, shape=(4, 2), mode="highest")
    assert chosen.tolist() == [[2, 1], [2, 1], [2, 0], [2, 0]]


@pytest.mark.parametrize("shift", range(40))
def test_words_to_floats_are_cut_and_never_rounded(shift: int) -> None:
    number = ((1 << 24) - 1) << shift
    words = (jnp.array(number >> 32, "uint32"), jnp.array(number & 0xFFFFFFFF, "uint32"))
    assert float(gumbels._unit_of(*words)) == number / 2.0**64


def test_the_tail() -> None:
    """The words of all zeros and all ones give the ends of what can come: finite numbers."""
    words = np.array([[0, 2**32 - 1], [0, 2**32 - 1]], np.uint32)
    most, least = np.asarray(gumbels._of_64_bits(jnp.asarray(words)))
    assert least == pytest.approx(-np.log(64 * np.log(2)), rel=1e-5)
    assert most == pytest.approx(65 * np.log(2), rel=1e-5)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="Must provide valid mode for gumbel got: lower"):
        random.gumbel(KEY, mode="lower")
