"""Interpreters that users write over jaxprs, and what ``polyax.extend.core`` and ``polyax.core`` offer them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.core
import polyax.numpy as jnp
from polyax import lax
from polyax.extend import core
from polyax.interpreters import ad, partial_eval


def evaluate(jaxpr: core.Jaxpr, consts: Any, args: Any) -> list[Any]:
    """An interpreter as JAX's documentation teaches them."""
    env: dict[Any, Any] = {}

    def read(v: Any) -> Any:
        return v.val if type(v) is core.Literal else env[v]

    core.safe_map(env.__setitem__, jaxpr.invars, args)
    core.safe_map(env.__setitem__, jaxpr.constvars, consts)
    for eqn in jaxpr.eqns:
        params = eqn.primitive.get_bind_params(eqn.params)
        outs = eqn.primitive.bind(*core.safe_map(read, eqn.invars), **params)
        outs = outs if eqn.primitive.multiple_results else [outs]
        core.safe_map(env.__setitem__, eqn.outvars, outs)
    return core.safe_map(read, jaxpr.outvars)


INVERSES = {
    lax.exp_p: jnp.log, lax.log_p: jnp.exp, lax.tanh_p: jnp.arctanh, lax.neg_p: lambda y: -y, lax.sqrt_p: jnp.square,
}  # fmt: skip


def inverse(fun: Any) -> Any:
    """The inverse of a chain of invertible functions: its equations backwards."""

    def inverted(*ys: Any) -> Any:
        jaxpr = polyax.make_jaxpr(fun)(*ys).jaxpr
        env = dict(core.safe_zip(jaxpr.outvars, ys))
        for eqn in reversed(jaxpr.eqns):
            if eqn.primitive not in INVERSES:
                raise NotImplementedError(f"{eqn.primitive} has no inverse here")
            env[eqn.invars[0]] = INVERSES[eqn.primitive](env[eqn.outvars[0]])
        out = [env[v] for v in jaxpr.invars]
        return out if len(out) > 1 else out[0]

    return inverted


def chain(x: Any) -> Any:
    return jnp.exp(jnp.tanh(-jnp.sqrt(x)))


def test_inverse_of_a_function() -> None:
    assert inverse(chain)(chain(0.7)).item() == pytest.approx(0.7, rel=1e-5)
    with pytest.raises(NotImplementedError, match="sin has no inverse"):
        inverse(jnp.sin)(0.5)


def test_interpreters_can_be_transformed() -> None:
    f_inverse = inverse(chain)
    y = chain(0.7)
    want = 1 / polyax.grad(chain)(0.7)
    np.testing.assert_allclose(polyax.jit(polyax.grad(f_inverse))(y), want, rtol=1e-4)
    ys = jnp.stack([chain(0.3), chain(0.4)])
    np.testing.assert_allclose(polyax.vmap(f_inverse)(ys), [0.3, 0.4], rtol=1e-4)


@polyax.custom_jvp
def gate(x: Any) -> Any:
    return jnp.maximum(x, 0)


gate.defjvp(lambda ps, ts: (gate(*ps), ts[0] * 7))


def everything(x: Any) -> Any:
    y = polyax.jit(lambda v: v * jnp.arange(3.0))(x)
    y = lax.cond(x > 0, jnp.sin, jnp.cos, y)
    y, _ = lax.scan(lambda c, a: (c + a, None), y, jnp.ones((2, 3)))
    y = lax.while_loop(lambda c: c[0] < 9, lambda c: c + 1, y)
    return gate(polyax.checkpoint(jnp.sin)(y)).sum() + np.float32(1)


def test_every_construct_passes_through_an_interpreter() -> None:
    closed = polyax.make_jaxpr(everything)(0.5)
    (out,) = evaluate(closed.jaxpr, closed.consts, [0.5])
    np.testing.assert_allclose(out, everything(0.5), rtol=1e-6)
    through = polyax.jvp(lambda x: evaluate(closed.jaxpr, closed.consts, [x])[0], (0.5,), (1.0,))
    np.testing.assert_allclose(through, polyax.jvp(everything, (0.5,), (1.0,)), rtol=1e-6)


def test_programs_as_functions() -> None:
    closed = polyax.make_jaxpr(lambda x, y: (x + y, x))(1.0, 2.0)
    assert [float(v) for v in core.jaxpr_as_fun(closed)(3.0, 4.0)] == [7.0, 3.0]
    assert polyax.core.eval_jaxpr(closed.jaxpr, closed.consts, 3.0, 4.0)[0].item() == 7.0


def test_rewriting_a_program() -> None:
    """Sines become cosines, by equations with another primitive."""
    closed = polyax.make_jaxpr(lambda x: jnp.sin(x) + jnp.sin(2 * x))(1.0)
    eqns = [e.replace(primitive=lax.cos_p) if e.primitive is lax.sin_p else e for e in closed.eqns]
    changed = closed.replace(jaxpr=closed.jaxpr.replace(eqns=eqns))
    core.check_jaxpr(changed.jaxpr)
    np.testing.assert_allclose(core.jaxpr_as_fun(changed)(1.0)[0], np.cos(1) + np.cos(2), rtol=1e-6)


def test_a_program_written_by_hand() -> None:
    new = core.gensym()
    aval = polyax.core.ShapedArray((2,), np.dtype("float32"))
    x, y = new(aval), new(aval)
    jaxpr = core.Jaxpr([], [x], [y], [core.new_jaxpr_eqn([x], [y], lax.neg_p, {})])
    core.check_jaxpr(jaxpr)
    assert polyax.core.eval_jaxpr(jaxpr, [], jnp.ones(2))[0].tolist() == [-1, -1]


def test_programs_within_programs() -> None:
    closed = polyax.make_jaxpr(everything)(0.5)
    by_params = {id(j) for e in closed.eqns for j in core.jaxprs_in_params(e.params)}
    by_rule = {id(j) for j in core.subjaxprs(closed.jaxpr)}
    assert len(by_rule) >= 6 and by_rule <= by_params


def test_dead_code() -> None:
    closed = polyax.make_jaxpr(lambda x, y: (jnp.sin(x), jnp.cos(y)))(1.0, 2.0)
    smaller, used = partial_eval.dce_jaxpr(closed.jaxpr, [False, True])
    assert used == [False, True] and len(smaller.invars) == 1 and [e.primitive.name for e in smaller.eqns] == ["cos"]


def test_types_of_batches() -> None:
    aval = polyax.core.ShapedArray((3, 4), np.dtype("float32"))
    assert core.mapped_aval(4, 1, aval).shape == (3,) and core.mapped_aval(9, None, aval) is aval
    assert core.unmapped_aval(7, 1, aval).shape == (3, 7, 4)
    with pytest.raises(ValueError, match=r"axis 0 of float32\[3,4\] must exist and have 5"):
        core.mapped_aval(5, 0, aval)


def test_traced_values_are_not_concrete() -> None:
    assert core.concrete_or_error(int, 3.0) == 3
    with pytest.raises(polyax.errors.ConcretizationTypeError, match="needed for the size"):
        polyax.jit(lambda x: core.concrete_or_error(int, x, "needed for the size"))(1)


def test_where_we_are() -> None:
    under = []
    polyax.jit(polyax.vmap(lambda x: under.append(core.unsafe_am_i_under_a_jit_DO_NOT_USE()) or x))(jnp.ones(2))
    polyax.vmap(lambda x: under.append(core.unsafe_am_i_under_a_vmap_DO_NOT_USE()) or x)(jnp.ones(2))
    assert under == [True, True] and not core.unsafe_am_i_under_a_jit_DO_NOT_USE()
    names = []
    polyax.vmap(lambda x: names.extend(core.unsafe_get_axis_names_DO_NOT_USE()) or x, axis_name="i")(jnp.ones(2))
    assert names == ["i"]


def test_lists_of_other_lengths() -> None:
    with pytest.raises(ValueError, match=r"length mismatch: \[2, 1\]"):
        core.safe_map(lambda x, y: x, [1, 2], [1])


# --- computing while tracing --------------------------------------------------------------------------------------


def test_what_is_known_is_computed_while_tracing() -> None:
    @polyax.jit
    def f(x: Any) -> Any:
        with polyax.core.ensure_compile_time_eval():
            known = jnp.sin(jnp.arange(3.0)) + polyax.jit(lambda v: v * 2)(1.0)
            assert float(known[0]) == 2.0
            traced = x + known
            assert isinstance(traced, polyax.core.Tracer)
            slope = float(polyax.grad(jnp.square)(3.0))
        return traced * slope

    np.testing.assert_allclose(f(1.0), (1 + np.sin(np.arange(3)) + 2) * 6, rtol=1e-6)
    assert not any(e.primitive.name == "sin" for e in polyax.make_jaxpr(f)(1.0).jaxpr.eqns[0].params["jaxpr"].eqns)


def test_evaluation_alone() -> None:
    def f(x: Any) -> Any:
        with polyax.core.eval_context():
            n = int(jnp.square(2))
        return x * n

    assert polyax.jit(f)(3).item() == 12


def test_programs_are_made_and_changed_as_in_jax() -> None:
    closed = polyax.make_jaxpr(lambda x: jnp.sin(x) + 1)(1.0)
    jaxpr, out = closed.jaxpr, core.Var(closed.out_avals[0])
    negated = core.new_jaxpr_eqn(jaxpr.outvars, [out], lax.neg_p, {}, core.no_effects)
    longer = core.Jaxpr([], jaxpr.invars, [out], [*jaxpr.eqns, negated], debug_info=jaxpr.debug_info)
    assert longer.debug_info.func_name == jaxpr.debug_info.func_name == "<lambda>"
    assert [e.primitive.name for e in longer.eqns] == ["sin", "add", "neg"] and str(negated) == "a:f32[] = neg b"
    twice = closed.map_jaxpr(lambda _: longer)
    assert twice.jaxpr is longer and twice.consts == closed.consts
    np.testing.assert_allclose(core.jaxpr_as_fun(twice)(0.5)[0], -np.sin(0.5) - 1, rtol=1e-6)


X = jnp.ones((2, 3))
UNSET: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any], str]] = {
    "an accuracy": (lax.sin_p, (X,), {}, "accuracy"),
    "the dtype of a product": (lax.mul_p, (X, X), {}, "out_dtype"),
    "the sharding of a broadcast": (
        lax.broadcast_in_dim_p, (1.0,), {"shape": (2,), "broadcast_dimensions": ()}, "sharding",
    ),
    "the sharding of other dimensions": (lax.reshape_p, (X,), {"new_sizes": (6,), "dimensions": None}, "sharding"),
    "the sharding of a type": (
        lax.convert_element_type_p, (X,), {"new_dtype": np.dtype("int32"), "weak_type": False}, "sharding",
    ),
    "the sharding of positions": (
        lax.iota_p, (), {"dtype": np.dtype("int32"), "shape": (3,), "dimension": 0}, "sharding",
    ),
    "the sharding of a sum": (lax.reduce_sum_p, (X,), {"axes": (0,)}, "out_sharding"),
    "the sharding of products": (
        lax.dot_general_p,
        (X, X),
        {"dimension_numbers": (((0, 1), (0, 1)), ((), ())), "precision": None, "preferred_element_type": None},
        "out_sharding",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSET)
def test_parameters_of_jax_that_say_nothing(name: str) -> None:
    primitive, args, params, unset = UNSET[name]
    plain = polyax.make_jaxpr(lambda *xs: primitive.bind(*xs, **params))(*args)
    given = polyax.make_jaxpr(lambda *xs: primitive.bind(*xs, **params, **{unset: None}))(*args)
    assert str(given) == str(plain)
    np.testing.assert_array_equal(primitive.bind(*args, **params, **{unset: None}), primitive.bind(*args, **params))
    (eqn,) = plain.eqns
    assert eqn.replace(params=params | {unset: None}).params == eqn.params
    assert core.new_jaxpr_eqn(eqn.invars, eqn.outvars, primitive, params | {unset: None}).params == eqn.params
    assert (
        primitive.bind(*args, **params).shape
        == polyax.vmap(lambda _: primitive.bind(*args, **params, **{unset: None}))(jnp.ones(1)).shape[1:]
    )


def test_rules_of_primitives_take_what_says_nothing() -> None:
    y, tangent = ad.primitive_jvps[lax.sin_p]((0.0,), (1.0,), accuracy=None)
    assert (y, tangent) == (0.0, 1.0)
