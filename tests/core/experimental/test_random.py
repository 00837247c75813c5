"""The generator with a state; golden values are JAX's."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.experimental import random
from polyax.experimental.random import StatefulPRNG, stateful_rng


@pytest.fixture(autouse=True)
def jax_layout():
    with polyax.threefry_partitionable(True):
        yield


def test_each_call_gives_others():
    rng = stateful_rng(42)
    assert np.allclose([rng.uniform(), rng.uniform()], [0.5302608, 0.72766423])
    draw = polyax.jit(rng.uniform)
    assert np.allclose([draw(), draw()], [0.6672406, 0.3890121])
    assert polyax.random.key_data(rng.key()).tolist() == [2954079971, 3276725750]
    assert polyax.random.key_data(rng.key((2, 3))).shape == (2, 3, 2)


def test_children():
    children = stateful_rng(123).spawn(2)
    assert [c.integers(0, 10, 2).tolist() for c in children] == [[4, 5], [2, 1]]
    found = polyax.vmap(lambda rng, x: x + rng.uniform())(stateful_rng(123).split(3), jnp.zeros(3))
    assert np.allclose(found, [0.35525954, 0.21937883, 0.5336956])
    with pytest.raises(ValueError, match="cannot operate on split stateful generator"):
        stateful_rng(0).split(2).uniform()


def test_distributions():
    rng = stateful_rng(0)
    assert rng.random((2, 3)).shape == (2, 3) and rng.random(dtype="float16").dtype == "float16"
    assert rng.uniform(jnp.zeros(3), 2.0).shape == (3,) and rng.uniform(5, 6, 4).min() >= 5
    assert rng.normal(jnp.full(3, 100.0), [1.0]).shape == (3,) and abs(rng.normal(100.0, 0.1) - 100) < 1
    assert rng.integers(3, size=50).max() == 2 and rng.integers(3, 5, np.int32(4)).shape == (4,)


def test_seeds():
    assert stateful_rng().uniform() != stateful_rng().uniform()
    assert polyax.random.key_impl(stateful_rng(0, impl="rbg").key()) == "rbg"
    assert polyax.jit(lambda: stateful_rng(3).uniform())() == stateful_rng(3).uniform()
    with pytest.raises(TypeError, match="requires an explicit seed"):
        polyax.jit(lambda: stateful_rng().uniform())()


def test_bad_parts():
    with pytest.raises(ValueError, match="Expected base_key to be a typed PRNG key"):
        StatefulPRNG(jnp.zeros(2, "uint32"), polyax.new_ref(jnp.asarray(0)))
    with pytest.raises(ValueError, match="Expected counter to be a scalar integer ref"):
        StatefulPRNG(polyax.random.key(0), 0)
    assert set(random.__all__) == {"StatefulPRNG", "stateful_rng"}
