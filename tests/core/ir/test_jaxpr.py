"""Jaxprs: printing, checking, dead code, evaluation; all linear in program size."""

import re

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax.ir.aval import ShapedArray
from polyax.ir.check import check_jaxpr
from polyax.ir.effects import Effect
from polyax.ir.errors import JaxprTypeError
from polyax.ir.jaxpr import ClosedJaxpr, Jaxpr, Var, eliminate_dead_code, eval_jaxpr, last_uses, walk_eqns

X = np.arange(3, dtype=np.float32)


def _squeezed(jaxpr) -> str:
    return re.sub(r"\s+", " ", str(jaxpr))


def test_prints_as_the_source_documents():
    closed = polyax.make_jaxpr(lambda a, b: lax.add(a, lax.mul(lax.sin(b), 3.0)))(X, X)
    assert str(closed) == (
        "{ lambda ; a:f32[3] b:f32[3]. let\n"
        "    c:f32[3] = sin b\n"
        "    d:f32[3] = mul c 3.0:f32[]\n"
        "    e:f32[3] = add a d\n"
        "  in (e,) }"
    )


@pytest.mark.parametrize(
    ("fun", "text"),
    [
        (lambda a: a, "{ lambda ; a:f32[3]. let  in (a,) }"),
        (lambda a: (a, 2.0), "{ lambda ; a:f32[3]. let  in (a, 2.0:f32[]) }"),
        (lambda a: lax.sin(lax.cos(a)), "{ lambda ; a:f32[3]. let b:f32[3] = cos a; c:f32[3] = sin b in (c,) }"),
        (lambda a: polyax.jit(f_same)(a), "{ lambda ; a:f32[3]. let\n    b:f32[3] = jit[name=f_same "
         "jaxpr={ lambda ; a:f32[3]. let  in (a,) }] a\n  in (b,) }"),
        (lambda a: lax.broadcast(a[0], (2,)), "{ lambda ; a:f32[3]. let\n    b:f32[1] = "
         "slice[limit_indices=(1,) start_indices=(0,) strides=None] a\n    c:f32[] = squeeze[dimensions=(0,)] b\n"
         "    d:f32[2] = broadcast_in_dim[broadcast_dimensions=() shape=(2,)] c\n  in (d,) }"),
    ],
)  # fmt: skip
def test_what_fits_stands_on_one_line(fun, text):
    assert str(polyax.make_jaxpr(fun)(X)) == text


def f_same(x):
    return x


def test_names_after_z_are_those_of_jax():
    def f(x):
        for _ in range(27):
            x = lax.sin(x)
        return x

    lines = str(polyax.make_jaxpr(f)(X)).splitlines()
    assert [line.split(":")[0].strip() for line in lines[25:28]] == ["z", "ba", "bb"]


def test_equations_without_results_bind_nothing():
    look = polyax.make_jaxpr(lambda a: (polyax.debug.inspect_array_sharding(a, callback=print), lax.sin(a))[1])(X)
    assert str(look) == (
        "{ lambda ; a:f32[3]. let\n"
        "    inspect_sharding[callback=<built-in function print>] a\n"
        "    b:f32[3] = sin a\n"
        "  in (b,) }"
    )


def test_constants_become_constvars():
    closed = polyax.make_jaxpr(lambda a: lax.add(a, X))(X)
    assert str(closed).startswith("{ lambda a:f32[3]; b:f32[3]. let ")
    assert closed.consts[0] is X


def test_nested_jit_prints_its_program():
    inner = polyax.jit(lambda x: lax.sin(x))
    text = _squeezed(polyax.make_jaxpr(lambda a: inner(a))(X))
    assert "jit[ name=<lambda> jaxpr={ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) } ] a" in text


def test_programs_that_are_there_twice_are_named_and_written_once():
    g = polyax.jit(lax.sin)
    h = polyax.jit(lambda x: g(g(x)))
    assert str(polyax.make_jaxpr(lambda x: h(h(x)))(1.0)) == (
        "let lambda = { lambda ; a:f32[]. let\n"
        "    b:f32[] = jit[name=sin jaxpr=sin] a\n"
        "    c:f32[] = jit[name=sin jaxpr=sin] b\n"
        "  in (c,) } in\n"
        "let sin = { lambda ; d:f32[]. let e:f32[] = sin d in (e,) } in\n"
        "{ lambda ; f:f32[]. let\n"
        "    g:f32[] = jit[name=<lambda> jaxpr=lambda] f\n"
        "    h:f32[] = jit[name=<lambda> jaxpr=lambda] g\n"
        "  in (h,) }"
    )
    twice = str(polyax.make_jaxpr(polyax.grad(h))(1.0))
    assert twice.startswith("let sin = ") and "let sin1 = " in twice
    both = _squeezed(polyax.make_jaxpr(lambda p, x: lax.cond(p, g, g, x))(True, 1.0))
    assert "cond[branches=(jaxpr jaxpr)]" in both


def test_results_that_nobody_reads_have_no_name():
    closed = polyax.make_jaxpr(lambda x: (lax.sin(x), lax.cos(x))[1])(1.0)
    assert str(closed) == "{ lambda ; a:f32[]. let _:f32[] = sin a; b:f32[] = cos a in (b,) }"
    assert "_ = sin a" in closed.pretty_print(print_shapes=False)


def test_checker_accepts_what_tracing_makes():
    closed = polyax.make_jaxpr(polyax.grad(lambda x: lax.reduce_sum(lax.sin(x), (0,))))(X)
    check_jaxpr(closed.jaxpr)


def test_checker_names_both_types():
    good = polyax.make_jaxpr(lambda x: lax.sin(x))(X).jaxpr
    eqn = good.eqns[0]
    wrong = Var(ShapedArray((4,), np.dtype("float32")))
    bad = Jaxpr([], good.invars, [wrong], [eqn.replace(outvars=[wrong])])
    with pytest.raises(JaxprTypeError, match=r"'b' inconsistently typed as f32\[3\] for let-binder of type") as e:
        check_jaxpr(bad)
    assert "in equation:\n\nb:f32[4] = sin a\n\nfrom source: " in str(e.value)
    assert str(e.value).endswith("while checking jaxpr:\n\n{ lambda ; a:f32[3]. let b:f32[4] = sin a in (b,) }")


def test_checker_finds_unbound_and_doubly_bound_variables():
    good = polyax.make_jaxpr(lambda x: lax.sin(x))(X).jaxpr
    eqn = good.eqns[0]
    with pytest.raises(JaxprTypeError, match="Variable '.+' not defined\n\nin equation:"):
        check_jaxpr(Jaxpr([], [], good.outvars, [eqn]))
    with pytest.raises(JaxprTypeError, match="Variable 'b' already bound"):
        check_jaxpr(Jaxpr([], good.invars, good.outvars, [eqn, eqn]))


def test_the_checker_shows_little_of_long_programs():
    def f(x):
        for _ in range(300):
            x = lax.sin(x)
        return x

    jaxpr = polyax.make_jaxpr(f)(X).jaxpr
    jaxpr.eqns[150].outvars[0].aval = ShapedArray((4,), np.dtype("float32"))
    with pytest.raises(JaxprTypeError) as e:
        check_jaxpr(jaxpr)
    assert str(e.value).count("\n") < 40 and str(e.value).count("...") == 2


def test_dead_code_goes_and_used_inputs_are_told():
    def f(x, y):
        lax.sin(y)
        return lax.cos(x)

    jaxpr = polyax.make_jaxpr(f)(X, X).jaxpr
    smaller, used = eliminate_dead_code(jaxpr)
    assert [e.primitive.name for e in smaller.eqns] == ["cos"]
    assert used == [True, False]


def test_dead_results_of_inner_programs_go_too():
    both = polyax.jit(lambda x: (lax.sin(x), lax.cos(x)))
    jaxpr = polyax.make_jaxpr(lambda x: both(x)[0])(X).jaxpr
    smaller, _ = eliminate_dead_code(jaxpr)
    assert [e.primitive.name for e in walk_eqns(smaller)] == ["jit", "sin"]


def test_evaluation_computes():
    closed = polyax.make_jaxpr(lambda x: lax.mul(lax.sin(x), 2.0))(X)
    (out,) = eval_jaxpr(closed.jaxpr, closed.consts, [X])
    np.testing.assert_allclose(np.asarray(out), 2 * np.sin(X), rtol=1e-6)


def test_each_variable_dies_once():
    jaxpr = polyax.make_jaxpr(lambda x: lax.mul(lax.sin(x), lax.sin(x)))(X).jaxpr
    dying = [v for vs in last_uses(jaxpr).values() for v in vs]
    assert len(dying) == len(set(dying)) == 3


def test_closed_jaxpr_shows_types():
    closed = polyax.make_jaxpr(lambda x: lax.reduce_sum(x, (0,)))(X)
    assert isinstance(closed, ClosedJaxpr)
    assert [str(a) for a in closed.in_avals + closed.out_avals] == ["float32[3]", "float32[]"]


def test_types_take_dtypes_and_shapes_in_any_spelling():
    wanted = ShapedArray((2,), np.dtype("float32"))
    assert ShapedArray([2], "float32") == wanted == ShapedArray((2,), np.float32)
    assert hash(ShapedArray([2], "float32")) == hash(wanted) and repr(ShapedArray([2], "f4")) == f"{wanted!r}"


def test_effects_of_ones_own():
    class Counting(Effect):
        pass

    assert repr(Counting()) == "Counting" and Counting() == Counting() and not Counting().ordered


def test_text_with_lines_and_without_types() -> None:
    def f(x):
        with polyax.named_scope("inside"):
            return lax.sin(x) * 2.0

    program = polyax.make_jaxpr(f)(1.0)
    assert program.pretty_print() == str(program) == program.jaxpr.pretty_print(use_color=False)
    name = r"\(test_text_with_lines_and_without_types.<locals>.f\)"
    text = program.pretty_print(source_info=True)
    assert re.fullmatch(rf"{{.* }} # .*test_jaxpr\.py:\d+:19 {name}\n {{77}}# .*\.py:\d+:19 {name}", text)
    line = "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }"
    assert program.pretty_print(name_stack=True) == f"{line} # [inside]\n{' ' * len(line)} # [inside]"
    assert "b = sin a" in program.pretty_print(print_shapes=False)
    assert [str(e) for e in program.eqns] == ["a:f32[] = sin b", "a:f32[] = mul b 2.0:f32[]"]
    with pytest.raises(ValueError, match="Unknown keyword arguments: {'foo': 1}"):
        program.jaxpr.replace(foo=1)


def test_digits_of_numbers_tell_where_they_come_from() -> None:
    """Python's are written as they are given where they stay weakly typed, as in JAX."""
    of_one = str(polyax.make_jaxpr(lambda x: (x * 0.1, lax.cond(x > 1e-8, lambda: 0.3, lambda: -np.inf)))(1.0))
    for text in ("mul a 0.1:f32[]", "gt a 1e-08:f32[]", "in (0.3:f32[],)", "in (-inf:f32[],)"):
        assert text in of_one
    of_three = str(polyax.make_jaxpr(lambda x: (x * 0.1, lax.mul(x, 2.0), x * np.pi))(np.ones(3, np.float32)))
    for text in ("mul a 0.10000000149011612:f32[]", "mul a 2.0:f32[]", "mul a 3.1415927410125732:f32[]"):
        assert text in of_three
    assert "mul a 2.0:bf16[]" in str(polyax.make_jaxpr(lambda x: x * 2)(polyax.numpy.ones(3, "bfloat16")))
