"""``custom_jvp``: rules that differ from the true derivative, so that a test sees which of them was used."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.custom_derivatives import SymbolicZero
from polyax.errors import UnexpectedTracerError
from polyax.interpreters.partial_eval import dce_jaxpr

X = np.arange(1.0, 4.0, dtype=np.float32)


def scaled_sine() -> Any:
    """sin(x) y, whose derivative by x is told to be twice what it is."""

    @polyax.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        (x, y), (a, b) = primals, tangents
        return f(x, y), 2 * jnp.cos(x) * a * y + jnp.sin(x) * b

    return f


def by_x(x: Any, y: Any) -> Any:
    return 2 * np.cos(x) * y


def close(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-5)


TRANSFORMED = {
    "grad": lambda f: (polyax.grad(f)(1.0, 2.0), by_x(1, 2)),
    "jit of grad": lambda f: (polyax.jit(polyax.grad(f))(1.0, 2.0), by_x(1, 2)),
    "grad of jit": lambda f: (polyax.grad(polyax.jit(f), 1)(1.0, 2.0), np.sin(1)),
    "jvp of jit": lambda f: (polyax.jvp(polyax.jit(f), (1.0, 2.0), (1.0, 0.5))[1], by_x(1, 2) + np.sin(1) / 2),
    "linearize": lambda f: (polyax.linearize(f, 1.0, 2.0)[1](1.0, 0.5), by_x(1, 2) + np.sin(1) / 2),
    "vmap of grad": lambda f: (polyax.vmap(polyax.grad(f), (0, None))(X, 2.0), by_x(X, 2)),
    "grad of vmap": lambda f: (polyax.grad(lambda y: polyax.vmap(f, (0, None))(X, y).sum())(2.0), np.sin(X).sum()),
    "second order": lambda f: (polyax.grad(polyax.grad(f))(1.0, 2.0), -4 * np.sin(1)),
    "forward over reverse": lambda f: (polyax.jacfwd(polyax.grad(f))(1.0, 2.0), -4 * np.sin(1)),
    "jvp of vmap of grad": lambda f: (
        polyax.jvp(lambda x: polyax.vmap(polyax.grad(f), (0, None))(x, 2.0), (X,), (X,))[1],
        -4 * np.sin(X) * X,
    ),
    "cond": lambda f: (polyax.grad(lambda x: lax.cond(x > 0, lambda x: f(x, 2.0), lambda x: x, x))(1.0), by_x(1, 2)),
    "while": lambda f: (
        polyax.jvp(lambda x: lax.while_loop(lambda c: c < 0.5, lambda c: f(x, 2.0), 0.0 * x), (1.0,), (1.0,))[1],
        by_x(1, 2),
    ),
    "checkpoint": lambda f: (polyax.grad(polyax.checkpoint(f))(1.0, 2.0), by_x(1, 2)),
    "named axis": lambda f: (
        polyax.vmap(polyax.grad(lambda x: lax.pmean(f(x, 2.0), "i")), axis_name="i")(X),
        by_x(X, 2),
    ),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_the_rule_is_used_in(name: str) -> None:
    close(*TRANSFORMED[name](scaled_sine()))


def test_scan_runs_the_rule_in_each_step() -> None:
    f = scaled_sine()
    got = polyax.grad(lambda x: lax.scan(lambda c, y: (f(c, y), None), x, X)[0])(1.0)
    wanted, c = 1.0, 1.0
    for y in X:
        wanted, c = wanted * by_x(c, y), np.sin(c) * y
    close(got, wanted)


def test_arguments_by_name_and_default() -> None:
    @polyax.custom_jvp
    def f(x: Any, y: Any = 3.0) -> Any:
        return x * y

    f.defjvps(lambda t, out, x, y: 10 * t, None)
    assert f(y=2.0, x=4.0) == 8.0
    assert polyax.grad(f)(1.0) == 10.0
    assert polyax.grad(f, 1)(1.0, 2.0) == 0.0


def test_defjvps_adds_the_parts_of_trees() -> None:
    f = polyax.custom_jvp(lambda x, y: {"product": x * y, "first": x})
    f.defjvps(lambda t, out, x, y: {"product": 7 * t, "first": t}, lambda t, out, x, y: {"product": t, "first": 0 * t})
    _, dot = polyax.jvp(polyax.jit(f), (1.0, 2.0), (1.0, 3.0))
    assert (dot["product"], dot["first"]) == (10.0, 1.0)


@pytest.mark.parametrize("which", [{"nondiff_argnums": (0,)}, {"nondiff_argnames": ("fun",)}])
def test_functions_are_arguments_that_are_not_differentiated(which: Any) -> None:
    @partial(polyax.custom_jvp, **which)
    def apply(fun: Any, x: Any) -> Any:
        return fun(x)

    apply.defjvp(lambda fun, p, t: (apply(fun, *p), 5 * t[0]))
    assert polyax.jit(polyax.grad(lambda x: apply(jnp.sin, x)))(1.0) == 5.0


def test_traced_values_that_are_not_differentiated_are_constants() -> None:
    apply = polyax.custom_jvp(lambda a, x: a * x, nondiff_argnums=(0,))
    apply.defjvp(lambda a, p, t: (a * p[0], 2 * t[0] * a))
    assert polyax.grad(apply)(3.0, 2.0) == 0.0
    assert polyax.jit(polyax.grad(lambda x: apply(x, x)))(2.0) == 4.0


def test_methods() -> None:
    class Scale:
        def __init__(self, k: float) -> None:
            self.k = k

        @partial(polyax.custom_jvp, nondiff_argnums=(0,))
        def times(self, x: Any) -> Any:
            return self.k * x

        times.defjvp(lambda self, p, t: (self.times(*p), 100 * self.k * t[0]))

    scale = Scale(3.0)
    assert scale.times(2.0) == 6.0
    assert polyax.grad(scale.times)(2.0) == 300.0


def test_python_control_flow_on_concrete_values() -> None:
    @polyax.custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x) if x > 0 else jnp.cos(x)

    f.defjvp(lambda p, t: (f(*p), 2 * t[0] if p[0] > 0 else 3 * t[0]))
    assert (polyax.grad(f)(1.0), polyax.grad(f)(-1.0)) == (2.0, 3.0)


def test_integer_arguments_have_float0_tangents() -> None:
    seen = []

    @polyax.custom_jvp
    def power(n: Any, x: Any) -> Any:
        return x**n

    @power.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        seen.append(tangents[0].dtype)
        return power(*primals), 10 * tangents[1]

    assert polyax.grad(power, 1)(3, 2.0) == 10.0
    assert polyax.grad(polyax.jit(power), 1)(3, 2.0) == 10.0
    assert set(seen) == {polyax.dtypes.float0}


def test_tangents_that_are_zero_have_a_type() -> None:
    """Also those of Python numbers."""
    seen = []

    def rule(primals: Any, tangents: Any) -> Any:
        seen.append((tangents[1].dtype, tangents[1].shape))
        return f(*primals), tangents[0]

    f = polyax.custom_jvp(lambda x, y: x * y)
    f.defjvp(rule)
    polyax.grad(lambda x: f(x, 2.0))(3.0)
    assert seen == [(np.float32, ())]


@pytest.mark.parametrize("wrap", [lambda f: f, polyax.jit])
def test_symbolic_zeros(wrap: Any) -> None:
    seen = []

    def rule(primals: Any, tangents: Any) -> Any:
        seen.append([type(t) is SymbolicZero for t in tangents])
        return primals, tangents

    f = polyax.custom_jvp(lambda x, y: (x, y))
    f.defjvp(rule, symbolic_zeros=True)
    _, dots = polyax.jvp(lambda x: wrap(f)(x, 2.0), (1.0,), (3.0,))
    assert (dots[0], dots[1]) == (3.0, 0.0)
    assert seen == [[False, True]]


def test_mapped_values_may_be_closed_over() -> None:
    def slope(y: Any, x: Any) -> Any:
        f = polyax.custom_jvp(lambda x: x * y)
        f.defjvp(lambda p, t: (f(*p), 2 * t[0] * y))
        return polyax.grad(f)(x)

    close(polyax.vmap(slope, (0, None))(X, 5.0), 2 * X)


@pytest.mark.parametrize("wrap", [lambda f: f, polyax.jit])
def test_differentiated_values_may_not_be_closed_over(wrap: Any) -> None:
    def outer(y: Any) -> Any:
        f = polyax.custom_jvp(lambda x: x * y)
        f.defjvp(lambda p, t: (f(*p), t[0] * y))
        return wrap(f)(2.0)

    with pytest.raises(UnexpectedTracerError, match="closes? over|closed-over"):
        polyax.grad(outer)(3.0)


def test_unmapped_results_stay_unmapped() -> None:
    f = scaled_sine()
    assert polyax.vmap(lambda x: (x, f(1.0, 2.0)), out_axes=(0, None))(X)[1].shape == ()


BAD = {
    "pair": (lambda p, t: 3.0, "must produce a pair .list or tuple of length two. representing primal and tangent"),
    "structure": (lambda p, t: (p[0], {"a": t[0]}), "equal container .pytree. structures, but got"),
    "none": (lambda p, t: (p[0], None), r"but got PyTreeDef\(\*\) and PyTreeDef\(None\) respectively"),
    "dtype": (
        lambda p, t: (p[0], np.int32(1)),
        r"Expected float32\[\] .tangent type of float32\[\]. but got int32\[\]",
    ),
    "shape": (lambda p, t: (p[0], t[0] * np.ones(3, np.float32)), r"but got float32\[3\]"),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_rules_say_what_they_gave(name: str) -> None:
    rule, text = BAD[name]
    f = polyax.custom_jvp(lambda x: x * 2.0)
    f.defjvp(rule)
    with pytest.raises(TypeError, match=text):
        polyax.jvp(f, (1.0,), (1.0,))


def test_results_of_rules_are_those_of_the_function() -> None:
    f = polyax.custom_jvp(lambda x: x * 2.0)
    f.defjvp(lambda p, t: (p, t))
    told = r"first element had container/pytree structure:\n    \(float32\[\],\)\nwhile .*structure:\n    float32\[\]\."
    with pytest.raises(TypeError, match=told):
        polyax.grad(polyax.jit(f))(1.0)
    f.defjvp(lambda p, t: (p[0] * X, t[0] * X))
    with pytest.raises(TypeError, match=r"shapes/dtypes of:\s+float32\[3\]\s+while"):
        polyax.jvp(polyax.jit(f), (1.0,), (1.0,))
    f.defjvp(lambda p, t: (p[0] * X, t[0]))  # of what is wrong, what gives the results is told first
    with pytest.raises(TypeError, match=r"shapes/dtypes of:\s+float32\[3\]\s+while"):
        polyax.jvp(polyax.jit(f), (1.0,), (1.0,))


def test_arguments_that_do_not_fit() -> None:
    f = scaled_sine()
    with pytest.raises(TypeError, match="custom_jvp-decorated function f could not be resolved.*\n.*'y'"):
        f(1.0)
    with pytest.raises(AttributeError, match="No JVP defined for custom_jvp function sin using defjvp"):
        polyax.custom_jvp(jnp.sin)(1.0)
    with pytest.raises(TypeError, match="Can't use ``defjvps`` with ``nondiff_argnums``"):
        polyax.custom_jvp(lambda f, x: x, nondiff_argnums=(0,)).defjvps(None)


def test_it_prints_as_in_jax() -> None:
    text = str(polyax.make_jaxpr(scaled_sine())(1.0, 2.0))
    assert "custom_jvp_call[" in text
    assert "jvp=f_jvp" in text
    assert "symbolic_zeros=False" in text


def test_rules_get_numbers_that_programs_have_in_place_as_arrays() -> None:
    @polyax.custom_jvp
    def f(n: Any, x: Any) -> Any:
        return n * x

    f.defjvp(lambda xs, ts: (f(*xs), jnp.full(xs[0].shape, xs[0], xs[0].dtype) * ts[1]))
    assert polyax.jit(polyax.grad(polyax.jit(lambda x: f(7, x))))(1.0) == 7
    assert polyax.grad(polyax.jit(lambda x: f(7, x)))(1.0) == 7


def several_results() -> Any:
    """(sin x, cos y, x y), whose derivatives are told to be powers of ten."""

    @polyax.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x), jnp.cos(y), x * y

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        a, b = tangents
        return f(*primals), (a, 10 * b, 100 * a + 1000 * b)

    return f


@pytest.mark.parametrize("used", [(True, False, False), (False, True, True)])
def test_results_that_nobody_uses_are_left_out(used):
    closed = polyax.make_jaxpr(several_results())(1.0, 2.0)
    smaller, needed = dce_jaxpr(closed.jaxpr, used)
    (call,) = smaller.eqns
    assert len(call.outvars) == len(call.params["call_jaxpr"].jaxpr.outvars) == sum(used)
    assert len(call.params["call_jaxpr"].jaxpr.eqns) == sum(used) and needed == [True, True]

    def left(x: Any, y: Any) -> Any:
        return polyax.core.eval_jaxpr(smaller, closed.consts, x, y)

    def total(x: Any, y: Any) -> Any:
        return sum(left(x, y))

    close(left(1.0, 2.0), [v for v, u in zip((np.sin(1), np.cos(2), 2.0), used, strict=True) if u])
    wanted = (100.0 * used[2] + used[0], 1000.0 * used[2] + 10 * used[1])
    close(polyax.grad(total, (0, 1))(1.0, 2.0), wanted)
    close(polyax.vmap(polyax.grad(total))(X, X), np.full(3, wanted[0]))
    close(polyax.grad(lambda x: polyax.vmap(total)(x, x).sum())(X), np.full(3, sum(wanted)))


def test_numbers_of_numpy_have_the_types_of_arrays():
    """JAX has no arrays of 64 bits either, unless they are enabled: what is called at once sees none."""
    seen: list[Any] = []

    @polyax.custom_jvp
    def f(x: Any, y: Any, n: Any, z: Any = 1.0) -> Any:
        seen.extend(getattr(v, "dtype", None) for v in (x, y, n, z))
        return x * y

    given = np.ones(2), np.float64(2), np.int64(3), 1.0
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    f(*given)
    assert seen == [np.float32, np.float32, np.int32, None]
    polyax.jvp(f, given[:3], (np.ones(2), 1.0, np.zeros((), polyax.dtypes.float0)))
    assert seen[4:7] == [np.float32, np.float32, np.int32]


def test_zeros_given_to_rules_are_arrays():
    seen: list[Any] = []

    @polyax.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return x * y

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        seen[:] = tangents
        return f(*primals), tangents[0]

    for y, weak in ((3.0, True), (jnp.float32(3), False)):
        polyax.jvp(lambda x, y=y: f(x, y), (2.0,), (1.0,))
        assert isinstance(seen[1], polyax.Array) and seen[1] == 0 and seen[1].weak_type == weak
