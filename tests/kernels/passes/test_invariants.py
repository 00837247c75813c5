"""What doesn't change in a loop is computed before it, when programs are compiled; results stay."""

from __future__ import annotations

import numpy as np

import polyax
import polyax.numpy as jnp
import polyax.reference.rules
from polyax import lax
from polyax.ir.check import check_jaxpr
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.reference.interpreter import evaluate
from polyax_kernels.passes.invariants import hoist_invariants

W = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
X = np.arange(3, dtype=np.float32)


def names(closed: ClosedJaxpr) -> list[str]:
    return [e.primitive.name for e in closed.eqns]


def hoisted(fun, *args) -> ClosedJaxpr:
    """The rewritten program, after checking that it is well-typed and gives the same results."""
    closed = polyax.make_jaxpr(fun)(*args)
    result = hoist_invariants(closed)
    check_jaxpr(result.jaxpr)
    for got, wanted in zip(evaluate(result.jaxpr, args), evaluate(closed.jaxpr, args), strict=True):
        np.testing.assert_array_equal(got, wanted)
    return result


def test_what_only_constants_give_moves_before_the_scan():
    program = hoisted(lambda w, x: lax.scan(lambda c, _: (jnp.sin(w) @ c, None), x, None, 4)[0], W, X)
    assert names(program) == ["sin", "scan"]
    assert names(program.eqns[1].params["jaxpr"]) == ["dot_general"]


def test_loops_with_conditions_and_nested_ones():
    def f(w, x):
        def inner(c):
            return lax.fori_loop(0, 3, lambda i, d: d + jnp.exp(w) @ c, c)

        return lax.while_loop(lambda c: jnp.sum(c) < 100, inner, x)

    program = hoisted(f, W, X)
    assert "exp" in names(program) and "exp" not in str(program.eqns[-1].params["body_jaxpr"])


def test_shapes_and_what_is_written_in_the_program_stay_inside():
    def body(c, _):
        return c + jnp.broadcast_to(W[0, 0], (3,)) + 2.0 * jnp.ones(3), None

    program = hoisted(lambda x: lax.scan(body, x, None, 4)[0], X)
    assert names(program)[-1] == "scan" and "broadcast_in_dim" in names(program.eqns[-1].params["jaxpr"])


def test_a_shape_that_both_sides_need_is_made_on_both():
    def f(w, x):
        def body(c, _):
            row = jnp.reshape(w, (9,))
            return c * jnp.sum(jnp.sin(row)) + row[:3], None

        return lax.scan(body, x, None, 3)[0]

    program = hoisted(f, W, X)
    assert "reduce_sum" in names(program) and "reduce_sum" not in names(program.eqns[-1].params["jaxpr"])


def test_effects_and_changing_values_stay():
    def body(c, x):
        polyax.debug.print("{}", x, ordered=True)
        return c * jnp.cos(x), None

    closed = polyax.make_jaxpr(lambda x: lax.scan(body, 1.0, x)[0])(X)
    assert hoist_invariants(closed) is closed


def test_compiled_loops_agree(platform):
    f = lambda w, x: lax.fori_loop(0, 5, lambda i, c: jnp.tanh(jnp.cos(w) @ c + i), x)
    wanted = X.astype(np.float64)
    for i in range(5):
        wanted = np.tanh(np.cos(W.astype(np.float64)) @ wanted + i)
    np.testing.assert_allclose(polyax.jit(f)(W, X), wanted, rtol=1e-5)
