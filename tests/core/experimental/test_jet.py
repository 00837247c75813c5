"""``jet`` beside nested forward mode, and numbers recorded from JAX 0.10.2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.experimental import jet as jets
from polyax.experimental.jet import jet
from polyax.extend.core import Primitive

X = np.array([0.3, 0.5, 0.9], np.float32)
SERIES = [np.array(t, np.float32) for t in ([0.1, 0.2, 0.3], [0.3, -0.2, 0.1], [1.0, 0.0, 0.5])]
W = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


@polyax.custom_jvp
def twice(x: Any) -> Any:
    return 2 * jnp.sin(x)


twice.defjvp(lambda primals, tangents: (twice(*primals), 0 * tangents[0]))

FUNCTIONS = {
    "exp": jnp.exp,
    "log": jnp.log,
    "sin": jnp.sin,
    "cos": jnp.cos,
    "tan": jnp.tan,
    "sinh": jnp.sinh,
    "cosh": jnp.cosh,
    "tanh": jnp.tanh,
    "atan": jnp.arctan,
    "asinh": jnp.arcsinh,
    "sqrt": jnp.sqrt,
    "power": lambda x: x**2.5,
    "integer power": lambda x: x**3,
    "negative power": lambda x: x**-2,
    "quotient": lambda x: x / (1 + x * x),
    "expm1": jnp.expm1,
    "log1p": jnp.log1p,
    "exp2": jnp.exp2,
    "erf": polyax.scipy.special.erf,
    "logistic": polyax.nn.sigmoid,
    "softmax": polyax.nn.softmax,
    "softplus": polyax.nn.softplus,
    "logsumexp": polyax.nn.logsumexp,
    "maximum": lambda x: jnp.maximum(x, 0.4),
    "minimum": lambda x: jnp.minimum(x, x[::-1] ** 2),
    "abs": lambda x: jnp.abs(x - 0.4),
    "choice": lambda x: jnp.where(x > 0.4, x**2, x),
    "index": lambda x: x[1] * x[0],
    "sums": jnp.cumsum,
    "product": lambda x: W @ jnp.sin(x),
    "variance": jnp.var,
    "pieces": lambda x: jnp.concatenate([jnp.floor(x), x * jnp.sign(x - 0.4)]),
    "jit": polyax.jit(lambda x: x * jnp.cos(x)),
    "checkpoint": polyax.checkpoint(lambda x: x * jnp.cos(x)),
    "loop": lambda x: lax.fori_loop(0, 3, lambda _, y: y * jnp.sin(y + x), x),
    "scan": lambda x: lax.scan(lambda c, y: (c * y, jnp.exp(c)), 1.0, x)[1],
    "branch": lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
    "integers": lambda x: x * (x > 0.4).astype(int),
}


def along(f: Any) -> Any:
    """``f`` along the curve, as a function of time."""
    first, second, third = SERIES
    return lambda t: f(X + first * t + second * t**2 / 2 + third * t**3 / 6)


def nested(f: Any) -> list[Any]:
    found, g = [], along(f)
    for _ in range(4):
        found.append(g(0.0))
        g = lambda t, g=g: polyax.jvp(g, (t,), (1.0,))[1]
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_nested_forward_mode(name: str) -> None:
    f = FUNCTIONS[name]
    value, series = jet(f, (X,), (SERIES,))
    for found, wanted in zip([value, *series], nested(f), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4)


def test_jit_and_derivatives_of_it() -> None:
    third = lambda x: jet(jnp.sin, (x,), ([1.0, 0.0, 0.0],))[1][2]
    np.testing.assert_allclose(polyax.jit(third)(0.5), -np.cos(0.5), rtol=1e-5)
    np.testing.assert_allclose(polyax.grad(third)(0.5), np.sin(0.5), rtol=1e-5)
    np.testing.assert_allclose(polyax.vmap(third)(X), -np.cos(X), rtol=1e-5)
    twice_over = jet(third, (0.5,), ([1.0, 0.0],))[1]
    np.testing.assert_allclose(twice_over, [np.sin(0.5), np.cos(0.5)], rtol=1e-5)


def test_taylor_coefficients() -> None:
    """Those of JAX for ``x ** -2``."""
    value, series = jet(lambda x: x**-2, (X,), (SERIES,), factorial_scaled=False)
    np.testing.assert_allclose(value, X**-2.0, rtol=1e-5)
    np.testing.assert_allclose(series[1], [-18.519, 5.12, 0.137], atol=2e-3)
    np.testing.assert_allclose(series[2], [-53.498, -4.864, -1.28], atol=2e-3)
    again = jets.jet2(lambda x: x**-2, (X,), (SERIES,))[1]
    np.testing.assert_array_equal(again[2], series[2])


def test_pytrees() -> None:
    f = lambda p, y: {"out": p["w"] * y, "same": p["b"]}
    primal = {"w": np.float32(2), "b": np.float32(3)}
    value, series = jet(f, (primal, 5.0), ({"w": [1.0, 0.0], "b": [0.0, 0.0]}, [1.0, 0.0]))
    assert value == {"out": 10, "same": 3} and series == {"out": [7, 2], "same": [0, 0]}


def test_rules_of_custom_functions_know_no_higher_orders() -> None:
    _, series = jet(twice, (X,), (SERIES,))
    np.testing.assert_allclose(series[2], jet(lambda x: 2 * jnp.sin(x), (X,), (SERIES,))[1][2], rtol=1e-6)


def test_primitives_of_users() -> None:
    cube = Primitive("cube")
    cube.def_abstract_eval(lambda x: x)
    cube.def_decomposition(lambda x: x * x * x)
    jets.def_comp(cube, lambda x: x * x * x)
    np.testing.assert_allclose(jet(cube.bind, (2.0,), ([1.0, 0.0, 0.0],))[1], [12, 12, 6])


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="inconsistent lengths for different arguments"):
        jet(jnp.add, (1.0, 2.0), ([1.0], [1.0, 2.0]))
    with pytest.raises(ValueError, match="2 primals and 1 series"):
        jet(jnp.add, (1.0, 2.0), ([1.0],))
    with pytest.raises(ValueError, match="should be a list of terms, got float"):
        jet(jnp.sin, (1.0,), (1.0,))
    with pytest.raises(ValueError, match=r"a term of shape \(2,\) in the series of a primal of shape \(3,\)"):
        jet(jnp.sin, (X,), ([np.ones(2)],))
    with pytest.raises(ValueError, match="don't have the structure of its primal"):
        jet(lambda p: p["w"], ({"w": 1.0},), ([{"v": 1.0}],))


def test_python_integers_are_points_of_curves() -> None:
    value, (first, second) = jet(jnp.sin, (2,), ((1.0, 0.0),))
    np.testing.assert_allclose([value, first, second], [np.sin(2), np.cos(2), -np.sin(2)], rtol=1e-6)
