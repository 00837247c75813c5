"""Functions under layers, flat ones among them, and tracing those with known arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import api_util
from polyax.core import ShapedArray
from polyax.extend import core, source_info_util
from polyax.extend import linear_util as lu
from polyax.extend.core import primitives
from polyax.interpreters import ad, mlir, partial_eval
from polyax.ir.source import is_internal
from polyax.tree_util import tree_flatten

SCALAR = ShapedArray((), np.dtype("float32"))


@lu.transformation2
def scaled(f: Callable[..., Any], by: float, *args: Any) -> Any:
    return by * f(*args)


@lu.transformation_with_aux2
def counting(f: Callable[..., Any], store: lu.AuxStore, *args: Any) -> Any:
    store.store(len(args))
    return f(*args)


@lu.transformation
def shifted(by: float, *args: Any) -> Any:
    result = yield [a + by for a in args], {}
    yield result - by


@lu.transformation_with_aux
def noting(*args: Any) -> Any:
    result = yield args, {}
    yield result, "noted"


def test_layers() -> None:
    f = lu.wrap_init(lambda x, y, z=0: x + y + z, {"z": 100})
    f, count = counting(scaled(f, 10))
    with pytest.raises(lu.StoreException, match="Store empty"):
        count()
    assert f.call_wrapped(1, 2) == 1030 and count() == 2 and len(f.transforms) == 2
    old, note = noting(shifted(lu.wrap_init(lambda x: 2 * x), 1))
    assert old.call_wrapped(5) == 11 and note() == "noted"
    assert lu.transformation2(lambda g, x: -g(x), lu.wrap_init(abs)).call_wrapped(-3) == -3


def test_which_of_two_layers_has_stored() -> None:
    one, first = counting(lu.wrap_init(abs))
    _, second = counting(lu.wrap_init(abs))
    with pytest.raises(lu.StoreException, match="neither store occupied"):
        lu.merge_linear_aux(first, second)
    one.call_wrapped(1)
    assert lu.merge_linear_aux(first, second) == (True, 1) and lu.merge_linear_aux(second, first) == (False, 1)
    with pytest.raises(lu.StoreException, match="both stores occupied"):
        lu.merge_linear_aux(first, first)
    with pytest.raises(lu.StoreException, match="Store occupied"):
        one.call_wrapped(2)


def test_cached_by_layers_and_settings() -> None:
    calls: list[Any] = []
    told: list[Any] = []

    def explain(fun: Any, is_first: bool, *rest: Any) -> None:
        told.append(is_first)

    @lambda call: lu.cache(call, explain=explain)
    def run(fun: lu.WrappedFun, x: Any) -> Any:
        calls.append(x)
        return fun.call_wrapped(x)

    def base(x: Any) -> Any:
        return x + 1

    for _ in range(2):
        f, count = counting(scaled(lu.wrap_init(base), 3))
        assert run(f, 1) == 6 and count() == 1
    assert run(scaled(lu.wrap_init(base), 4), 1) == 8 and calls == [1, 1] and told == [True, False]
    with polyax.enable_x64(True):
        run(scaled(lu.wrap_init(base), 4), 1)
    assert len(calls) == 3
    run.cache_clear()  # pyright: ignore
    run(scaled(lu.wrap_init(base), 4), 1)
    assert len(calls) == 4


def test_flat_functions() -> None:
    leaves, tree = tree_flatten((({"a": 1.0},), {"k": 2.0}))
    flat, out_tree = api_util.flatten_fun(lu.wrap_init(lambda d, k: (d["a"] * k, {"r": k})), tree)
    jaxpr, avals, consts = partial_eval.trace_to_jaxpr_dynamic(flat, [SCALAR] * len(leaves))
    assert [str(a) for a in avals] == ["float32[]"] * 2 and consts == [] and len(jaxpr.eqns) == 1
    assert out_tree() == tree_flatten((0, {"r": 0}))[1]
    flat, out_tree = api_util.flatten_fun_nokwargs(lu.wrap_init(lambda x, y: [x, y]), tree_flatten((1, 2))[1])
    assert flat.call_wrapped(3, 4) == [3, 4] and out_tree() == tree_flatten([1, 2])[1]
    part, dynamic = api_util.argnums_partial(lu.wrap_init(lambda x, n, y: (x, n, y)), (0, -1), (1.0, "n", 2.0))
    assert dynamic == (1.0, 2.0) and part.call_wrapped(7, 8) == (7, "n", 8)
    with pytest.raises(ValueError, match="static argument 1 .* must have a hash"):
        api_util.argnums_partial(lu.wrap_init(lambda x, n: x), 0, (1.0, []))


def test_axes_and_types() -> None:
    tree = tree_flatten(((1, [2, 3]), {"k": 4}))[1]
    assert api_util.flatten_axes("in_axes", tree, (0, None), kws=True) == [0, None, None, 0]
    assert api_util.flatten_axes("axes", tree_flatten([1, 2])[1], 3) == [3, 3]
    with pytest.raises(ValueError, match="axes specification must be a tree prefix"):
        api_util.flatten_axes("axes", tree_flatten([1, 2])[1], (1, 2, 3))
    assert api_util.shaped_abstractify(np.ones(2, np.float32)) == ShapedArray((2,), np.dtype("float32"))
    told = api_util.debug_info("jit", lambda x, n: x, ({"a": 1}, 2), {}, static_argnums=(1,), sourceinfo="here")
    assert told.arg_names == ("x['a']",) and told.func_src_info == "here" and told.safe_arg_names(2) == ("", "")


def test_what_is_known_is_computed() -> None:
    f = lu.wrap_init(lambda x, y: [jnp.sin(x), x * y, y + 1.0])
    given = [partial_eval.PartialVal.known(2.0), partial_eval.PartialVal.unknown(SCALAR)]
    jaxpr, results, consts = partial_eval.trace_to_jaxpr_nounits(f, given)
    assert [r.is_known() for r in results] == [True, False, False] and len(jaxpr.outvars) == 2
    np.testing.assert_allclose(results[0].get_known(), np.sin(2.0), rtol=1e-6)
    assert core.jaxpr_as_fun(polyax.core.ClosedJaxpr(jaxpr, consts))(3.0) == [6.0, 4.0]
    jaxpr, results, _ = partial_eval.trace_to_jaxpr_nounits(f, given, instantiate=True)
    assert len(jaxpr.outvars) == 3 and results[0].get_aval().shape == ()


def test_unused_inputs_and_constants_go() -> None:
    c = jnp.arange(3.0)
    closed = polyax.make_jaxpr(lambda x, y: (x + c, y * 2))(c, c)
    smaller, kept, used = partial_eval.dce_jaxpr_consts(closed.jaxpr, [False, True])
    assert (kept, used, len(smaller.eqns)) == ([False], [False, True], 1)
    (call,) = polyax.make_jaxpr(polyax.jit(lambda x, y: (x + 1, y * 2)))(1.0, 2.0).eqns
    used, left = partial_eval.dce_jaxpr_call_rule([True, False], call)
    assert used == [True, False] and left is not None and len(left.outvars) == 1
    with pytest.raises(ValueError, match="uses its argument 0"):
        f = lu.wrap_init(lambda x, y: [x])
        partial_eval.trace_to_jaxpr_dynamic(f, [SCALAR] * 2, keep_inputs=[False, True])


@pytest.mark.parametrize("primitive", [primitives.closed_call_p, primitives.call_p], ids=str)
def test_calls_of_programs(primitive: Any) -> None:
    program = polyax.make_jaxpr(lambda x, y: (jnp.sin(x) * y, y))(1.0, 2.0)
    f = lambda x: primitive.bind(x, x + 1.0, call_jaxpr=program)[0]
    want = lambda x: jnp.sin(x) * (x + 1.0)
    for derive in (lambda g: g, polyax.jit, polyax.grad, lambda g: polyax.grad(polyax.jit(polyax.grad(g)))):
        np.testing.assert_allclose(derive(f)(0.7), derive(want)(0.7), rtol=1e-5)
    np.testing.assert_allclose(polyax.vmap(f)(jnp.arange(3.0)), polyax.vmap(want)(jnp.arange(3.0)), rtol=1e-5)


def test_equations_bound_again_keep_their_lines() -> None:
    (eqn,) = polyax.make_jaxpr(lambda x: jnp.sin(x))(1.0).eqns

    def again(x: Any) -> Any:
        with source_info_util.user_context(eqn.source_info.traceback):
            told = source_info_util.current()
            return eqn.primitive.bind(x, **eqn.params), told == eqn.source_info

    made = polyax.make_jaxpr(lambda x: again(x)[0])(1.0)
    assert made.eqns[0].source_info == eqn.source_info and again(1.0)[1]
    assert source_info_util.current() != eqn.source_info


def test_names_of_primitives() -> None:
    eqns = polyax.make_jaxpr(lambda x: polyax.jit(jnp.sin)(x))(1.0).eqns
    assert eqns[0].primitive is primitives.jit_p and primitives.optimization_barrier_p.name == "optimization_barrier"
    late = ["get", "swap", "device_put", "random_bits", "random_seed", "hessenberg", "schur", "tridiagonal_solve"]
    assert [getattr(primitives, f"{name}_p").name for name in late] == late
    with pytest.raises(AttributeError, match="no_such_p"):
        primitives.no_such_p  # noqa: B018  # pyright: ignore


def test_lowering_rules_that_are_functions() -> None:
    def made(**options: Any) -> Any:
        p = core.Primitive("test_lowered")
        p.multiple_results = options.get("several", False)
        p.def_abstract_eval(lambda x: [x] if p.multiple_results else x)
        mlir.register_lowering(p, mlir.lower_fun(**options["rule"]))
        return p

    single = {"fun": lambda x: x * 3, "multiple_results": False}
    several = {"fun": lambda x: [x * 3]}
    assert made(rule=single).bind(2.0) == 6 and made(rule=several).bind(2.0) == 6
    assert polyax.jit(made(rule=several, several=True).bind)(2.0) == [6]
    p = core.Primitive("test_writes_mlir")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, lambda ctx, x: [object()])
    with pytest.raises(NotImplementedError, match="lowering rule of 'test_writes_mlir' writes MLIR"):
        p.bind(1.0)
    with pytest.raises(TypeError, match="needs a primitive of polyax.extend.core"):
        mlir.register_lowering(3, mlir.lower_fun(abs))  # pyright: ignore
    assert mlir.register_lowering(p, abs, platform="tpu") is abs
    with pytest.raises(NotImplementedError, match="for an unknown platform foo. Known platforms are: .*cpu,"):
        mlir.register_lowering(p, abs, platform="foo")
    mlir.register_lowering(p, lambda ctx, x: ctx.module_context)
    with pytest.raises(NotImplementedError, match="writes MLIR .it asks for the module_context of its context"):
        p.bind(1.0)


def test_lowering_rules_that_hand_on_what_they_get() -> None:
    p = core.Primitive("test_tag")
    p.multiple_results = True
    p.def_abstract_eval(lambda x, y, *, by: [y, x])
    seen = []

    @functools.partial(mlir.register_lowering, p)
    def lower(ctx: mlir.LoweringRuleContext, x: Any, y: Any, *, by: float) -> Any:
        seen.append((ctx.primitive, ctx.avals_in, ctx.avals_out))
        return [y, mlir.lower_fun(lambda x, *, by: x * by, multiple_results=False)(ctx, x, by=by)]

    for run in (p.bind, polyax.jit(p.bind, static_argnames="by")):
        y, x = run(2.0, jnp.arange(2), by=3.0)
        assert (y.tolist(), x.item()) == ([0, 1], 6)
    assert (
        seen[0][0] is p and [a.shape for a in seen[0][1]] == [(), (2,)] and [a.shape for a in seen[0][2]] == [(2,), ()]
    )


def test_primitives_whose_rules_are_methods() -> None:
    class Tagged(core.Primitive):
        multiple_results = True

        def impl(self, *args: Any, times: int) -> Any:
            return [np.asarray(x) * times for x in args]

        def abstract_eval(self, *avals: Any, times: int) -> Any:
            return avals, core.no_effects

    p = Tagged("test_tagged")
    mlir.register_lowering(p, lambda ctx, *args, times: [x * times for x in args])
    assert [x.item() for x in p.bind(1.0, 2.0, times=3)] == [3, 6]
    assert [x.item() for x in polyax.jit(lambda x: p.bind(x, 2.0, times=3))(1.0)] == [3, 6]


def test_traces_and_tags() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        with core.take_current_trace() as trace:
            seen.append((type(trace).__name__, jnp.ones(2).sum().item()))
        return x

    polyax.make_jaxpr(f)(1.0)
    assert seen == [("DynamicJaxprTrace", 2.0)] and core.TraceTag() != core.TraceTag()


def test_programs_tell_what_they_were_traced_from() -> None:
    def named(x: Any) -> Any:
        return x + 1.0

    closed = polyax.make_jaxpr(named)(1.0)
    assert closed.debug_info.func_name == "named" and closed.literals == [] and closed.eqns[0].ctx is None
    again = core.Jaxpr([], closed.jaxpr.invars, closed.jaxpr.outvars, closed.eqns, set(), closed.jaxpr.debug_info)
    assert again.debug_name == "named" and "test_linear_util" in str(closed.eqns[0].source_info)
    assert closed.jaxpr.replace(debug_info=lu.DebugInfo("jit", "other", None)).debug_name == "other"
    assert closed.eqns[0].replace(source_info=None, ctx=None).source is None


def test_files_of_a_library_are_never_the_users(tmp_path: Any) -> None:
    (tmp_path / "own.py").write_text("")
    source_info_util.register_exclusion(str(tmp_path / "own.py"))
    assert is_internal(str(tmp_path / "own.py")) and not is_internal(str(tmp_path / "users.py"))
    source_info_util.register_exclusion(str(tmp_path))
    assert is_internal(str(tmp_path / "users.py"))


def test_sums_of_tangents() -> None:
    zero = ad.Zero(SCALAR)
    assert ad.add_tangents(x=zero, y=1.0) == 1 and ad.add_jaxvals(x=1.0, y=2.0) == 3
    assert ad.instantiate_zeros(tangent=zero) == 0 and core.primal_dtype_to_tangent_dtype("int32") == polyax.float0
