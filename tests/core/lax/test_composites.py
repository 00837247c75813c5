"""``composite`` and ``platform_dependent``: functions that are named, or chosen, where programs are compiled."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax

X = np.float32([0.5, 1, 2])
scaled = lax.composite(lambda x, *, by: jnp.sin(x) * by, "example.scaled", version=3)


def test_composites_are_one_equation():
    text = str(polyax.make_jaxpr(lambda x: scaled(x, by=2.0))(X))
    assert "composite[" in text and "name=example.scaled" in text and "version=3" in text and "'by': 2.0" in text


def test_composites_are_what_they_are_made_of(platform):
    f = lambda x: scaled(x, by=2.0)
    for g in (f, polyax.jit(f), polyax.vmap(f), polyax.jit(polyax.vmap(f))):
        assert np.allclose(g(X), 2 * np.sin(X), rtol=1e-6)
    of_trees = lax.composite(lambda d: {"y": d["a"] + d["b"]}, "example.trees")
    assert np.allclose(of_trees({"a": 1.0, "b": X})["y"], 1 + X)
    assert np.allclose(lax.scan(lambda c, x: (c, f(x)), 0, X)[1], 2 * np.sin(X), rtol=1e-6)


def test_composites_with_rules():
    @polyax.custom_jvp
    def g(x):
        return scaled(x, by=2.0)

    g.defjvp(lambda p, t: (g(p[0]), 7 * t[0]))
    assert polyax.grad(g)(1.0) == 7


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: polyax.grad(lambda x: scaled(x, by=2.0))(1.0),
            ValueError,
            "`polyax.custom_jvp` to add support. See https:",
        ),
        (
            lambda: polyax.jit(lambda y: scaled(1.0, by=y))(2.0),
            polyax.errors.UnexpectedTracerError,
            "use numpy arrays instead",
        ),
        (
            lambda: polyax.jit(lambda y: lax.composite(lambda x: x + y, "closing")(1.0))(2.0),
            polyax.errors.UnexpectedTracerError,
            "as a constant in the decomposition for the composite op 'closing'",
        ),
        (lambda: lax.composite(3, "number"), TypeError, "callable"),
    ],
)
def test_bad_composites(call, error, text):
    with pytest.raises(error, match=text):
        call()


# --- by platform


def which(x):
    return lax.platform_dependent(x, tpu=lambda x: x * 10, opencl=lambda x: x * 20, default=lambda x: x + 1)


@pytest.mark.parametrize(
    "staged", [lambda f: f, polyax.jit, polyax.vmap, lambda f: lambda x: lax.map(f, x), polyax.checkpoint]
)
def test_the_platform_chooses(staged, platform):
    expected = X * 20 if platform == "opencl" else X + 1
    assert np.allclose(staged(which)(polyax.device_put(X)), expected)


def test_derivatives_of_what_is_chosen(platform):
    slope = 20 if platform == "opencl" else 1
    assert np.allclose(polyax.grad(lambda x: which(x).sum())(X), slope)
    assert np.allclose(polyax.grad(polyax.jit(lambda x: which(x).sum()))(X), slope)


def test_what_is_not_chosen_is_not_compiled():
    """It may be something that the platform can't do."""

    def only_elsewhere(x):
        return lax.composite(lambda x: x, "elsewhere")(x).astype(np.complex64).real

    f = polyax.jit(lambda x: lax.platform_dependent(x, tpu=only_elsewhere, default=jnp.sin))
    assert "platform_index[platforms=(('tpu',), None)]" in str(polyax.make_jaxpr(f)(X))
    assert "elsewhere" not in str(f.lower(X).compile().as_text() or "") and np.allclose(f(X), np.sin(X), rtol=1e-6)


def test_one_program_for_several_platforms():
    f = polyax.jit(lambda x: lax.platform_dependent(x, reference=lambda x: x * 5, cpu=lambda x: x * 7))
    assert f(polyax.device_put(X, polyax.devices("reference")[0])).tolist() == (X * 5).tolist()
    assert f(polyax.device_put(X, polyax.devices("cpu")[0])).tolist() == (X * 7).tolist()
    processors = polyax.jit(lambda x: lax.platform_dependent(x, cpu=lambda x: x * 7))
    assert processors(polyax.device_put(X, polyax.devices("reference")[0])).tolist() == (X * 7).tolist()


@pytest.mark.parametrize("staged", [lambda f: f, polyax.jit])
def test_platforms_without_a_function(staged):
    f = staged(lambda x: lax.platform_dependent(x, tpu=jnp.sin))
    with pytest.raises(
        NotImplementedError, match="no function for the platform 'cpu'; there are some for tpu. Give it"
    ):
        f(polyax.device_put(X, polyax.devices("cpu")[0]))
    mixed = polyax.jit(lambda x: lax.platform_dependent(x, cpu=lambda x: x, default=lambda x: x[0]))
    with pytest.raises(TypeError, match="platform_dependent branches must have equal output types"):
        mixed(X)
