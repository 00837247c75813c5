"""``rng_bit_generator`` and the generators made of it; golden values are JAX's on its CPU."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax, random
from polyax.lax import RandomAlgorithm

STATE = np.uint32([1, 2, 3, 4])
PHILOX = [512747620, 1298009047, 1267190206, 761827841, 1383286907]


LAID_OUT = {
    (): (22, 3415117473),
    (2, 3): (24, [[3415117473, 2671738199, 3894602589], [4055880835, 1276016186, 233943428]]),
    (3, 3): (
        27,
        [
            [3415117473, 2671738199, 3894602589],
            [4055880835, 1276016186, 233943428],
            [2246084795, 2373693372, 3177663338],
        ],
    ),
    (2, 1, 3): (24, [[[3415117473, 2671738199, 3894602589]], [[4055880835, 1276016186, 233943428]]]),
    (3, 0): (21, [[], [], []]),
}


@pytest.mark.parametrize("shape", LAID_OUT)
def test_threefry_lays_its_words_along_one_dimension(shape):
    following, bits = LAID_OUT[shape]
    state, found = lax.rng_bit_generator(np.uint32([7, 14, 21, 28]), shape, "uint32", RandomAlgorithm.RNG_THREE_FRY)
    assert state.tolist() == [7, 14, following, 28] and found.tolist() == bits


def test_bits_of_64():
    with polyax.enable_x64(True):
        _, found = lax.rng_bit_generator(STATE, (3,), np.uint64)
        assert found.tolist() == [5574906407289874532, 3272025663544478142, 7043725020835825787]
        state, found = lax.rng_bit_generator(np.uint64([1, 2]), (3,), np.uint64)
        assert state.tolist() == [1, 4]
        assert found.tolist() == [12229731395331991369, 3437131457114678231, 13465615291114923006]


def test_the_counter_goes_on():
    """Also from its lower word to the upper one."""
    last = np.uint32([1, 2, 2**32 - 1, 4])
    state, both = lax.rng_bit_generator(last, (8,))
    assert state.tolist() == [1, 2, 1, 5]
    following, _ = lax.rng_bit_generator(last, (4,))
    assert lax.rng_bit_generator(following, (4,))[1].tolist() == both[4:].tolist()


def test_under_transformations():
    f = lambda s: lax.rng_bit_generator(s, (2, 3))
    assert "rng_bit_generator" in str(polyax.make_jaxpr(f)(STATE)) and polyax.jit(f)(STATE)[1].shape == (2, 3)
    states, bits = polyax.vmap(f)(jnp.stack([STATE, STATE + np.uint32(7)]))
    assert bits.ravel().tolist() == lax.rng_bit_generator(STATE, (12,))[1].tolist()
    assert states.tolist() == [[1, 2, 6, 4], [8, 9, 10, 11]]
    assert polyax.grad(lambda x: x * lax.rng_bit_generator(STATE, ())[1].astype("float32"))(1.0) == np.float32(
        PHILOX[0]
    )


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: lax.rng_bit_generator(np.uint32([1, 2]), (3,)), r"a state of type uint32\[4\] or uint64\[2\]"),
        (lambda: lax.rng_bit_generator(np.int32([1, 2, 3, 4]), (3,)), "a state of type"),
        (lambda: lax.rng_bit_generator(STATE, (3,), np.float32), "rng_bit_generator: unsupported dtype float32"),
    ],
)
def test_bad_states(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_numbers_of_no_state():
    f = polyax.jit(lambda a, b: lax.rng_uniform(a, b, (100,)))
    x, y = f(np.float32(2), np.float32(3)), f(np.float32(2), np.float32(3))
    assert (x >= 2).all() and (x < 3).all() and not (x == y).any()
    integers = lax.rng_uniform(np.int32(0), np.int32(4), (100,))
    assert integers.dtype == np.int32 and set(integers.tolist()) <= {0, 1, 2, 3}
    with pytest.raises(ValueError, match="must have identical dtypes, got int32 and float32"):
        lax.rng_uniform(0, 1.0, (3,))
    with pytest.raises(ValueError, match=r"must be scalars; got shapes \(1,\) and \(\)"):
        lax.rng_uniform(np.ones(1), np.float64(1), (3,))


# --- generators

GOLDEN = {
    "rbg": {
        "split": [[3625411723, 1954958720, 3625411723, 1954958720], [195045567, 4062205631, 195045567, 4062205631]],
        "fold_in": [276534068, 1641862660, 276534068, 1641862660],
        "mapped": [[1066376912, 1328836812], [4291577405, 2233762157]],
    },
    "unsafe_rbg": {
        "split": [[3109483441, 1367189518, 2515982561, 3310080778], [3848958661, 3271070264, 2639373597, 23941900]],
        "fold_in": [56543296, 1826787330, 2453521982, 2503663986],
        "mapped": [[1135839771, 3857205308], [1650114431, 60518699]],
    },
}


@pytest.mark.parametrize("name", GOLDEN)
def test_generators(name):
    with polyax.threefry_partitionable(True):  # as in JAX
        key, golden = random.key(7, impl=name), GOLDEN[name]
        assert random.key_data(key).tolist() == [0, 7, 0, 7] and str(random.key_impl(key)) == name
        assert random.bits(key, (5,)).tolist() == [3109483441, 1367189518, 2515982561, 3310080778, 2824504284]
        assert np.allclose(random.normal(key, (3,)), [0.5947149, -0.47239164, 0.21674846])
        assert random.key_data(random.split(key)).tolist() == golden["split"]
        assert random.key_data(random.fold_in(key, 3)).tolist() == golden["fold_in"]
        assert polyax.vmap(lambda k: random.bits(k, (2,)))(random.split(key)).tolist() == golden["mapped"]


def test_keys_in_words_are_of_the_default_generator():
    with polyax.default_prng_impl("rbg"):
        words = random.PRNGKey(7)
        assert words.tolist() == [0, 7, 0, 7] and random.PRNGKey(jnp.int32(7)).tolist() == [0, 7, 0, 7]
        assert random.bits(words, (2,)).tolist() == [3109483441, 1367189518]
        assert random.split(words).shape == (2, 4) and random.fold_in(words, 1).shape == (4,)
        assert random.key(7).dtype == random.key_dtype() == random.key_dtype("rbg")
    assert str(random.key_dtype()) == "key<fry>" and str(random.key_dtype("unsafe_rbg")) == "key<urbg>"
    with pytest.raises(ValueError, match='unrecognized PRNG implementation "dice"'):
        random.key_dtype("dice")


def test_numbers_of_narrow_types():
    """In what few numbers the type has; nextafter takes a scalar and an array there too."""
    with polyax.threefry_partitionable(True):
        found = random.truncated_normal(random.key(42), -1.0, 1.0, (3,), "float8_e5m2")
    assert found.dtype == jnp.float8_e5m2 and found.astype("float32").tolist() == [0, 0.5, 0.5]
    after = lax.nextafter(jnp.ones(3, jnp.float8_e4m3fn), jnp.float8_e4m3fn(2))
    assert after.astype("float32").tolist() == [1.125] * 3


def test_bad_dtypes_and_axes():
    with pytest.raises(TypeError, match="randint only accepts integer dtypes, got float32"):
        random.randint(random.key(0), (3,), 0, 5, "float32")
    with pytest.raises(ValueError, match="axis 1 is out of bounds for array of dimension 1"):
        random.permutation(random.key(0), 5, 1)


BEYOND = [(0, 2**31, "int32"), (-(2**31) - 1, 5, "int32"), (0, 2**32, "uint32"), (0, 2**31, "int8")]


@pytest.mark.parametrize("minval, maxval, dtype", BEYOND)
def test_bounds_beyond_the_dtype(minval, maxval, dtype):
    with pytest.raises(OverflowError, match="argument path is m..val. Got <class 'int'> with value"):
        random.randint(random.key(0), (3,), minval, maxval, dtype)
    assert random.randint(random.key(0), (3,), 0, np.uint32(2**32 - 1), "uint32").dtype == np.uint32


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_counts_of_narrow_probabilities_have_the_usual_type(dtype):
    assert random.multinomial(random.key(0), 5, jnp.array([0.2, 0.8], dtype)).dtype == np.float32


def test_a_number_between_arrays_of_one_element_is_one() -> None:
    key = random.PRNGKey(3)
    low, high = np.full((1,), 2.0, np.float32), np.full((1,), 3.0, np.float32)
    assert random.uniform(key, minval=low, maxval=high).shape == (1,)
    assert random.uniform(key, minval=low[None], maxval=3.0).shape == (1, 1)
    assert random.uniform(key, minval=low, maxval=high)[0] == random.uniform(key, minval=2.0, maxval=3.0)
    found = polyax.vmap(lambda k, a, b: random.uniform(k, (), minval=a, maxval=b))(
        random.split(key, 4), np.zeros((4, 1), np.float32), np.ones((4, 1), np.float32)
    )
    assert found.shape == (4, 1)
    with pytest.raises(ValueError, match=r"got result \(3,\) for shape argument \(\)"):
        random.uniform(key, minval=np.zeros(3, np.float32))


@pytest.mark.parametrize(
    ("name", "args"),
    [("chisquare", (1.0,)), ("dirichlet", (np.ones(2),)), ("geometric", (0.5,)), ("lognormal", ()), ("maxwell", ()),
     ("multivariate_normal", (np.zeros(2), np.eye(2))), ("orthogonal", (2,)), ("pareto", (1.0,)), ("rademacher", ()),
     ("rayleigh", (1.0,)), ("triangular", (0.0, 0.5, 1.0)), ("weibull_min", (1.0, 1.0))],
)  # fmt: skip
def test_many_keys_are_refused_by_the_name_of_the_function(name, args):
    with pytest.raises(ValueError, match=f"{name} accepts a single key, but was given a key array of shape"):
        getattr(random, name)(random.split(random.key(0)), *args)


def test_gamma_numbers_of_rbg_are_those_of_their_own_keys():
    with polyax.threefry_partitionable(True):  # as in JAX
        found = random.gamma(random.key(1, impl="rbg"), 1.0, (3,))
    np.testing.assert_allclose(found, [0.41313928, 2.047813, 0.9752502], rtol=1e-5)  # JAX's


def test_words_are_of_the_default_generator_by_name():
    with polyax.default_prng_impl("rbg"):
        assert random.key_impl(random.PRNGKey(0)) == "rbg"


GAMMAS = {
    "rbg": ([[4.3616843, 1.0139328], [2.095439, 2.6774364]], [[1.0003563, -0.423924], [1.4728583, 0.4991644]]),
    "unsafe_rbg": ([[3.0838695, 4.3805203], [3.0792952, 0.5409339]], [[0.5169477, 1.0062313], [1.1247008, -0.6144581]]),
}


@pytest.mark.parametrize("impl", GAMMAS)
def test_mapped_gamma_numbers(impl):
    """Each row is drawn with a key of its own, though other draws take all rows from the first key."""
    with polyax.threefry_partitionable(True):  # as in JAX
        keys = random.split(random.key(3, impl=impl), 4)
        by_key = polyax.vmap(polyax.vmap(lambda key: random.gamma(key, 2.0)))(keys.reshape(2, 2))
        by_shape = polyax.vmap(lambda a: random.loggamma(keys[0], a, (2,)))(np.float32([1, 2]))
    np.testing.assert_allclose(by_key, GAMMAS[impl][0], rtol=1e-5)
    np.testing.assert_allclose(by_shape, GAMMAS[impl][1], rtol=1e-5)


@pytest.mark.parametrize("impl, tag", [("rbg", "rbg"), ("unsafe_rbg", "urbg"), ("philox4x32", "phx4")])
def test_poisson_numbers_are_of_threefry_only(impl, tag):
    refused = pytest.raises(NotImplementedError, match=f"only implemented for the threefry2x32 RNG, not {tag}")
    with refused:
        random.poisson(random.key(0, impl=impl), 3.0)
    with refused, polyax.default_prng_impl(impl):
        random.poisson(random.PRNGKey(0), 3.0)
