"""Activations, softmax and its kin, and initializers against formulas in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import nn, random

X = np.array([[-4.0, -1.0, -0.25, 0.0], [0.25, 1.0, 2.5, 8.0]], np.float32)
Z = X.astype(np.float64)
SIGMOID = 1 / (1 + np.exp(-Z))
ERF = np.vectorize(math.erf)

FORMULAS = {
    "relu": np.maximum(Z, 0),
    "relu6": np.clip(Z, 0, 6),
    "sigmoid": SIGMOID,
    "log_sigmoid": np.log(SIGMOID),
    "softplus": np.log1p(np.exp(Z)),
    "squareplus": (Z + np.sqrt(Z**2 + 4)) / 2,
    "sparse_plus": np.where(Z <= -1, 0, np.where(Z >= 1, Z, (Z + 1) ** 2 / 4)),
    "sparse_sigmoid": np.clip((Z + 1) / 2, 0, 1),
    "soft_sign": Z / (1 + np.abs(Z)),
    "silu": Z * SIGMOID,
    "mish": Z * np.tanh(np.log1p(np.exp(Z))),
    "elu": np.where(Z > 0, Z, np.expm1(np.minimum(Z, 0))),
    "celu": np.where(Z > 0, Z, np.expm1(np.minimum(Z, 0))),
    "selu": 1.0507009873554805 * np.where(Z > 0, Z, 1.6732632423543772 * np.expm1(np.minimum(Z, 0))),
    "leaky_relu": np.where(Z >= 0, Z, 0.01 * Z),
    "hard_tanh": np.clip(Z, -1, 1),
    "hard_sigmoid": np.clip(Z + 3, 0, 6) / 6,
    "hard_silu": Z * np.clip(Z + 3, 0, 6) / 6,
    "gelu": Z / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (Z + 0.044715 * Z**3))),
    "tanh": np.tanh(Z),
    "identity": Z,
    "glu": Z[:, :2] * SIGMOID[:, 2:],
    "softmax": np.exp(Z) / np.exp(Z).sum(-1, keepdims=True),
    "log_softmax": Z - np.log(np.exp(Z).sum(-1, keepdims=True)),
    "logsumexp": np.log(np.exp(Z).sum()),
    "logmeanexp": np.log(np.exp(Z).mean()),
    "standardize": (Z - Z.mean(-1, keepdims=True)) / np.sqrt(Z.var(-1, keepdims=True) + 1e-5),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formula(name):
    np.testing.assert_allclose(getattr(nn, name)(X), FORMULAS[name], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", [n for n in FORMULAS if n not in ("logsumexp", "logmeanexp", "glu")])
def test_derivative_agrees_with_finite_differences(name):
    fun, x, d = getattr(nn, name), np.linspace(-2.3, 2.2, 6), 1e-3
    with polyax.enable_x64(True):
        x = jnp.asarray(x)
        weights = jnp.arange(1.0, 7.0)
        got = polyax.grad(lambda x: jnp.sum(fun(x) * weights))(x)
        steps = d * np.eye(6)
        want = [float(jnp.sum((fun(x + s) - fun(x - s)) * weights)) / (2 * d) for s in steps]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_exact_gelu():
    np.testing.assert_allclose(nn.gelu(X, approximate=False), Z * (1 + ERF(Z / np.sqrt(2))) / 2, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["relu", "relu6"])
def test_derivative_at_the_kink_is_zero(name):
    assert polyax.grad(getattr(nn, name))(0.0).item() == 0.0


def test_large_numbers_do_not_overflow():
    x = np.array([1000.0, 1000.0, -1000.0], np.float32)
    np.testing.assert_allclose(nn.softmax(x), [0.5, 0.5, 0.0])
    np.testing.assert_allclose(nn.logsumexp(x), 1000 + np.log(2), rtol=1e-6)
    np.testing.assert_allclose(nn.log_softmax(x)[:2], -np.log(2), rtol=1e-6)
    assert nn.logsumexp(np.array([-np.inf, -np.inf])).item() == -np.inf
    assert np.isfinite(polyax.grad(nn.softplus)(1000.0))


def test_slopes_of_log1mexp_are_finite_where_it_is():
    x = np.array([1e-20, 1e-10, 0.5, 1.0, 50.0], np.float32)
    slope = polyax.grad(lambda x: nn.log1mexp(x).sum())(x)
    np.testing.assert_allclose(slope, 1 / np.expm1(x.astype(float)), rtol=1e-5)


def test_logsumexp_with_factors_and_masks():
    b = np.array([[1.0, -1.0, 2.0, 0.5], [1.0, 0.0, 3.0, 1.0]], np.float32)
    total = (b * np.exp(Z)).sum(1)
    value, sign = nn.logsumexp(X, axis=1, b=b, return_sign=True)
    np.testing.assert_allclose(value, np.log(np.abs(total)), rtol=1e-5)
    np.testing.assert_array_equal(sign, np.sign(total))
    assert np.isnan(nn.logsumexp(X[0], b=-np.ones(4)))
    masked = nn.logsumexp(X, axis=1, where=X > -1, keepdims=True)
    np.testing.assert_allclose(masked, np.log(np.exp(Z).sum(1, where=X > -1, keepdims=True)), rtol=1e-6)
    for one, axis in ((X[0], None), (X[0], -1), (X[:1], 0), (np.float32(2), None)):  # the mask repeats what it masks
        wanted = np.log(np.exp(one + np.zeros((2, 4))).sum(axis, where=X > -1, keepdims=True))
        found = nn.logsumexp(one, axis=axis, where=X > -1, keepdims=True)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
        twice = nn.logsumexp(one, axis=axis, b=2.0, where=X > -1, keepdims=True)
        np.testing.assert_allclose(twice, wanted + np.log(2), rtol=1e-6)
    np.testing.assert_allclose(nn.softmax(X, where=X > -1).sum(-1), [1, 1], rtol=1e-6)
    nothing = np.zeros_like(X, bool)
    assert np.isneginf(nn.log_softmax(X, where=nothing)).all() and not np.any(nn.softmax(X, where=nothing))


def test_one_hot():
    np.testing.assert_array_equal(nn.one_hot(np.array([2, -1, 3, 0]), 3), [[0, 0, 1], [0, 0, 0], [0, 0, 0], [1, 0, 0]])
    assert nn.one_hot(np.array([[1]]), 3, axis=0, dtype=jnp.int32).shape == (3, 1, 1)
    with pytest.raises(polyax.errors.ConcretizationTypeError, match="num_classes"):
        polyax.jit(lambda n: nn.one_hot(jnp.arange(2), n))(3)
    with pytest.warns(DeprecationWarning, match="jax.nn.one_hot input should be integer-typed; got dtype=float32"):
        assert nn.one_hot(jnp.ones(2), 3).tolist() == [[0, 1, 0]] * 2


def test_classes_are_counted():
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        nn.one_hot(jnp.arange(2), 2.5)


@pytest.mark.parametrize("approximate", [True, False])
def test_gelu_is_never_weak(approximate):
    assert not nn.gelu(1.0, approximate).weak_type and nn.gelu(jnp.float16(1), approximate).dtype == "float16"


def test_integers_become_floats_and_relu_keeps_them():
    assert nn.relu(jnp.arange(-2, 2)).dtype == jnp.int32
    assert nn.relu(jnp.array([True])).dtype == jnp.int32 and nn.relu(jnp.array([True])).weak_type
    assert nn.soft_sign(jnp.arange(-2, 2)).dtype == jnp.float32
    for fun in (nn.relu6, nn.elu, nn.celu, nn.selu, nn.leaky_relu, nn.hard_silu, nn.sparse_plus):
        assert fun(jnp.arange(-2, 2)).weak_type and fun(jnp.arange(-2, 2)).dtype == jnp.float32
        assert fun(jnp.arange(2, dtype=jnp.bfloat16)).dtype == jnp.bfloat16


def test_both_parts_of_celu_share_its_second_derivative_at_zero():
    assert [f(0.0).item() for f in (polyax.grad(nn.celu), polyax.grad(polyax.grad(nn.celu)))] == [1.0, 0.25]


def test_slopes_promote_as_factors():
    assert nn.leaky_relu(jnp.arange(-2, 2), 3).dtype == jnp.int32
    assert nn.leaky_relu(np.float32(-1), 3).item() == -3.0
    with pytest.raises(TypeError, match="leaky_relu requires ndarray or scalar arguments, got <class 'list'>"):
        nn.leaky_relu([1.0])


@pytest.mark.parametrize("name", ["sigmoid", "silu", "glu"])
def test_integers_have_no_sigmoid(name):
    with pytest.raises(TypeError, match="logistic does not accept dtype int32"):
        getattr(nn, name)(jnp.arange(-2, 2))


@pytest.mark.parametrize(
    ("name", "variance"),
    [
        ("glorot_uniform", 2 / 500),
        ("glorot_normal", 2 / 500),
        ("he_normal", 2 / 200),
        ("lecun_uniform", 1 / 200),
        ("he_uniform", 2 / 200),
    ],
)
def test_variance_of_initial_weights(name, variance):
    weights = np.asarray(getattr(nn.initializers, name)()(random.PRNGKey(0), (200, 300)))
    assert weights.var() == pytest.approx(variance, rel=0.05)
    assert abs(weights.mean()) < 0.01


def test_complex_weights():
    """Their variance is that of both parts together; the first ones are those of JAX."""
    key = random.key(0)
    weights = np.asarray(nn.initializers.he_normal()(key, (200, 300), jnp.complex64))
    assert abs(weights.mean()) < 0.01 and np.mean(np.abs(weights) ** 2) == pytest.approx(2 / 200, rel=0.05)
    assert np.abs(weights).max() < 2 * np.sqrt(2 / 200) / 0.953
    disk = np.asarray(nn.initializers.lecun_uniform()(key, (200, 300), jnp.complex64))
    assert np.mean(np.abs(disk) ** 2) == pytest.approx(1 / 200, rel=0.05)
    assert np.abs(disk).max() <= np.sqrt(2 / 200) * 1.0001 and abs((disk**2).mean()) < 1e-3
    with polyax.threefry_partitionable(True):
        first = nn.initializers.he_normal()(key, (2, 3), jnp.complex64)[0, :2]
        np.testing.assert_allclose(first, [1.3880054 + 0.06365467j, 0.46200234 + 0.06099463j], rtol=2e-5)
        first = nn.initializers.he_uniform()(key, (2, 3), jnp.complex64)[0, :2]
        np.testing.assert_allclose(first, [1.2965695 + 0.05946137j, 0.5987558 + 0.07904915j], rtol=2e-5)


def test_plain_initializers():
    key = random.PRNGKey(0)
    assert nn.initializers.zeros(key, (2,)).tolist() == [0, 0]
    assert nn.initializers.constant(3)(key, (2,)).tolist() == [3, 3]
    assert np.abs(nn.initializers.truncated_normal(0.5)(key, (1000,))).max() <= 1.0
    with pytest.raises(ValueError, match="invalid mode for variance scaling initializer: sideways"):
        nn.initializers.variance_scaling(1.0, "sideways", "normal")(key, (2, 2))
    with pytest.raises(ValueError, match="Must be at least 2D"):
        nn.initializers.he_normal()(key, (2,))


@pytest.mark.parametrize("name", ["relu", "relu6"])
def test_clipped_functions_are_flat_at_their_ends_and_where_nothing_is_known(name):
    function = getattr(nn, name)
    assert np.isnan(function(np.float32(np.nan)))
    assert [polyax.grad(function)(np.float32(x)).item() for x in (np.nan, 0.0, -1.0, 2.0)] == [0, 0, 0, 1]


@pytest.mark.parametrize(
    "name, want",
    [
        ("relu", [1 + 1j, 0]),
        ("relu6", [1 + 1j, 0]),
        ("leaky_relu", [1 + 1j, -0.01 + 0.02j]),
        ("hard_tanh", [1, -1 + 2j]),
        ("sparse_plus", [1 + 1j, -1 + 0j]),
        ("soft_sign", [(1 + 1j) / (1 + 2**0.5), (-1 + 2j) / (1 + 5**0.5)]),
        ("elu", [1 + 1j, np.exp(-1 + 2j) - 1]),
        ("hard_sigmoid", [(4 + 1j) / 6, (2 + 2j) / 6]),
    ],
)
def test_activations_of_complex_numbers_go_by_their_order(name, want):
    np.testing.assert_allclose(getattr(nn, name)(np.array([1 + 1j, -1 + 2j], np.complex64)), want, rtol=1e-5, atol=1e-6)


def test_standardized_constants_are_zero_whatever_is_rounded():
    many = np.full((3, 1000), 1e4 + 0.1, np.float32)
    assert np.isfinite(nn.standardize(many, epsilon=1e-5)).all()
