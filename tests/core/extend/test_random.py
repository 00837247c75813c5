"""Generators that users define."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import random
from polyax.extend import random as extend

RULES = {
    "seed": lambda s: jnp.stack([s, s]).astype("uint32"),
    "split": lambda k, shape: jnp.broadcast_to(k, (*shape, 2)) + jnp.arange(2, dtype="uint32"),
    "random_bits": lambda k, width, shape: jnp.full(shape, k[0], f"uint{width}"),
    "fold_in": lambda k, data: k + data,
}


@pytest.fixture(scope="module")
def own():
    return extend.define_prng_impl(key_shape=(2,), name="of a test", tag="tst", **RULES)


def test_keys(own):
    key = random.key(3, impl=own)
    assert str(key.dtype) == "key<tst>" and random.key_impl(key) is own
    assert random.bits(key, (2,)).tolist() == [3, 3]
    assert random.key_data(random.split(key)).tolist() == [[3, 4], [3, 4]]
    assert random.key_data(random.fold_in(key, 3)).tolist() == [6, 6]
    assert random.uniform(key, (2,)).tolist() == [0, 0]
    mapped = polyax.jit(polyax.vmap(lambda k: random.bits(k, dtype="uint8")))
    assert mapped(random.split(key, 3)).tolist() == [3, 3, 3]


def test_words_in_any_shape():
    words = lambda s: jnp.arange(6, dtype="uint32").reshape(3, 2) + s.astype("uint32")
    own = extend.define_prng_impl(
        key_shape=(3, 2),
        seed=words,
        split=lambda k, shape: jnp.broadcast_to(k, (*shape, 3, 2)),
        random_bits=lambda k, width, shape: jnp.full(shape, k[2, 1], f"uint{width}"),
        fold_in=lambda k, data: k.at[2].add(data),
        name="of a table",
    )
    key = random.key(4, impl=own)
    assert key.shape == () and repr(random.key_impl(key)) == "PRNGSpec('of a table')"
    assert random.key_data(key).tolist() == words(jnp.uint32(4)).tolist()
    assert random.key_data(random.split(key, (2, 5))).shape == (2, 5, 3, 2)
    assert random.bits(random.fold_in(key, 3), (2,)).tolist() == [12, 12]
    wrapped = random.wrap_key_data(jnp.stack([random.key_data(key)] * 2), impl=own)
    assert wrapped.shape == (2,) and (wrapped == key).all()
    with pytest.raises(TypeError, match=r"to end with \(3, 2\); got shape=\(6,\) for impl=of a table"):
        random.wrap_key_data(jnp.zeros(6, "uint32"), impl=own)


def test_seeds(own):
    assert random.key_data(extend.seed_with_impl(own, 4)).tolist() == [4, 4]
    expected = random.key_data(polyax.vmap(random.key)(jnp.arange(3)))
    assert (random.key_data(extend.random_seed(jnp.arange(3), extend.threefry_prng_impl)) == expected).all()
    assert extend.rbg_prng_impl.name == "rbg" and extend.unsafe_rbg_prng_impl.name == "unsafe_rbg"


def test_threefry_of_counts():
    # numbers of JAX
    found = extend.threefry_2x32(jnp.array([1, 2], "uint32"), jnp.arange(4, dtype="uint32"))
    assert found.tolist() == [4128513521, 3192206206, 2345921600, 3057534555]
    assert extend.threefry_2x32(np.array([0, 7], "uint32"), jnp.zeros((3, 1), "uint32")).shape == (3, 1)


def test_bad_input():
    with pytest.raises(ValueError, match="'rbg' is the name of a generator of polyax"):
        extend.define_prng_impl(key_shape=(2,), name="rbg", **RULES)
    with pytest.raises(TypeError, match="requires uint32 arguments, got"):
        extend.threefry_2x32(jnp.array([1, 2]), jnp.arange(4))
