"""The generators that hash positions; golden values are JAX's."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
from polyax import random

KEYS = {
    "philox2x32": [4280135257],
    "philox4x32": [1713891541, 3781805453],
    "threefry4x32": [2624366954, 3783175782, 4228967636, 1381410776],
}
"""Of a seed of more than 32 bits."""

every = pytest.mark.parametrize("name", KEYS)


@every
def test_as_the_default(name):
    with polyax.default_prng_impl(name):
        key = random.key(5)
        assert random.key_impl(key) == name
        batch = polyax.vmap(lambda k: random.normal(k, (4,)))(random.split(key, 3))
        assert np.array_equal(batch[1], random.normal(random.split(key, 3)[1], (4,)))
