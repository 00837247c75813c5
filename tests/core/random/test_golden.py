"""Random numbers are frozen: those of JAX 0.10.2 for ``PRNGKey(0)``, in both layouts of random bits.

Recorded with ``jax.config.update('jax_threefry_partitionable', ...)`` on the CPU.
"""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import nn, random

KEY = np.array([0, 0], np.uint32)
LOGITS = np.array([[0.5, -1.0, 2.0], [0.0, 1.0, -0.5]], np.float32)

CALLS = {
    "split": lambda: random.split(KEY, 3),
    "fold_in": lambda: random.fold_in(KEY, 7),
    "bits": lambda: random.bits(KEY, (5,)),
    "bits8": lambda: random.bits(KEY, (7,), "uint8"),
    "bits16": lambda: random.bits(KEY, (3,), "uint16"),
    "randint": lambda: random.randint(KEY, (6,), -100, 1000),
    "randint8": lambda: random.randint(KEY, (6,), 0, 256, "uint8"),
    "permutation": lambda: random.permutation(KEY, 10),
    "bernoulli": lambda: random.bernoulli(KEY, 0.3, (8,)),
    "choice": lambda: random.choice(KEY, 10, (5,)),
    "choice distinct": lambda: random.choice(KEY, 10, (5,), replace=False),
    "weighted": lambda: random.choice(KEY, 4, (6,), p=jnp.array([0.1, 0.2, 0.3, 0.4])),
    "categorical": lambda: random.categorical(KEY, LOGITS, shape=(4, 2)),
    "rademacher": lambda: random.rademacher(KEY, (5,)),
    "uniform": lambda: random.uniform(KEY, (5,)),
    "uniform between": lambda: random.uniform(KEY, (4,), minval=-2.0, maxval=3.0),
    "uniform half": lambda: random.uniform(KEY, (4,), "float16"),
    "normal": lambda: random.normal(KEY, (5,)),
    "normal scalar": lambda: random.normal(random.PRNGKey(1)),
    "exponential": lambda: random.exponential(KEY, (4,)),
    "gumbel": lambda: random.gumbel(KEY, (4,)),
    "truncated_normal": lambda: random.truncated_normal(KEY, -1.0, 1.0, (4,)),
    "laplace": lambda: random.laplace(KEY, (4,)),
    "logistic": lambda: random.logistic(KEY, (4,)),
    "cauchy": lambda: random.cauchy(KEY, (4,)),
    "glorot": lambda: nn.initializers.glorot_uniform()(KEY, (2, 2)),
    "he": lambda: nn.initializers.he_normal()(KEY, (2, 2)),
}

ORIGINAL = {
    "split": [[2467461003, 428148500], [3186719485, 3840466878], [2562233961, 1946702221]],
    "fold_in": [2716826189, 292468403],
    "bits": [2467461003, 428148500, 1688610540, 3840466878, 2562233961],
    "bits8": [143, 35, 95, 55, 29, 21, 219],
    "bits16": [9103, 14175, 5405],
    "randint": [968, 421, 695, 508, 678, 710],
    "randint8": [20, 49, 175, 4, 50, 242],
    "permutation": [2, 7, 9, 6, 0, 8, 1, 3, 4, 5],
    "bernoulli": [False, False, False, False, True, False, True, False],
    "choice": [8, 1, 3, 8, 8],
    "choice distinct": [2, 7, 9, 6, 0],
    "weighted": [2, 3, 1, 1, 2, 2],
    "categorical": [[0, 1], [2, 0], [2, 0], [0, 2]],
    "rademacher": [-1, 1, 1, -1, -1],
    "uniform": [0.57450044, 0.09968603, 0.39316022, 0.8941783, 0.59656656],
    "uniform between": [2.8266072, -0.87420535, 1.1651497, -0.51809084],
    "uniform half": [0.1387, 0.2158, 0.08203, 0.8037],
    "normal": [0.18784384, -1.2833426, -0.2710917, 1.2490594, 0.24447003],
    "normal scalar": [-1.1842843],
    "exponential": [3.361633, 0.25509733, 1.002475, 0.35151944],
    "gumbel": [3.344038, -0.3994127, 0.78255224, -0.19565448],
    "truncated_normal": [0.9065214, -0.4891469, 0.22965004, -0.35580844],
    "laplace": [-2.6684868, 0.79780143, -0.3093279, 0.5229594],
    "logistic": [3.326339, -1.2358515, 0.5452375, -0.8645872],
    "cauchy": [9.142522, -1.1696658, 0.44408733, -0.7440545],
    "glorot": [1.1398001, -0.6732204, 0.3258555, -0.49876064],
    "he": [1.8082591, -0.81152254, 0.36817655, -0.5777784],
}
PARTITIONABLE = {
    "split": [[1797259609, 2579123966], [928981903, 3453687069], [4146024105, 2718843009]],
    "fold_in": [2716826189, 292468403],
    "bits": [4070199207, 4202968722, 1427181096, 2012915765, 2447653815],
    "bits8": [167, 146, 40, 53, 183, 67, 125],
    "bits16": [20391, 13970, 3624],
    "randint": [689, -100, 212, 873, 771, 247],
    "randint8": [101, 80, 200, 61, 3, 211],
    "permutation": [0, 1, 8, 5, 6, 4, 3, 2, 7, 9],
    "bernoulli": [False, False, False, False, False, True, False, False],
    "choice": [9, 0, 2, 3, 1],
    "choice distinct": [0, 1, 8, 5, 6],
    "weighted": [0, 0, 3, 2, 2, 3],
    "categorical": [[0, 1], [2, 1], [2, 1], [0, 0]],
    "rademacher": [-1, -1, 1, 1, -1],
    "uniform": [0.947667, 0.9785799, 0.33229148, 0.46866846, 0.5698887],
    "uniform between": [2.7383351, 2.8928995, -0.33854258, 0.3433423],
    "uniform half": [0.3105, 0.2129, 0.0547, 0.6562],
    "normal": [1.6226422, 2.0252647, -0.43359444, -0.07861735, 0.1760909],
    "normal scalar": [-0.15443718],
    "exponential": [2.950128, 3.8434246, 0.40390354, 0.6323691],
    "gumbel": [2.9233725, 3.8326178, -0.09689324, 0.27725708],
    "truncated_normal": [0.8618594, 0.9412883, -0.2910484, -0.05364177],
    "laplace": [-2.2569816, -3.1502788, 0.40859544, 0.06471242],
    "logistic": [2.896376, 3.8217716, -0.6978392, -0.12549055],
    "cauchy": [6.0274944, 14.837895, -0.58172226, -0.09874987],
    "glorot": [1.0965558, 1.1722765, -0.4108003, -0.076746285],
    "he": [1.6552032, 1.9494075, -0.46914884, -0.085301556],
}

COVARIANCE = np.array([[2.0, 0.5], [0.5, 1.0]], np.float32)

DISTRIBUTIONS = {
    "lognormal": lambda: random.lognormal(KEY, 0.5, (3,)),
    "pareto": lambda: random.pareto(KEY, 2.0, (3,)),
    "rayleigh": lambda: random.rayleigh(KEY, 2.0, (3,)),
    "weibull_min": lambda: random.weibull_min(KEY, 2.0, 3.0, (3,)),
    "triangular": lambda: random.triangular(KEY, -1.0, 0.5, 2.0, (3,)),
    "wald": lambda: random.wald(KEY, 1.5, (3,)),
    "geometric": lambda: random.geometric(KEY, 0.2, (4,)),
    "maxwell": lambda: random.maxwell(KEY, (3,)),
    "double_sided_maxwell": lambda: random.double_sided_maxwell(KEY, 1.0, 2.0, (3,)),
    "multivariate_normal": lambda: random.multivariate_normal(KEY, np.zeros(2, np.float32), COVARIANCE, (2,)),
    "orthogonal": lambda: random.orthogonal(KEY, 2),
    "initial orthogonal": lambda: nn.initializers.orthogonal()(KEY, (3, 2)),
    "delta_orthogonal": lambda: nn.initializers.delta_orthogonal()(KEY, (3, 1, 2)),
}

OF_DISTRIBUTIONS = {
    "lognormal": [2.479466, 0.7855968, 1.185239],
    "pareto": [5.369939, 1.207963, 1.650763],
    "rayleigh": [0.5313692, 3.041307, 1.912564],
    "weibull_min": [2.996034, 1.445922, 2.001649],
    "triangular": [1.604964, 0.1899862, 0.7149454],
    "wald": [1.777871, 0.8116835, 0.791271],
    "geometric": [1.0, 7.0, 3.0, 6.0],
    "maxwell": [0.4915292, 0.8765354, 1.155511],
    "double_sided_maxwell": [-4.655539, 5.771928, 2.213114],
    "multivariate_normal": [2.568334, -0.06404694, 0.4806757, -0.3801237],
    "orthogonal": [0.9829336, 0.1839606, 0.1839606, -0.9829336],
    "initial orthogonal": [0.2612991, -0.9085854, 0.9033694, 0.3491291, 0.3400687, -0.2293068],
    "delta_orthogonal": [0.0, 0.0, -0.6755804, 0.7372864, 0.0, 0.0],
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_with_parameters(name):
    np.testing.assert_allclose(np.ravel(DISTRIBUTIONS[name]()), OF_DISTRIBUTIONS[name], rtol=1e-5, atol=1e-5)


def check(name, want):
    got = np.asarray(CALLS[name]())
    want = np.asarray(want)
    if got.dtype.kind == "f":
        np.testing.assert_allclose(got.ravel(), want, rtol=2e-3 if got.dtype == np.float16 else 2e-6, atol=1e-6)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", CALLS)
def test_original_layout(name):
    check(name, ORIGINAL[name])


@pytest.mark.parametrize("name", CALLS)
def test_partitionable_layout(name):
    with polyax.threefry_partitionable(True):
        check(name, PARTITIONABLE[name])


def test_numbers_of_the_source_documents():
    key = random.PRNGKey(18)
    assert str(key) == "[ 0 18]"
    first, second = random.split(key)
    assert str(first) == "[4197003906 1654466292]"
    assert str(second) == "[1685972163 1654824463]"
    a, b = random.split(random.PRNGKey(101), num=2)
    assert float(random.uniform(a) + 2 * random.uniform(b)) == pytest.approx(2.470635175704956, abs=2e-6)


@pytest.mark.parametrize(
    ("seed", "words"), [(0, [0, 0]), (-1, [0, 2**32 - 1]), (2**31, [0, 2**31]), (2**40 + 5, [0, 5])]
)
def test_seeds_count_by_their_lower_32_bits(seed, words):
    assert random.PRNGKey(seed).tolist() == words


def test_seeds_of_64_bits():
    assert random.PRNGKey(np.uint64(2**64 - 1)).tolist() == [0, 2**32 - 1]
    for seed in (2**63, -(2**63) - 1):
        with pytest.raises(OverflowError, match="does not fit into 64 bits"):
            random.PRNGKey(seed)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_negative_seeds_of_narrow_types_are_extended(dtype):
    seed = jnp.array(-3, dtype)
    for made in (random.PRNGKey(seed), polyax.jit(random.PRNGKey)(seed), random.key_data(random.key(seed))):
        assert made.tolist() == [0, 2**32 - 3]


def test_complex_matrices_and_numbers():
    square = [[0.0995902 + 0.8156643j, 0.3831942 + 0.4218246j], [-0.3807517 - 0.424030j, 0.8013434 + 0.1818659j]]
    np.testing.assert_allclose(random.orthogonal(KEY, 2, dtype="complex64"), square, atol=2e-6)
    rows = np.asarray(random.orthogonal(KEY, 2, (3,), "complex64", 4))
    np.testing.assert_allclose(rows @ rows.conj().swapaxes(1, 2), np.broadcast_to(np.eye(2), (3, 2, 2)), atol=1e-6)
    numbers = [0.9803627 + 0.0670267j, 0.7641262 - 0.1439840j]
    np.testing.assert_allclose(random.lognormal(KEY, 0.5, (2,), "complex64"), numbers, rtol=2e-6)


def test_vectors_of_narrow_numbers():
    """The factor of the covariance is found in the dtype of that; the sum has a dtype that holds all."""
    mean, cov = jnp.zeros(2), jnp.array([[2.0, 1.0], [1.0, 2.0]])
    vectors = random.multivariate_normal(KEY, mean, cov, (3,), "float16")
    noise = random.normal(KEY, (3, 2), "float16")
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, noise @ np.linalg.cholesky(cov).T, rtol=1e-5)


def test_traced_seeds_and_keys():
    assert polyax.jit(random.PRNGKey)(7).tolist() == [0, 7]
    keys = random.split(random.PRNGKey(0), 3)
    want = [np.asarray(random.normal(k, (2,))) for k in keys]
    np.testing.assert_array_equal(polyax.vmap(lambda k: random.normal(k, (2,)))(keys), want)
    np.testing.assert_array_equal(polyax.jit(lambda k: random.split(k, 3))(random.PRNGKey(0)), keys)


def test_permutation_of_nothing():
    assert random.permutation(KEY, -3).shape == random.permutation(KEY, 0).shape == (0,)


@pytest.mark.parametrize("axis", [0, 1])
def test_permutation_moves_whole_slices(axis):
    x = np.arange(12).reshape(3, 4)
    moved = np.asarray(random.permutation(random.PRNGKey(1), x, axis=axis))
    lines = lambda a: sorted(map(tuple, np.moveaxis(a, axis, 0)))
    assert lines(moved) == lines(x)


def test_moments():
    x = np.asarray(random.normal(random.PRNGKey(3), (100_000,)), np.float64)
    assert abs(x.mean()) < 0.01
    assert abs(x.std() - 1) < 0.01
    u = np.asarray(random.uniform(random.PRNGKey(4), (100_000,)))
    assert u.min() >= 0
    assert u.max() < 1
    counts = np.bincount(np.asarray(random.randint(random.PRNGKey(5), (60_000,), 0, 6)))
    assert counts.shape == (6,)
    assert (abs(counts - 10_000) < 400).all()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: random.PRNGKey(1.5), TypeError, "PRNG key seed must be an integer"),
        (lambda: random.PRNGKey(0, impl="mystery"), ValueError, 'unrecognized PRNG implementation "mystery"'),
        (lambda: random.normal("key"), TypeError, "key_data to have ndim, shape, and dtype attributes. Got key"),
        (lambda: random.normal(3), TypeError, "key_data to have ndim, shape, and dtype attributes. Got 3"),
        (lambda: random.normal(None), TypeError, "unexpected PRNG key type <class 'NoneType'>"),
        (lambda: random.normal(jnp.arange(2)), TypeError, "expected key_data.dtype = uint32; got dtype=int32"),
        (lambda: random.normal(jnp.zeros(3, "uint32")), TypeError, "expected key_data.shape to end with (2,); got sha"),
        (lambda: random.normal(random.split(KEY)), ValueError, "normal accepts a single key, but was given a key arra"),
        (lambda: random.normal(random.split(KEY)), ValueError, "was given a key array of shape (2, 2) != ()"),
        (lambda: random.multivariate_normal(KEY, jnp.zeros(2), jnp.zeros(2)), ValueError, "got cov.ndim == 1"),
        (lambda: random.uniform(KEY, dtype=int), ValueError, "dtype argument to `uniform` must be a float dtype, got "),
        (lambda: random.choice(KEY, 3, (4,), replace=False), ValueError, "Cannot take a larger sample (size 4) than p"),
        (lambda: random.choice(KEY, 3, (4,), p=jnp.ones(2)), ValueError, "p must be None or a 1D vector"),
        (lambda: random.bernoulli(KEY, 0.5, mode="x"), ValueError, "expected 'high' or 'low'"),
        (lambda: random.bernoulli(KEY, 1), TypeError, "must have a floating dtype, got int32"),
        (lambda: random.fold_in(KEY, -1), OverflowError, "out of bounds for uint32"),
        (lambda: random.truncated_normal(KEY, jnp.zeros(3), 1.0, (2,)), ValueError, "broadcast"),
    ],
)  # fmt: skip
def test_bad_input(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
