"""``custom_vmap`` and ``sequential_vmap``: rules that differ from the true map, so that a test sees which was used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.custom_batching import custom_vmap, sequential_vmap

X = np.arange(1.0, 4.0, dtype=np.float32)


def told() -> Any:
    """x + y, of which ``vmap`` is told that it is 10 x + y."""

    @custom_vmap
    def f(x: Any, y: Any) -> Any:
        return x + y

    f.def_vmap(lambda size, mapped, x, y: (10 * x + y, mapped[0] | mapped[1]))
    return f


TRANSFORMED = {
    "vmap": (lambda f: polyax.vmap(f)(X, X), 11 * X),
    "one mapped argument": (lambda f: polyax.vmap(f, (None, 0))(1.0, X), 10 + X),
    "jit of vmap": (lambda f: polyax.jit(polyax.vmap(f))(X, X), 11 * X),
    "vmap of jit": (lambda f: polyax.vmap(polyax.jit(f), (0, None))(X, 1.0), 10 * X + 1),
    "jvp of vmap": (lambda f: polyax.jvp(lambda x: polyax.vmap(f)(x, X), (X,), (X,))[1], 10 * X),
    "vmap of jvp": (lambda f: polyax.vmap(lambda x: polyax.jvp(f, (x, 1.0), (1.0, 0.0))[1])(X), [10, 10, 10]),
    "grad of vmap": (lambda f: polyax.grad(lambda x: polyax.vmap(f)(x, X).sum())(X), [10, 10, 10]),
    "names": (lambda f: polyax.vmap(lambda x: f(y=x, x=2.0))(X), 20 + X),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_the_rule_is_used_in(name: str) -> None:
    run, wanted = TRANSFORMED[name]
    np.testing.assert_allclose(run(told()), wanted)


def test_without_vmap_the_function_runs() -> None:
    assert told()(1.0, 2.0) == 3.0
    assert polyax.grad(told())(1.0, 2.0) == 1.0
    assert polyax.jit(told())(1.0, 2.0) == 3.0


def test_rules_that_do_not_fit() -> None:
    with pytest.raises(AttributeError, match="No batching rule defined for custom_vmap function sin using def_vmap"):
        custom_vmap(jnp.sin)(1.0)
    f = custom_vmap(lambda x: x)
    f.def_vmap(lambda size, mapped, x: x)
    with pytest.raises(TypeError, match="must return a pair of results and out_batched"):
        polyax.vmap(f)(X)
    f.def_vmap(lambda size, mapped, x: (x, (True,)))
    with pytest.raises(ValueError, match="structure of output value and output batching specification"):
        polyax.vmap(f)(X)


@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (0, None)])
def test_sequential_maps_agree_with_vmap(axes: Any) -> None:
    f = lambda x, y: jnp.sin(x) * y
    args = [X if a == 0 else np.float32(2) for a in axes]
    looped = polyax.vmap(sequential_vmap(f), axes)
    np.testing.assert_allclose(looped(*args), polyax.vmap(f, axes)(*args), rtol=1e-6)
    total = lambda f: polyax.grad(lambda x, y: jnp.sum(f(x, y)), (0, 1))
    for got, wanted in zip(total(looped)(*args), total(polyax.vmap(f, axes))(*args), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_sequential_maps_are_loops() -> None:
    jaxpr = polyax.make_jaxpr(polyax.vmap(sequential_vmap(jnp.sin)))(X)
    assert [e.primitive.name for e in jaxpr.eqns] == ["scan"]


def test_results_of_another_structure_are_refused() -> None:
    f = custom_vmap(lambda x: x)
    f.def_vmap(lambda size, mapped, x: ((x, x), (True, True)))
    with pytest.raises(ValueError, match="does not match that of original custom-vmapped function"):
        polyax.vmap(polyax.jit(f))(X)


def test_the_rule_must_give_results_like_the_function() -> None:
    f = custom_vmap(lambda x: x)
    f.def_vmap(lambda size, in_batched, x: ((x, x), (True, True)))
    with pytest.raises(ValueError, match=r"(?s)does not match that of original.*Original output: PyTreeDef\(\*\)"):
        polyax.vmap(f)(X)


def with_log(function, rule):
    """The function with this rule, and the masks that the rule was asked with."""
    asked = []
    f = custom_vmap(function)

    @f.def_vmap
    def mapped(axis_size, in_batched, *xs):
        asked.append(in_batched)
        return rule(*xs), in_batched[0]

    return f, asked


def test_what_is_mapped_in_tangents_alone_is_none_of_the_rules_business():
    f, asked = with_log(jnp.sin, jnp.cos)
    push = lambda x, t: polyax.jvp(f, (x,), (t,))
    y, dots = polyax.vmap(push, in_axes=(None, 0), out_axes=(None, 0))(1.0, X)
    np.testing.assert_allclose(y, np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(dots, -np.sin(1.0) * X, rtol=1e-6)
    np.testing.assert_allclose(polyax.jacfwd(f)(X), -np.diag(np.sin(X)), rtol=1e-6)
    assert asked == [[False], [False]]


def test_tangents_of_linear_rules_stay_unmapped():
    f, _ = with_log(lambda x: 7 * x, lambda x: 11 * x)
    push = lambda x, t: polyax.jvp(f, (x,), (t,))
    ys, dot = polyax.vmap(push, in_axes=(0, None), out_axes=(0, None))(X, 4.0)
    np.testing.assert_allclose(ys, 11 * X, rtol=1e-6)
    assert dot == 44


@pytest.mark.parametrize("axes", [(0, 0, None, None), (0, None, 0, None), (None, 0, 0, None), (None, None, None, 0)])
def test_rules_that_call_all_results_mapped_get_arguments_that_are(axes):
    f = custom_vmap(lambda x, y: jnp.sin(x) * y)
    f.def_vmap(lambda size, in_batched, x, y: (jnp.cos(x) * y, True))
    args = [X + k if a == 0 else np.float32(k) for k, a in enumerate(axes)]
    ys, dots = polyax.vmap(lambda x, y, s, t: polyax.jvp(f, (x, y), (s, t)), in_axes=axes)(*args)
    x, y, s, t = np.broadcast_arrays(*args)
    np.testing.assert_allclose(ys, np.cos(x) * y, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(dots, -np.sin(x) * s * y + np.cos(x) * t, rtol=1e-5, atol=1e-6)


def test_sequential_functions_have_jacobians():
    f = sequential_vmap(lambda x: jnp.sin(x) * 2)
    np.testing.assert_allclose(polyax.jacfwd(f)(X), np.diag(2 * np.cos(X)), rtol=1e-6)
    np.testing.assert_allclose(polyax.jacfwd(polyax.vmap(f))(X), np.diag(2 * np.cos(X)), rtol=1e-6)


@pytest.mark.parametrize("wraps", [(polyax.custom_jvp, custom_vmap), (custom_vmap, polyax.custom_jvp)])
def test_rules_of_a_function_inside_are_set_on_the_outer_one(wraps: Any) -> None:
    inner, outer = wraps
    f = outer(inner(lambda x: x + 1.0))
    assert callable(f.def_vmap) and callable(f.defjvp)
    with pytest.raises(AttributeError, match="has no attribute 'defvjp'"):
        f.defvjp  # noqa: B018


def test_a_mapped_rule_inside_a_function_with_a_gradient() -> None:
    f = polyax.custom_vjp(custom_vmap(lambda x, y: jnp.sin(x) * y))
    f.def_vmap(lambda size, mapped, x, y: (jnp.cos(x) * y, True))
    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda kept, ct: (jnp.cos(kept[0]) * ct * kept[1], jnp.sin(kept[0]) * ct))
    xs = jnp.arange(3.0)
    assert jnp.allclose(polyax.vmap(f)(xs, xs), jnp.cos(xs) * xs)
    assert jnp.allclose(polyax.grad(f)(1.0, 2.0), 2 * jnp.cos(1.0))


def test_rules_get_numbers_that_programs_have_in_place_as_arrays() -> None:
    f = custom_vmap(lambda n, x: n * x)
    f.def_vmap(lambda size, mapped, n, x: (jnp.full(n.shape, n, n.dtype) * x, mapped[1]))
    np.testing.assert_array_equal(polyax.vmap(polyax.jit(lambda x: f(7, x)))(X), 7 * X)
