"""``custom_vjp``: rules that differ from the true derivative, so that a test sees which of them was used."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.custom_derivatives import SymbolicZero, custom_vjp_primal_tree_values, zero_from_primal
from polyax.errors import UnexpectedTracerError
from polyax.interpreters.partial_eval import dce_jaxpr

X = np.arange(1.0, 4.0, dtype=np.float32)


def scaled_sine(**options: Any) -> Any:
    """sin(x) y, whose derivative by x is told to be twice what it is."""

    @polyax.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    def fwd(x: Any, y: Any) -> Any:
        return f(x, y), {"x": x, "y": [y, None]}

    def bwd(residuals: Any, ct: Any) -> Any:
        x, (y, _) = residuals["x"], residuals["y"]
        return 2 * jnp.cos(x) * y * ct, jnp.sin(x) * ct

    f.defvjp(fwd, bwd, **options)
    return f


def by_x(x: Any, y: Any) -> Any:
    return 2 * np.cos(x) * y


def close(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-5)


TRANSFORMED = {
    "grad": lambda f: (polyax.grad(f)(1.0, 2.0), by_x(1, 2)),
    "jit of grad": lambda f: (polyax.jit(polyax.grad(f))(1.0, 2.0), by_x(1, 2)),
    "grad of jit": lambda f: (polyax.grad(polyax.jit(f), 1)(1.0, 2.0), np.sin(1)),
    "vmap of grad": lambda f: (polyax.vmap(polyax.grad(f), (0, None))(X, 2.0), by_x(X, 2)),
    "unmapped argument": lambda f: (
        polyax.grad(lambda y: polyax.vmap(f, (0, None))(X, y).sum())(2.0),
        np.sin(X).sum(),
    ),
    "mapped twice": lambda f: (
        polyax.vmap(polyax.vmap(polyax.grad(f), (0, None)), (None, 0))(X, X),
        by_x(X[None], X[:, None]),
    ),
    "second order": lambda f: (polyax.grad(polyax.grad(f))(1.0, 2.0), -4 * np.sin(1)),
    "jacrev of vmap": lambda f: (
        polyax.jacrev(lambda x: polyax.vmap(f, (0, None))(x, 2.0))(X),
        np.diag(by_x(X, 2)),
    ),
    "cond": lambda f: (polyax.grad(lambda x: lax.cond(x > 0, lambda x: f(x, 2.0), lambda x: x, x))(1.0), by_x(1, 2)),
    "mapped cond": lambda f: (
        polyax.vmap(polyax.grad(lambda x: lax.cond(x > 1.5, lambda x: f(x, 2.0), lambda x: x, x)))(X),
        np.where(X > 1.5, by_x(X, 2), 1),
    ),
    "checkpoint": lambda f: (polyax.grad(polyax.checkpoint(f))(1.0, 2.0), by_x(1, 2)),
    "jitted checkpoint": lambda f: (polyax.jit(polyax.grad(polyax.checkpoint(f)))(1.0, 2.0), by_x(1, 2)),
    "named axis": lambda f: (
        polyax.vmap(polyax.grad(lambda x: lax.pmean(f(x, 2.0), "i")), axis_name="i")(X),
        by_x(X, 2),
    ),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_the_rules_are_used_in(name: str) -> None:
    close(*TRANSFORMED[name](scaled_sine()))


@pytest.mark.parametrize("loop", ["scan", "fori_loop"])
def test_loops_run_the_rules_in_each_step(loop: str) -> None:
    f = scaled_sine()
    loops = {
        "scan": lambda x: lax.scan(lambda c, y: (f(c, y), None), x, X)[0],
        "fori_loop": lambda x: lax.fori_loop(0, 3, lambda n, c: f(c, jnp.asarray(X)[n]), x),
    }
    wanted, c = 1.0, 1.0
    for y in X:
        wanted, c = wanted * by_x(c, y), np.sin(c) * y
    close(polyax.grad(loops[loop])(1.0), wanted)


FORWARD = {
    "jvp": lambda f: polyax.jvp(f, (1.0, 2.0), (1.0, 1.0)),
    "jvp of jit": lambda f: polyax.jvp(polyax.jit(f), (1.0, 2.0), (1.0, 1.0)),
    "jit of jvp": lambda f: polyax.jit(lambda x: polyax.jvp(f, (x, x), (x, x)))(1.0),
    "linearize of jit": lambda f: polyax.linearize(polyax.jit(f), 1.0, 2.0)[1](1.0, 1.0),
    "jacfwd of grad": lambda f: polyax.jacfwd(polyax.grad(f))(1.0, 2.0),
    "jacrev of jacfwd": lambda f: polyax.jacrev(polyax.jacfwd(f))(1.0, 2.0),
    "jvp of linear": lambda f: polyax.jvp(polyax.linearize(f, 1.0, 2.0)[1], (1.0, 1.0), (1.0, 1.0)),
    "while": lambda f: polyax.jvp(lambda x: lax.while_loop(lambda c: c < 1, lambda c: f(c, x) + 9, x), (0.5,), (1.0,)),
}


@pytest.mark.parametrize("name", FORWARD)
def test_there_is_no_forward_mode(name: str) -> None:
    with pytest.raises(TypeError, match="can't apply forward-mode autodiff .jvp. to a custom_vjp function: f"):
        FORWARD[name](scaled_sine())


def test_compiled_forward_mode_names_the_line() -> None:
    with pytest.raises(TypeError, match=r"It was called at .*test_custom_vjp\.py:\d+"):
        polyax.jvp(polyax.jit(scaled_sine()), (1.0, 2.0), (1.0, 1.0))


def test_symbolic_zeros() -> None:
    perturbed, zeros = [], []
    f = polyax.custom_vjp(lambda x, y: (x * y, x))

    def fwd(x: Any, y: Any) -> Any:
        perturbed.append((x.perturbed, y.perturbed))
        x, y = custom_vjp_primal_tree_values((x, y))
        return (x * y, x), y

    def bwd(y: Any, cts: Any) -> Any:
        zeros.append([type(ct) is SymbolicZero for ct in cts])
        return 3 * cts[0] * y, None

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    close(polyax.grad(lambda x: f(x, 2.0)[0])(1.0), 6)
    close(polyax.vmap(polyax.grad(lambda x: f(x, 2.0)[0]))(X), [6, 6, 6])
    assert set(perturbed) == {(True, False)}
    assert zeros == [[False, True]] * 2


@pytest.mark.parametrize("none", [None, 0, np.zeros((), polyax.dtypes.float0)])
def test_integer_arguments_have_no_cotangent(none: Any) -> None:
    f = polyax.custom_vjp(lambda n, x: n * x)
    f.defvjp(lambda n, x: (n * x, n), lambda n, ct: (none, 10 * ct))
    assert polyax.grad(f, 1)(3, 2.0) == 10.0
    assert polyax.grad(polyax.jit(f), 1)(3, 2.0) == 10.0


def test_integer_results_have_float0_cotangents() -> None:
    f = polyax.custom_vjp(lambda x: (x, 3))
    f.defvjp(lambda x: ((x, 3), None), lambda _, cts: (cts[0] * (2 if cts[1].dtype == polyax.dtypes.float0 else 1),))
    assert polyax.grad(lambda x: f(x)[0])(1.0) == 2.0


def test_nondiff_arguments_by_position_and_by_name() -> None:
    f = polyax.custom_vjp(lambda a, b, x: a(x) + b(x), nondiff_argnums=(0,), nondiff_argnames=("b",))
    f.defvjp(lambda a, b, x: (a(x) + b(x), x), lambda a, b, x, ct: (b(x) * ct,))
    double, triple = (lambda x: 2 * x), (lambda x: 3 * x)
    assert f(double, triple, 1.0) == f(double, b=triple, x=1.0) == 5
    assert polyax.grad(lambda x: f(double, triple, x))(2.0) == 6


def test_nondiff_arguments_come_first_in_order() -> None:
    f = polyax.custom_vjp(lambda a, x, b: a * x * b, nondiff_argnums=(2, 0))
    f.defvjp(lambda a, x, b: (a * x * b, None), lambda a, b, _, ct: (100.0 * a + b,))
    assert polyax.grad(f, 1)(3.0, 2.0, 4.0) == 304.0
    with pytest.raises(UnexpectedTracerError, match="position indicated by nondiff_argnums as non-differentiable"):
        polyax.jit(f)(3.0, 2.0, 4.0)


def test_methods_and_defaults() -> None:
    class Scale:
        k = 3.0

        @partial(polyax.custom_vjp, nondiff_argnums=(0,))
        def times(self, x: Any, y: Any = 2.0) -> Any:
            return self.k * x * y

        times.defvjp(lambda self, x, y: (self.k * x * y, None), lambda self, _, ct: (100 * self.k * ct, None))

    assert polyax.grad(Scale().times)(1.0) == 300.0
    assert Scale().times(1.0, y=4.0) == 12.0


def test_python_control_flow_on_concrete_values() -> None:
    @polyax.custom_vjp
    def f(x: Any) -> Any:
        return jnp.sin(x) if x > 0 else jnp.cos(x)

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (2 * ct if x > 0 else 3 * ct,))
    assert (polyax.grad(f)(1.0), polyax.grad(f)(-1.0)) == (2.0, 3.0)


def test_collectives_in_rules() -> None:
    f = polyax.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, ct: (lax.psum(ct, "i"),))
    close(polyax.grad(lambda x: (polyax.vmap(f, axis_name="i")(x) * X).sum())(X), [6, 6, 6])


def test_mapped_values_may_be_closed_over() -> None:
    def slope(y: Any, x: Any) -> Any:
        f = polyax.custom_vjp(lambda x: x * y)
        f.defvjp(lambda x: (f(x), y), lambda y, ct: (2 * ct * y,))
        return polyax.grad(f)(x)

    close(polyax.vmap(slope, (0, None))(X, 5.0), 2 * X)


BAD = {
    "not a tuple": (TypeError, lambda r, ct: ct, r"but got bwd output structure PyTreeDef\(\*\) for primal input"),
    "too long": (TypeError, lambda r, ct: (ct, ct), r"a tuple of length equal to the number of arguments"),
    "structure": (TypeError, lambda r, ct: ({"a": ct},), "must produce an output with the same container"),
    "shape": (ValueError, lambda r, ct: (ct * X,), r"type float32\[3\] .* float32\[\], so the shapes do not match"),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_cotangents_say_what_they_are(name: str) -> None:
    error, bwd, text = BAD[name]
    f = polyax.custom_vjp(lambda x: x * 2.0)
    f.defvjp(lambda x: (x * 2.0, None), bwd)
    with pytest.raises(error, match=text):
        polyax.grad(f)(1.0)


def test_symbolic_zeros_of_another_shape() -> None:
    f = polyax.custom_vjp(lambda x, y: (x, y))
    f.defvjp(lambda x, y: ((x.value, y.value), None), lambda _, cts: (None, cts[0]), symbolic_zeros=True)
    with pytest.raises(
        ValueError, match=r"output\[1\] a SymbolicZero of type float32\[3\].*just returning a None here"
    ):
        polyax.grad(lambda x, y: f(x, y)[1], (0, 1))(X, 1.0)


def test_a_cotangent_for_a_whole_argument() -> None:
    f = polyax.custom_vjp(lambda pair, x: pair["a"] * pair["b"][0] * x)
    f.defvjp(lambda pair, x: (0.0, None), lambda _, ct: (7 * ct, 8 * ct))
    assert polyax.grad(f, (0, 1))({"a": 1.0, "b": (2.0,)}, 3.0) == ({"a": 7.0, "b": (7.0,)}, 8.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
def test_cotangents_keep_the_dtype_that_rules_give_them(dtype: str) -> None:
    f = polyax.custom_vjp(lambda x: x * 2.0)
    f.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (ct.astype(dtype) * 3,))
    made = polyax.grad(f)(np.float32(1))
    assert (str(made.dtype), float(made)) == (dtype, 3)
    assert polyax.grad(lambda x: f(x.sum()))(np.float32([1, 2])).dtype == dtype


def test_loops_and_branches_refuse_cotangents_of_other_dtypes() -> None:
    f = polyax.custom_vjp(lambda x: x * 2.0)
    f.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (ct.astype(jnp.bfloat16) * 3,))
    loop = lambda x: lax.scan(lambda c, y: (f(c) + y, None), 0.0, x)[0]
    branch = lambda x: lax.cond(x[0] > 5, lambda x: f(x.sum()), lambda x: x.sum(), x)
    for fun in (loop, branch):
        with pytest.raises(TypeError, match=r"must have equal types, but they differ: .*bfloat16"):
            polyax.grad(fun)(np.float32([1, 2]))


def test_a_cotangent_without_a_value_stays_one() -> None:
    f = polyax.custom_vjp(lambda x: x * 2.0)
    f.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (np.zeros((), polyax.dtypes.float0),))
    assert polyax.grad(f)(np.float32(1)).dtype == polyax.dtypes.float0
    with pytest.raises(TypeError, match="Called add with a float0"):
        polyax.grad(lambda x: f(x) + f(x))(1.0)


def test_wrong_forward_rules_say_what_they_gave() -> None:
    f = polyax.custom_vjp(lambda x: x * 2.0)
    f.defvjp(lambda x: x, lambda r, ct: (ct,))
    with pytest.raises(TypeError, match="fwd rule <lambda> for function <lambda> must produce a pair"):
        polyax.grad(f)(1.0)
    f.defvjp(lambda x: ((x,), None), lambda r, ct: ct)
    told = r"first element had container/pytree structure:\n    \(float32\[\],\)\nwhile .*structure:\n    float32\[\]\."
    with pytest.raises(TypeError, match=told):
        polyax.grad(polyax.jit(f))(1.0)
    with pytest.raises(AttributeError, match="No VJP defined for custom_vjp function <lambda> using defvjp"):
        polyax.custom_vjp(lambda x: x)(1.0)


def test_optimize_remat_leaves_out_the_forward_rule() -> None:
    """``fwd`` computes its result by exp, which the function doesn't need: without residuals it isn't run."""
    f = polyax.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (jnp.sin(x) + 0 * jnp.exp(x), x), lambda x, ct: (3 * ct * jnp.cos(x),), optimize_remat=True)
    g = polyax.checkpoint(lambda x: jnp.sin(f(x)))
    jaxpr = polyax.make_jaxpr(polyax.grad(g))(1.0)
    assert [e.primitive.name for e in jaxpr.eqns] == ["remat_opt", "sin", "remat2"]
    assert "exp" not in str(jaxpr.eqns[0])
    for grad in (polyax.grad(g), polyax.jit(polyax.grad(g))):
        close(grad(1.0), 3 * np.cos(1) * np.cos(np.sin(1)))
    close(polyax.vmap(polyax.grad(g))(X), 3 * np.cos(X) * np.cos(np.sin(X)))


def test_zero_from_primal() -> None:
    assert zero_from_primal(3).dtype == polyax.dtypes.float0
    assert zero_from_primal({"a": X})["a"].tolist() == [0, 0, 0]
    assert zero_from_primal(X, symbolic_zeros=True).shape == (3,)
    with pytest.raises(TypeError, match="unexpected leaf type <class 'int'>"):
        custom_vjp_primal_tree_values([3])


def test_it_prints_as_in_jax() -> None:
    text = str(polyax.make_jaxpr(scaled_sine())(1.0, 2.0))
    assert [line.strip().split("=")[0] for line in text.splitlines()[2:4]] == ["name", "bwd"]
    assert "fwd=fwd" in text


@pytest.mark.parametrize("wrap", [lambda f: f, polyax.jit, lambda f: lambda x: polyax.vmap(f)(jnp.stack([x, x]))[0]])
def test_python_scalars_among_residuals_stay_so(wrap: Any) -> None:
    """Rules branch on them."""

    @polyax.custom_vjp
    def f(x: Any) -> Any:
        return 2 * x

    def bwd(residuals: Any, ct: Any) -> Any:
        double, (x, times) = residuals
        assert type(double) is bool and type(times) is int
        return ((ct * x * times if double else ct),)

    f.defvjp(lambda x: (2 * x, (True, (x, 5))), bwd)
    assert wrap(polyax.grad(f))(jnp.float32(3)) == 15


def test_a_numpy_scalar_as_cotangent_becomes_an_array() -> None:
    @polyax.custom_vjp
    def f(x: Any) -> Any:
        return x

    f.defvjp(lambda x: (x, ()), lambda _, ct: (np.float32(3),))
    assert isinstance(polyax.grad(f)(1.0), polyax.Array)


@pytest.mark.parametrize("number", [2, 2.5, np.float32(2), np.array(3, np.int8)], ids=repr)
def test_rules_get_numbers_that_programs_have_in_place_as_arrays(number: Any) -> None:
    told: list[Any] = []

    @polyax.custom_vjp
    def f(n: Any, x: Any) -> Any:
        return n * x

    def fwd(n: Any, x: Any) -> Any:
        told.append((type(n.aval), n.shape, n.dtype, n.weak_type))
        return f(n, x), (n, x)

    def bwd(residuals: Any, ct: Any) -> Any:
        told.append(residuals[0].dtype)
        return None, residuals[0] * ct

    f.defvjp(fwd, bwd)
    assert polyax.grad(polyax.jit(lambda x: f(number, x)))(1.0) == number
    aval = polyax.typeof(jnp.asarray(number))
    assert told == [(type(aval), (), aval.dtype, isinstance(number, (int, float))), aval.dtype]
    mapped = polyax.vmap(polyax.grad(polyax.jit(lambda x: f(number, x))))(X)
    np.testing.assert_array_equal(mapped, [number] * 3)
    assert told[:2] == told[2:]


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("used", [(True, False, False), (False, True, True)])
def test_results_that_nobody_uses_are_left_out(used, symbolic):
    given: list[Any] = []

    @polyax.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x), jnp.cos(y), x * y

    def fwd(x: Any, y: Any) -> Any:
        return f(*(custom_vjp_primal_tree_values((x, y)) if symbolic else (x, y))), None

    def bwd(_: Any, cts: Any) -> Any:
        given[:] = cts
        a, b, c = (0.0 if isinstance(ct, SymbolicZero) else ct for ct in cts)
        return a + 100 * c, 10 * b + 1000 * c

    f.defvjp(fwd, bwd, symbolic_zeros=symbolic)
    closed = polyax.make_jaxpr(f)(1.0, 2.0)
    smaller, needed = dce_jaxpr(closed.jaxpr, used)
    (call,) = smaller.eqns
    assert len(call.outvars) == len(call.params["call_jaxpr"].jaxpr.eqns) == sum(used) and needed == [True, True]

    def total(x: Any, y: Any) -> Any:
        return sum(polyax.core.eval_jaxpr(smaller, closed.consts, x, y))

    wanted = (100.0 * used[2] + used[0], 1000.0 * used[2] + 10 * used[1])
    close(polyax.grad(total, (0, 1))(1.0, 2.0), wanted)
    assert [isinstance(ct, SymbolicZero) for ct in given] == [symbolic and not u for u in used]
    close(polyax.vmap(polyax.grad(total))(X, X), np.full(3, wanted[0]))
    close(polyax.grad(lambda x: polyax.vmap(total)(x, x).sum())(X), np.full(3, sum(wanted)))


def test_numbers_of_numpy_have_the_types_of_arrays():
    """JAX has no arrays of 64 bits either, unless they are enabled: what is called at once sees none."""
    seen: list[Any] = []

    @polyax.custom_vjp
    def f(x: Any, y: Any, n: Any, z: Any = 1.0) -> Any:
        seen.extend(getattr(v, "dtype", None) for v in (x, y, n, z))
        return x * y

    given = np.ones(2), np.float64(2), np.int64(3), 1.0
    f.defvjp(lambda *args: (f(*args), None), lambda _, ct: (ct, None, None, None))
    f(*given)
    assert seen == [np.float32, np.float32, np.int32, None]
    polyax.vjp(f, *given)
    assert seen[4:] == seen[:4]


def test_zeros_given_to_rules_are_arrays():
    """And weakly typed where the results are, so that the derivatives that are made of them are."""
    seen: list[Any] = []

    @polyax.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x), jnp.cos(y)

    def bwd(_: Any, cts: Any) -> Any:
        seen[:] = cts
        return cts

    f.defvjp(lambda x, y: (f(x, y), None), bwd)
    for y, weak in ((3.0, True), (jnp.float32(3), False)):
        found = polyax.grad(lambda x, y: f(x, y)[0], 1)(2.0, y)
        assert isinstance(seen[1], polyax.Array) and found == seen[1] == 0 and found.weak_type == weak


def test_shapes_of_cotangents_are_not_looked_at_if_so_wished() -> None:
    f = polyax.custom_vjp(lambda x, y: x)
    f.defvjp(lambda x, y: (x, None), lambda _, g: (g, jnp.zeros(3)))
    backwards = polyax.grad(lambda x, y: f(x, y).sum(), 1)
    with pytest.raises(ValueError, match=r"at output\[1\] .* type float32\[3\] .* input of type float32\[4\]"):
        backwards(jnp.ones(3), jnp.ones(4))
    with polyax.config.override(disable_bwd_checks=True, checks=False):
        assert backwards(jnp.ones(3), jnp.ones(4)).shape == (3,)
