"""Primitives of users: one rule at a time, each usable where it is needed, each mistake named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.core import ShapedArray
from polyax.extend import core
from polyax.interpreters import ad, batching
from polyax.ir.jaxpr import walk_eqns
from specs.table import CASES


def axpy_primitive() -> core.Primitive:
    """``a * x + y`` with all its rules."""
    p = core.Primitive("test_axpy")
    p.def_abstract_eval(lambda a, x, y: ShapedArray(x.shape, x.dtype))
    p.def_decomposition(lambda a, x, y: lax.add(lax.mul(a, x), y))

    def jvp(primals: Any, tangents: Any) -> Any:
        a, x, y = primals
        da, dx, dy = map(ad.instantiate_zeros, tangents)
        return p.bind(a, x, y), p.bind(a, dx, p.bind(da, x, dy))

    def transpose(ct: Any, a: Any, x: Any, y: Any) -> Any:
        zero = ad.zeros_like_aval(x.aval if ad.is_undefined_primal(x) else a.aval)
        to_y = ct if ad.is_undefined_primal(y) else None
        if ad.is_undefined_primal(a):
            return [p.bind(ct, x, zero), None, to_y]
        return [None, p.bind(a, ct, zero) if ad.is_undefined_primal(x) else None, to_y]

    ad.primitive_jvps[p] = jvp
    ad.primitive_transposes[p] = transpose
    batching.defbroadcasting(p)
    return p


axpy_p = axpy_primitive()


def cubic(x: Any, y: Any) -> Any:
    return axpy_p.bind(axpy_p.bind(x, x, y), x, y)  # x**3 + x y + y


@pytest.mark.sample
def test_all_rules_together(platform: str) -> None:
    xs, ys = np.linspace(-1, 1, 5, dtype=np.float32), np.linspace(2, 3, 5, dtype=np.float32)
    out, (dx, dy) = polyax.jit(polyax.vmap(polyax.value_and_grad(cubic, (0, 1))))(xs, ys)
    np.testing.assert_allclose(out, xs**3 + xs * ys + ys, rtol=1e-5)
    np.testing.assert_allclose(dx, 3 * xs**2 + ys, rtol=1e-5)
    np.testing.assert_allclose(dy, xs + 1, rtol=1e-5, atol=1e-6)


def test_it_stays_one_equation_until_compiled() -> None:
    names = [e.primitive.name for e in polyax.make_jaxpr(cubic)(1.0, 2.0).eqns]
    assert names == ["test_axpy", "test_axpy"]
    assert "test_axpy" in str(polyax.jit(cubic).trace(1.0, 2.0).jaxpr)


def test_higher_derivatives_and_loops() -> None:
    assert polyax.grad(polyax.grad(cubic))(2.0, 1.0).item() == 12.0
    out, _ = lax.scan(lambda c, x: (axpy_p.bind(c, x, x), None), 1.0, jnp.arange(4.0))
    want = 1.0
    for x in range(4):
        want = want * x + x
    assert out.item() == want
    grad = polyax.grad(lambda c: lax.fori_loop(0, 3, lambda i, v: axpy_p.bind(v, c, c), c))(2.0)
    assert grad.item() == 4 * 2.0**3 + 1 + 2 * 2.0 + 3 * 2.0**2  # c^4 + c^3 + c^2 + c


def test_numpy_implementation_runs_eagerly_and_on_the_host() -> None:
    p = core.Primitive("rounded_up")
    p.def_impl(lambda x: np.ceil(np.asarray(x)))
    assert p.bind(1.5) == 2.0
    p.def_abstract_eval(lambda x: x)
    reference = polyax.devices("reference")[0]
    assert polyax.jit(lambda x: p.bind(x) + 1, device=reference)(1.5).item() == 3.0
    with pytest.raises(NotImplementedError, match="'rounded_up' on .*host_fallback is 'error'.*def_decomposition"):
        polyax.jit(p.bind, device=polyax.devices("cpu")[0])(1.5)
    with polyax.config.override(host_fallback="warn"), pytest.warns(UserWarning, match="'rounded_up' runs in NumPy"):
        assert polyax.jit(lambda x: p.bind(x) + 2, device=polyax.devices("cpu")[0])(1.5).item() == 4.0


def test_what_no_device_can_run() -> None:
    p = core.Primitive("unknown")
    p.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match="no NumPy rule for 'unknown'.*def_decomposition.*def_impl"):
        polyax.jit(p.bind, device=polyax.devices("reference")[0])(1.5)


def test_several_results() -> None:
    p = core.Primitive("divmod")
    p.multiple_results = True
    p.def_abstract_eval(lambda x, y: [x, x])
    p.def_decomposition(lambda x, y: [lax.div(x, y), lax.rem(x, y)])
    quotient, rest = polyax.jit(p.bind)(17, 5)
    assert (quotient.item(), rest.item()) == (3, 2)
    smaller = polyax.make_jaxpr(lambda x: p.bind(x, x)[0])(3)
    assert len(smaller.eqns[0].outvars) == 2


@pytest.mark.sample
def test_parameters_and_arrays_of_a_decomposition(platform: str) -> None:
    table = jnp.array([10.0, 20.0, 30.0])
    p = core.Primitive("looked_up")
    p.def_abstract_eval(lambda i, *, scale: ShapedArray(i.shape, np.dtype("float32")))
    p.def_decomposition(lambda i, *, scale: table[i] * scale)
    assert polyax.jit(lambda i: p.bind(i, scale=2.0) + 1)(1).item() == 41.0
    assert lax.fori_loop(0, 3, lambda n, c: c + p.bind(n, scale=1.0), 0.0).item() == 60.0

    def step(carry: Any, i: Any) -> Any:
        one = lax.cond(i > 0, lambda: p.bind(i, scale=1.0), lambda: -p.bind(i + 1, scale=1.0))
        return carry + one, table * p.bind(i, scale=0.1)

    total, rows = polyax.jit(lambda c: lax.scan(step, c, jnp.arange(3)))(1.0)
    assert total.item() == 1.0 - 20.0 + 20.0 + 30.0
    np.testing.assert_allclose(rows, np.outer([1, 2, 3], [10, 20, 30]), rtol=1e-6)


def test_a_decomposition_that_belies_the_type_is_an_error(platform: str) -> None:
    p = bare(def_abstract_eval=lambda x: x, def_decomposition=lambda x: lax.broadcast(x, (2,)))
    with pytest.raises(TypeError, match=r"'test_bare' gives float32\[2\], its abstract evaluation float32\[\]"):
        polyax.jit(p.bind)(1.0)


def test_a_decomposition_without_types_runs_eagerly_alone() -> None:
    p = bare(def_decomposition=lambda x: x + 1)
    assert p.bind(jnp.float32(1)).item() == 2.0
    p.def_abstract_eval(lambda x: x)
    assert p.impl is None, "compiled from here on, by a device's own rule if it has one"
    assert p.bind(2.0).item() == polyax.jit(p.bind)(2.0).item() == 3.0


def test_helpers_for_linear_functions() -> None:
    p = core.Primitive("twice")
    p.def_abstract_eval(lambda x: x)
    p.def_decomposition(lambda x: x + x)
    ad.deflinear(p, lambda ct: [p.bind(ct)])
    batching.defvectorized(p)
    assert polyax.grad(lambda x: p.bind(x) ** 2)(3.0).item() == 24.0
    assert polyax.vmap(p.bind)(jnp.arange(2.0)).tolist() == [0.0, 2.0]

    q = core.Primitive("times")
    q.def_abstract_eval(lambda x, y: x)
    q.def_decomposition(lax.mul)
    ad.defbilinear(q, lambda ct, x, y: q.bind(ct, y), lambda ct, x, y: q.bind(x, ct))
    assert polyax.grad(lambda x: q.bind(x, x))(3.0).item() == 6.0
    r = core.Primitive("power")
    r.def_abstract_eval(lambda x, y: x)
    r.def_decomposition(lax.pow)
    ad.defjvp(r, lambda t, x, y: t * y * r.bind(x, y - 1), None)
    assert polyax.grad(r.bind)(3.0, 2.0).item() == 6.0


def test_reduction() -> None:
    p = core.Primitive("total")
    p.def_abstract_eval(lambda x, *, axes: ShapedArray(tuple(np.delete(x.shape, axes).tolist()), x.dtype))
    p.def_decomposition(lambda x, *, axes: jnp.sum(x, axes))
    batching.defreducer(p)
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    out = polyax.vmap(lambda v: p.bind(v, axes=(0,)), in_axes=1)(x)
    np.testing.assert_allclose(out, x.sum(0))


def bare(**rules: Any) -> core.Primitive:
    p = core.Primitive("test_bare")
    for name, rule in rules.items():
        getattr(p, name)(rule)
    return p


def wrong(table: Any, rule: Any) -> core.Primitive:
    p = bare(def_abstract_eval=lambda x: x, def_decomposition=lambda x: x + 1)
    table[p] = rule
    return p


GRAD, MAP = (lambda p: polyax.grad(p.bind)(1.0)), (lambda p: polyax.vmap(p.bind)(jnp.ones(3)))
MISTAKES = {
    "no types": (bare(), lambda p: polyax.jit(p.bind)(1.0), NotImplementedError, "Abstract evaluation for 'test_bare'"),
    "types are no types": (bare(def_abstract_eval=lambda x: 3), polyax.make_jaxpr, TypeError, "must return a Shaped"),
    "a list for one": (bare(def_abstract_eval=lambda x: [x]), polyax.make_jaxpr, ValueError, "abstract_eval.. method"),
    "no derivative": (bare(def_abstract_eval=lambda x: x), GRAD, NotImplementedError, "rule for 'test_bare'"),
    "no batching": (bare(def_abstract_eval=lambda x: x), MAP, NotImplementedError, "Batching rule for 'test_bare'"),
    "nothing that runs": (
        bare(def_abstract_eval=lambda x: x), lambda p: polyax.jit(p.bind)(1.0), NotImplementedError, "'test_bare' on",
    ),
    "no pair": (wrong(ad.primitive_jvps, lambda p, t: p[0]), GRAD, TypeError, "rule of 'test_bare' must return a pair"),
    "a tangent of another type": (
        wrong(ad.primitive_jvps, lambda p, t: (p[0], jnp.ones(2))), GRAD, TypeError, r"for .* gave float32\[2\]",
    ),
    "an axis that isn't there": (
        wrong(batching.primitive_batchers, lambda xs, dims: (xs[0], 1)), MAP, TypeError, "mapped axis .* is 1",
    ),
    "a setting as argument": (bare(), lambda p: p.bind("text"), TypeError, "argument 0 must be an array"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_named(case: str) -> None:
    p, use, error, message = MISTAKES[case]
    with pytest.raises(error, match=message):
        polyax.make_jaxpr(p.bind)(1.0) if use is polyax.make_jaxpr else use(p)


def test_a_transpose_rule_that_returns_too_little() -> None:
    p = bare(def_abstract_eval=lambda x: x, def_decomposition=lambda x: x + x)
    ad.deflinear2(p, lambda ct, x: [])
    with pytest.raises(TypeError, match="transpose rule of 'test_bare' must return a list of 1 cotangents"):
        polyax.grad(p.bind)(1.0)


def test_tables_are_dictionaries_of_rules() -> None:
    assert lax.sin_p in ad.primitive_jvps and axpy_p in ad.primitive_transposes
    rule = lambda primals, tangents: (primals[0], tangents[0])
    p = wrong(ad.primitive_jvps, rule)
    assert ad.primitive_jvps[p] is rule and p in list(ad.primitive_jvps)
    del ad.primitive_jvps[p]
    with pytest.raises(KeyError):
        ad.primitive_jvps[p]
    with pytest.raises(TypeError, match="rules belong to primitives"):
        ad.primitive_jvps["sin"] = rule  # pyright: ignore
    with pytest.raises(TypeError, match="must be a function"):
        ad.primitive_jvps[p] = 3  # pyright: ignore


def test_rules_that_take_the_axis() -> None:
    p = bare(def_abstract_eval=lambda x: x, def_decomposition=lambda x: x + x)
    seen = []

    def batch(size: Any, name: Any, trace_type: Any, args: Any, dims: Any) -> Any:
        seen.append((size, name, trace_type))
        return p.bind(*args), dims[0]

    batching.axis_primitive_batchers[p] = batch
    np.testing.assert_array_equal(polyax.vmap(p.bind, axis_name="i")(np.ones((3, 2))), np.full((3, 2), 2))
    assert seen == [(3, "i", None)] and batching.axis_primitive_batchers[p] is batch


def test_traces_of_one_transformation_are_equal() -> None:
    seen = []
    polyax.jvp(lambda x: seen.append(x._trace.main is x._trace.tag) or x * 2, (1.0,), (1.0,))
    assert seen == [True]


def test_rules_take_tuples():
    """As JAX's do: rules compare ``dims`` with tuples."""
    seen = []
    p = core.Primitive("seen")
    p.def_decomposition(lambda x: lax.mul(x, x))
    p.def_abstract_eval(lambda x: x)
    ad.primitive_jvps[p] = lambda primals, tangents: seen.append((primals, tangents)) or (p.bind(*primals), tangents[0])
    batching.primitive_batchers[p] = lambda args, dims: seen.append((args, dims)) or (p.bind(*args), dims[0])
    polyax.jvp(p.bind, (3.0,), (1.0,))
    polyax.vmap(p.bind)(np.ones(2, np.float32))
    assert [tuple(map(type, pair)) for pair in seen] == [(tuple, tuple)] * 2


def test_arrays_of_numpy_come_with_dtypes_of_arrays():
    seen = []
    p = core.Primitive("seen_dtype")
    p.def_impl(lambda x: seen.append(x.dtype) or x)
    batching.defvectorized(p)
    assert polyax.vmap(p.bind)(np.ones(2)).dtype == p.bind(np.ones(2)).dtype == np.float32
    assert seen == [np.float32] * 2


def test_primitives_of_polyax_look_as_users_do() -> None:
    x = jnp.arange(3.0)
    assert lax.sin_p.bind(x).shape == (3,) and not lax.sin_p.multiple_results
    assert isinstance(lax.sort_p.bind(x, dimension=0, is_stable=True, num_keys=1), list) and lax.sort_p.multiple_results
    y, dot = ad.primitive_jvps[lax.sin_p]((x,), (jnp.ones(3),))
    np.testing.assert_allclose(dot, np.cos(x), rtol=1e-6)
    y, dim = batching.primitive_batchers[lax.exp_p]((jnp.ones((2, 3)),), (1,))
    assert (y.shape, dim) == ((2, 3), 1)
    unknown = ad.UndefinedPrimal(polyax.typeof(x))
    ct, none = ad.primitive_transposes[lax.mul_p](jnp.ones(3), unknown, 2.0 * x)
    assert none is None and ct.tolist() == [0.0, 2.0, 4.0]


def test_every_primitive_says_whether_it_has_several_results() -> None:
    for name, case in CASES.items():
        with polyax.enable_x64(True):
            program = polyax.make_jaxpr(case.fun)(*case.args)
        for eqn in walk_eqns(program.jaxpr):
            assert eqn.primitive.multiple_results or len(eqn.outvars) == 1, (name, eqn)


def test_a_primitive_without_any_rule_says_that_it_cannot_be_evaluated() -> None:
    p = bare()
    with pytest.raises(NotImplementedError, match="Evaluation rule for .test_bare. not implemented"):
        p.bind(1.0)
    with pytest.raises(NotImplementedError, match="Abstract evaluation for .test_bare. not implemented"):
        polyax.jit(p.bind)(1.0)
