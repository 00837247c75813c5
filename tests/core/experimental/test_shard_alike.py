from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.experimental.shard_alike import shard_alike


def test_values_stay():
    x, y = {"a": jnp.arange(3.0)}, {"a": jnp.zeros(3, int)}
    for call in (shard_alike, polyax.jit(shard_alike)):
        a, b = call(x, y)
        assert a["a"].tolist() == [0, 1, 2] and b["a"].tolist() == [0, 0, 0] and b["a"].dtype == np.int32
    assert polyax.grad(lambda a: shard_alike(a * 2, a * 3)[0].sum())(jnp.ones(3)).tolist() == [2, 2, 2]


def test_arrays_move():
    there = polyax.devices("reference")[0]
    x = polyax.device_put(np.ones(2, np.float32), there)
    a, b = shard_alike(x, np.zeros(2, np.float32))
    assert a is x and b.devices() == {there}


def test_bad_input():
    with pytest.raises(ValueError, match=r"leaf shape: \(3,\) and `y` leaf shape: \(2,\)"):
        shard_alike(jnp.ones(3), jnp.ones(2))
    with pytest.raises(ValueError, match="Trees should match"):
        shard_alike([jnp.ones(3)], jnp.ones(3))
