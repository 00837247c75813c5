"""Forward and reverse mode: nesting, closures, what is computed where."""

from functools import partial

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.ir.jaxpr import walk_eqns


def _names(closed) -> list[str]:
    return [e.primitive.name for e in walk_eqns(closed.jaxpr)]


def test_perturbations_of_nested_derivatives_stay_apart():
    # d/dx [x * d/dy (x + y)] = 1; a confused implementation gives 2
    f = lambda x: x * polyax.grad(lambda y: x + y)(1.0)
    assert float(polyax.grad(f)(3.0)) == 1.0
    assert float(polyax.jvp(f, (3.0,), (1.0,))[1]) == 1.0


def test_closed_over_values_are_constants_of_the_inner_derivative():
    def f(x):
        return polyax.grad(lambda y: y * y * x)(2.0)

    assert float(f(5.0)) == 20.0
    assert float(polyax.grad(f)(5.0)) == 4.0


def test_every_order_of_composition():
    f = lambda x: jnp.sin(x) * x
    want = 2 * np.cos(0.7) - 0.7 * np.sin(0.7)
    orders = [
        polyax.grad(polyax.grad(f)),
        polyax.jacfwd(polyax.grad(f)),
        polyax.grad(polyax.jacfwd(f)),
        polyax.jit(polyax.grad(polyax.jit(polyax.grad(f)))),
        lambda x: polyax.vmap(polyax.grad(polyax.grad(f)))(jnp.full(3, x))[1],
        lambda x: polyax.grad(lambda y: polyax.vmap(polyax.grad(f))(jnp.full(3, y))[2])(x),
    ]
    for g in orders:
        np.testing.assert_allclose(float(g(0.7)), want, rtol=1e-5)


def test_primal_work_is_done_once():
    calls = []

    def f(x):
        calls.append(1)
        return jnp.sin(x)

    _, f_jvp = polyax.linearize(f, 1.0)
    assert float(f_jvp(1.0)) == float(f_jvp(1.0))
    assert len(calls) == 1


def test_linear_program_holds_no_primal_work():
    closed = polyax.make_jaxpr(lambda x: polyax.vjp(jnp.sin, x)[1](1.0))(1.0)
    assert "sin" not in _names(closed) or _names(closed).count("sin") == 1
    assert _names(closed).count("cos") == 1


def test_python_control_flow_on_values():
    def f(x):
        return x * x if x > 1 else -x

    assert float(polyax.grad(f)(3.0)) == 6.0
    assert float(polyax.grad(f)(0.5)) == -1.0


def test_grad_of_jit_cuts_the_program_in_two():
    f = polyax.jit(lambda x: jnp.sum(jnp.sin(x) ** 2))
    closed = polyax.make_jaxpr(polyax.grad(f))(jnp.ones(3))
    assert [e.primitive.name for e in closed.eqns].count("jit") == 2
    assert _names(closed).count("sin") == 1  # the backward program gets it as a residual


def test_unused_argument_has_a_zero_gradient():
    g = polyax.grad(lambda x, y: x, argnums=(0, 1))(2.0, 3.0)
    assert [float(v) for v in g] == [1.0, 0.0]


def test_integer_inputs_have_float0_tangents():
    value, pullback = polyax.vjp(lambda n, x: x * n, 3, 2.0)
    n_bar, x_bar = pullback(1.0)
    assert n_bar.dtype == polyax.dtypes.float0
    assert float(x_bar) == 3.0
    assert polyax.grad(lambda n: 2.0 * n, allow_int=True)(3).dtype == polyax.dtypes.float0


def test_has_aux():
    g, aux = polyax.grad(lambda x: (x * x, {"twice": 2 * x}), has_aux=True)(3.0)
    assert float(g) == 6.0
    assert float(aux["twice"]) == 6.0
    (y, aux), g = polyax.value_and_grad(lambda x: (x * x, "note"), has_aux=True)(3.0)
    assert (float(y), aux, float(g)) == (9.0, "note", 6.0)
    assert polyax.jvp(lambda x: (x, 5), (1.0,), (2.0,), has_aux=True)[2] == 5


def test_gradients_of_pytrees():
    params = {"w": jnp.ones((2, 3)), "b": (jnp.zeros(3), None)}
    g = polyax.grad(lambda p: jnp.sum(p["w"] * 2) + jnp.sum(p["b"][0] * 3))(params)
    np.testing.assert_array_equal(g["w"], np.full((2, 3), 2))
    np.testing.assert_array_equal(g["b"][0], np.full(3, 3))


def test_linear_transpose():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    transposed = polyax.linear_transpose(lambda x: a @ x, np.zeros(3, np.float32))
    np.testing.assert_allclose(transposed(np.ones(2, np.float32))[0], a.sum(0))


def test_jacobians_of_pytrees():
    f = lambda p: {"y": p["a"] ** 2, "z": jnp.sum(p["a"]) * p["b"]}
    p = {"a": jnp.array([1.0, 2.0]), "b": 3.0}
    for jacobian in (polyax.jacfwd(f)(p), polyax.jacrev(f)(p)):
        np.testing.assert_allclose(jacobian["y"]["a"], np.diag([2.0, 4.0]))
        np.testing.assert_allclose(jacobian["y"]["b"], [0, 0])
        np.testing.assert_allclose(jacobian["z"]["a"], [3, 3])
        np.testing.assert_allclose(jacobian["z"]["b"], 3)


@pytest.mark.parametrize("count", [100, 1000])
def test_programs_stay_linear_in_size(count):
    def f(x):
        for _ in range(count):
            x = lax.sin(x)
        return x

    assert len(polyax.make_jaxpr(polyax.grad(f))(1.0).eqns) <= 3 * count + 2


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: jnp.where(x > 0, x, 1.0),
        lambda x: jnp.hypot(x, 1.0),
        lambda x: jnp.logaddexp(x, 1.0),
        lambda x: jnp.dot(x, 2.0),
        polyax.nn.elu,
        polyax.nn.hard_tanh,
        polyax.nn.log_sigmoid,
        partial(polyax.scipy.special.betaln, 2.0),
        partial(polyax.scipy.special.rel_entr, 2.0),
    ],
)
def test_derivatives_at_python_scalars_are_weak_as_the_values_are(fun) -> None:
    assert fun(1.5).weak_type
    assert polyax.grad(fun)(1.5).weak_type and polyax.grad(polyax.grad(fun))(1.5).weak_type
    assert all(part.weak_type for part in polyax.jvp(fun, (1.5,), (1.0,)))
    assert not polyax.grad(fun)(jnp.float32(1.5)).weak_type
