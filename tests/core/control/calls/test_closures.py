"""``closure_convert``, ``custom_gradient``, ``linear_call``, and names of scopes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.custom_derivatives import linear_call

X = np.arange(1.0, 4.0, dtype=np.float32)


def close(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrap", [lambda f: f, polyax.jit], ids=["eager", "jit"])
def test_closed_over_values_become_arguments(wrap: Any) -> None:
    def scaled(y: Any) -> Any:
        converted, values = polyax.closure_convert(lambda x: x["a"] * y, {"a": 1.0})
        return converted({"a": 2.0}, *values)

    assert polyax.grad(wrap(scaled))(3.0) == 2.0


def test_constants_stay_inside() -> None:
    converted, values = polyax.closure_convert(lambda x: x * X, 1.0)
    assert values == []
    close(converted(2.0), 2 * X)
    with pytest.raises(TypeError, match="must have the same Pytree structure as the example arguments.*but got"):
        converted({"a": 2.0})


GRADIENTS = {
    "grad": lambda f: (polyax.grad(f, (0, 1))(2.0, 3.0), (60, 1)),
    "jit": lambda f: (polyax.jit(polyax.grad(f))(2.0, 3.0), 60),
    "vmap": lambda f: (polyax.vmap(polyax.grad(f))(X, X), 10 * X * X),
    "unmapped": lambda f: (polyax.grad(lambda y: polyax.vmap(f, (0, None))(X, y).sum(), 0)(3.0), 3),
    "second order": lambda f: (polyax.grad(polyax.grad(f))(2.0, 3.0), 30),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_custom_gradient(name: str) -> None:
    f = polyax.custom_gradient(lambda x, y: (x * y, lambda ct: (10 * ct * x * y, ct)))
    close(*GRADIENTS[name](f))


def test_custom_gradient_of_trees_and_of_one_argument() -> None:
    tree = polyax.custom_gradient(lambda d: ({"o": d["a"] ** 2}, lambda ct: ({"a": 5 * ct["o"]},)))
    assert polyax.grad(lambda d: tree(d)["o"])({"a": 3.0}) == {"a": 5.0}
    assert polyax.grad(polyax.custom_gradient(lambda x: (x**2, lambda ct: 7 * ct)))(3.0) == 7.0
    wrong = polyax.custom_gradient(lambda x: (x, lambda ct: (ct, ct)))
    with pytest.raises(TypeError, match="tuple of length equal to the number of arguments"):
        polyax.grad(wrong)(3.0)


def ratio(x: Any, y: Any) -> Any:
    """x / y, whose transpose is told to be 100 times what it is."""
    return linear_call(lambda r, x: x / r, lambda r, ct: 100 * ct / r, y, x)


LINEAR = {
    "value": lambda: (ratio(3.0, 2.0), 1.5),
    "jvp": lambda: (polyax.jvp(lambda x: ratio(x, 2.0), (3.0,), (1.0,))[1], 0.5),
    "residual": lambda: (polyax.jvp(lambda y: ratio(3.0, y), (2.0,), (1.0,))[1], -0.75),
    "grad": lambda: (polyax.grad(ratio)(3.0, 2.0), 50),
    "jit": lambda: (polyax.jit(polyax.grad(ratio))(3.0, 2.0), 50),
    "vmap": lambda: (polyax.vmap(polyax.grad(ratio), (None, 0))(3.0, X), 100 / X),
    "transposed": lambda: (polyax.linear_transpose(lambda x: ratio(x, 2.0), 3.0)(1.0)[0], 50),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_call(name: str) -> None:
    close(*LINEAR[name]())


def test_transposes_must_give_what_was_given() -> None:
    wrong = lambda transpose: polyax.grad(lambda x: linear_call(lambda r, x: x, transpose, 1.0, x))
    with pytest.raises(TypeError, match="pytree structure must match that of linear inputs"):
        wrong(lambda r, ct: (ct, ct))(2.0)
    with pytest.raises(ValueError, match=r"Expected cotangent type float32\[\] but got float32\[3\]"):
        wrong(lambda r, ct: polyax.numpy.zeros(3))(2.0)


def test_transposes_are_traced_when_needed() -> None:
    traced = []

    def transpose(r: Any, ct: Any) -> Any:
        traced.append(r)
        return linear_call(lambda r, ct: 7 * ct / r, transpose, r, ct)

    f = lambda x: linear_call(lambda r, x: x / r, transpose, 2.0, x)
    assert polyax.jit(f)(4.0) == 2.0
    assert not traced
    assert polyax.grad(f)(4.0) == 3.5
    assert polyax.vmap(polyax.grad(f))(X).tolist() == [3.5] * X.size
    again = polyax.linear_transpose(lambda ct: polyax.linear_transpose(f, 1.0)(ct)[0], 1.0)
    assert again(1.0)[0] == 0.5


@pytest.mark.parametrize("transform", [lambda f: f, polyax.jit])
def test_linear_functions_close_over_arrays(transform: Any) -> None:
    scale, other = jnp.array([2.0, 3.0]), jnp.array([5.0, 7.0])
    f = lambda x: linear_call(lambda r, x: r * x * scale, lambda r, ct: r * ct * other, 2.0, x)
    back = lambda ct: polyax.linear_transpose(f, scale)(ct)[0]
    ones = jnp.ones(2)
    assert transform(f)(ones).tolist() == [4.0, 6.0]
    assert transform(back)(ones).tolist() == [10.0, 14.0]
    assert transform(lambda x: polyax.linear_transpose(back, scale)(x)[0])(ones).tolist() == [4.0, 6.0]


def test_stop_gradient() -> None:
    assert polyax.grad(lambda d: polyax.lax.stop_gradient(d)["a"] * d["a"])({"a": 3.0}) == {"a": 3.0}
    assert polyax.jvp(lambda x: polyax.lax.stop_gradient(x) * x, (2.0,), (1.0,))[1] == 2.0


def test_scopes_name_equations_and_their_derivatives() -> None:
    @polyax.named_scope("outer")
    def f(x: Any) -> Any:
        return polyax.named_call(jnp.sin, name="inner")(x)

    scopes = [e.source.scope for e in polyax.make_jaxpr(polyax.grad(f))(1.0).eqns]
    assert scopes == ["jvp(outer)/inner"] * 2 + ["transpose(jvp(outer))/inner"]
    assert "in outer/inner" in str(polyax.make_jaxpr(f)(1.0).eqns[0].source)
    with pytest.raises(TypeError, match="named_scope name argument must be a string"):
        polyax.named_scope(3)


def _scopes(f: Any, *args: Any) -> list[str]:
    return [e.source.name_stack for e in polyax.make_jaxpr(f)(*args).eqns]


def test_scopes_name_transformations() -> None:
    f = polyax.named_scope("f")(jnp.sin)
    many = np.ones(2, np.float32)
    assert _scopes(polyax.vmap(f), many) == ["vmap(f)"]
    assert _scopes(polyax.named_scope("g")(polyax.grad(f)), 1.0)[-1] == "g/transpose(jvp(f))"
    assert _scopes(polyax.vmap(polyax.grad(f)), many)[-1] == "vmap(transpose(jvp(f)))"
    looped = lambda x: polyax.lax.fori_loop(0, 2, lambda _, x: f(x), x)
    assert _scopes(polyax.grad(looped), 1.0)[-1] == "transpose(jvp())"
    (*_, loop) = polyax.make_jaxpr(polyax.grad(looped))(1.0).eqns
    assert {e.source.scope for e in loop.params["jaxpr"].eqns} == {"f"}


def test_transformations_are_around_the_first_name_and_programs_begin_anew() -> None:
    def f(x: Any) -> Any:
        with polyax.named_scope("in"), polyax.named_scope("nermost"):
            return polyax.lax.sin(x)

    both, many = polyax.named_scope("out"), np.ones(2, np.float32)
    assert _scopes(both(polyax.vmap(f)), many) == ["out/vmap(in)/nermost"]
    assert _scopes(polyax.vmap(polyax.grad(f)), many)[-1] == "vmap(transpose(jvp(in)))/nermost"
    (call,) = polyax.make_jaxpr(both(polyax.jit(f)))(1.0).eqns
    assert call.source.scope == "out"
    assert [e.source.scope for e in call.params["jaxpr"].eqns] == ["in/nermost"]


def test_scopes_are_printed_alone() -> None:
    text = polyax.make_jaxpr(polyax.vmap(polyax.named_scope("f")(jnp.sin)))(np.ones(2)).jaxpr.pretty_print(
        name_stack=True
    )
    assert text.endswith(" = sin a in (b,) } # [vmap(f)]")


def test_rules_of_users_tell_their_own_lines_and_names() -> None:
    @polyax.custom_vjp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    @polyax.named_scope("forward")
    def fwd(x: Any) -> Any:
        return jnp.sin(x), x

    @polyax.named_scope("backward")
    def bwd(x: Any, ct: Any) -> Any:
        return (jnp.cos(x) * ct,)

    f.defvjp(fwd, bwd)
    outer = polyax.named_scope("outer")(f)
    alone = polyax.make_jaxpr(polyax.grad(outer))(1.0).eqns
    assert [e.source.scope for e in alone[-2:]] == ["transpose(jvp(outer))/backward"] * 2
    assert alone[-1].source.code.co_name == "bwd"
    forward, backward = polyax.make_jaxpr(polyax.grad(polyax.jit(outer)))(1.0).eqns
    assert {e.source.scope for e in forward.params["jaxpr"].eqns} == {"outer/forward"}
    assert {e.source.scope for e in backward.params["jaxpr"].eqns} == {"outer/backward"}
