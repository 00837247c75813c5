"""``odeint``: numbers recorded from JAX 0.10.2, closed forms, derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.experimental import ode
from polyax.experimental.ode import odeint

TIMES = jnp.linspace(0.0, 4.0, 5)


def van_der_pol(y: Any, t: Any, mu: Any) -> Any:
    return jnp.array([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])


def solved(y0: Any, mu: Any) -> Any:
    return odeint(van_der_pol, y0, TIMES, mu, rtol=1e-5, atol=1e-5)


def test_the_numbers_are_those_of_jax() -> None:
    y0 = jnp.array([2.0, 0.0])
    first = [2.0, 1.62206578, 0.84632942, -1.44956243, -1.88594007]
    second = [0.0, -0.54903304, -1.16424787, -2.6755383, 0.40827542]
    np.testing.assert_allclose(solved(y0, 1.5).T, [first, second], rtol=2e-6, atol=1e-6)
    by_y, by_mu = polyax.grad(lambda y, mu: solved(y, mu).sum(), (0, 1))(y0, 1.5)
    np.testing.assert_allclose(by_y, [-0.31018925, 0.70576268], rtol=3e-4)
    np.testing.assert_allclose(by_mu, -0.8201099, rtol=3e-4)


def decay(y: Any, t: Any, k: Any) -> Any:
    return {"a": -k * y["a"], "b": y["a"] * jnp.cos(t)}


def test_pytrees_and_derivatives_by_times() -> None:
    y0 = {"a": jnp.ones(2), "b": jnp.full(2, 0.5)}
    f = lambda k, ts: odeint(decay, y0, ts, k)["b"].sum()
    found = odeint(decay, y0, TIMES, 0.7)
    np.testing.assert_allclose(found["a"][:, 0], np.exp(-0.7 * TIMES), rtol=1e-5)
    by_k, by_times = polyax.grad(f, (0, 1))(0.7, TIMES)
    np.testing.assert_allclose(by_k, -0.35517007, rtol=1e-4)
    slopes = 2 * np.exp(-0.7 * TIMES) * np.cos(TIMES)
    np.testing.assert_allclose(by_times[1:], slopes[1:], rtol=1e-4)
    np.testing.assert_allclose(by_times[0], -4.7959194, rtol=1e-4)


def test_mapped_and_closed_over() -> None:
    rates = jnp.array([0.5, 1.0, 2.0])
    found = polyax.jit(polyax.vmap(lambda k: odeint(lambda y, t: -k * y, 1.0, TIMES)))(rates)
    np.testing.assert_allclose(found, np.exp(-np.outer(rates, TIMES)), rtol=1e-5)
    by_k = polyax.grad(lambda k: odeint(lambda y, t: -k * y, 1.0, TIMES)[-1])(0.5)
    np.testing.assert_allclose(by_k, -4 * np.exp(-2.0), rtol=1e-4)


def test_limits_of_steps() -> None:
    exact = np.exp(-TIMES)
    loose = odeint(lambda y, t: -y, 1.0, TIMES, rtol=1e-2, atol=1e-2)
    tight = odeint(lambda y, t: -y, 1.0, TIMES, rtol=1e-2, atol=1e-2, hmax=0.05)
    assert np.abs(tight - exact).max() < 1e-6 < np.abs(loose - exact).max()
    assert np.abs(odeint(lambda y, t: -y, 1.0, TIMES, mxstep=1) - exact).max() > 1e-3, "it ends before the time"


def test_parts() -> None:
    """The polynomial goes through its ends; steps grow and shrink within their limits."""
    dt, y0, y1, mid = jnp.array(0.5), jnp.array([1.0]), jnp.array([2.0]), jnp.array([1.4])
    fit = jnp.asarray(ode.fit_4th_order_polynomial(y0, y1, mid, jnp.array([1.0]), jnp.array([3.0]), dt))
    np.testing.assert_allclose([jnp.polyval(fit, x)[0] for x in (0.0, 0.5, 1.0)], [1.0, 1.4, 2.0], rtol=1e-6)
    assert ode.optimal_step_size(1.0, jnp.array(0.0)) == 10 and ode.optimal_step_size(1.0, jnp.array(1e9)) == 0.2
    assert ode.abs2(jnp.array(-3.0)) == 9
    f = lambda y, t: -y
    one = ode.runge_kutta_step(f, jnp.ones(1), -jnp.ones(1), jnp.array(0.0), jnp.array(0.1))
    np.testing.assert_allclose(one[0], np.exp(-0.1), rtol=1e-6)
    assert abs(one[2][0]) < 1e-6 and one[3].shape == (7, 1)


def test_bad_input() -> None:
    with pytest.raises(TypeError, match="The contents of odeint [*]args must be arrays or scalars, but got fast"):
        odeint(van_der_pol, jnp.ones(2), TIMES, "fast")
    with pytest.raises(TypeError, match="t must be an array of floats, but got"):
        odeint(lambda y, t: y, 1.0, jnp.arange(3))
    with pytest.raises(TypeError, match="t must be an array of floats, but got"):
        odeint(lambda y, t: y, 1.0, [0.0, 1.0])
