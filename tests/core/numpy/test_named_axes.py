"""Reductions along axes that vmap has named, alone and together with axes of the array."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import nn

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


@pytest.mark.parametrize("name", ["sum", "max", "min", "mean", "var", "std", "ptp", "nansum"])
@pytest.mark.parametrize("axis, whole", [("i", 0), (("i", 0), None), ((0, "i"), None)])
def test_names_are_reduced_over_as_numbers_are(name, axis, whole):
    got = polyax.vmap(lambda x: getattr(jnp, name)(x, axis=axis), axis_name="i")(X)
    want = np.broadcast_to(np.asarray(getattr(np, name)(X, axis=whole)), got.shape)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_masks_count_along_names_too():
    got = polyax.vmap(lambda x: jnp.mean(x, axis=("i", 0), where=x > 0, keepdims=True), axis_name="i")(X)
    np.testing.assert_allclose(got, np.full((3, 1), X[X > 0].mean()), rtol=1e-5)


@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax, nn.logsumexp, nn.standardize])
def test_functions_along_a_name_and_their_derivatives(function):
    def named(x):
        return polyax.vmap(lambda row: function(row, axis="i"), axis_name="i")(x)

    def numbered(x):
        return jnp.broadcast_to(function(x, axis=0), x.shape)

    np.testing.assert_allclose(named(X), numbered(X), rtol=1e-5)
    slopes = [polyax.grad(lambda x, f=f: (f(x) * X[::-1]).sum())(X) for f in (named, numbered)]
    np.testing.assert_allclose(*slopes, rtol=1e-4, atol=1e-5)


def test_a_name_that_is_not_bound_is_named():
    with pytest.raises(NameError, match="unbound axis name: i"):
        jnp.sum(X, axis="i")


@pytest.mark.parametrize("name", ["prod", "all", "any"])
def test_reductions_without_a_collective_refuse_names(name):
    with pytest.raises(NotImplementedError, match=rf"Named reductions not implemented for jnp.{name}\(\)"):
        polyax.vmap(lambda x: getattr(jnp, name)(x, axis="i"), axis_name="i")(X)


def test_functions_that_know_numbers_alone_say_so():
    with pytest.raises(TypeError, match="by number"):
        jnp.quantile(X, 0.5, axis="i")
