"""What can't be done with references: JAX's error classes and texts."""

from __future__ import annotations

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax
from polyax.sharding import AxisType

RETURNED = r"function .* at .*test_errors.py:\d+ traced for {} returned a mutable array reference of type Ref{{{}}}"
TWICE = "only one reference to a mutable array may be passed as an argument to a function, but when tracing .* for {}"
BOTH = r"for {}, a mutable array reference of type Ref{{float32\[\]}} was both closed over and passed as the argument y"


@pytest.fixture
def r():
    return jax.new_ref(0.0)


def test_returned_from_jit(r):
    with pytest.raises(ValueError, match=RETURNED.format("jit", r"int32\[3\]") + r"(.|\n)*was created on line .*py:"):
        jax.jit(lambda: jax.new_ref(jnp.arange(3)))()
    with pytest.raises(ValueError, match=r"cannot be returned.\n\n.*was passed in as the argument x_ref"):
        jax.jit(lambda x_ref: x_ref)(r)
    for f, args in ((lambda: {"hi": r}, ()), (lambda x: {"hi": x}, (r,))):
        with pytest.raises(ValueError, match=r"at output tree path result\['hi'\], but"):
            jax.jit(f)(*args)
    with pytest.raises(ValueError, match=RETURNED.format("jit", r"float32\[\]")):
        jax.make_jaxpr(lambda: r)()


def test_returned_from_constructs(r):
    with pytest.raises(ValueError, match=RETURNED.format("scan", r"int32\[\]") + r" at output tree path result\[0\]"):
        lax.scan(lambda c, x: (jax.new_ref(c), x), 0, jnp.arange(3))
    with pytest.raises(ValueError, match=RETURNED.format("scan", r"float32\[\]")):
        lax.scan(lambda c, _: (c, None), r, None, length=1)
    with pytest.raises(ValueError, match=RETURNED.format("cond", r"float32\[\]")):
        lax.cond(True, lambda: jax.new_ref(1.0), lambda: jax.new_ref(2.0))
    with pytest.raises(ValueError, match=RETURNED.format("while_body", r"float32\[\]")):
        lax.while_loop(lambda x: True, lambda x: r, 0.0)
    with pytest.raises(ValueError, match=RETURNED.format("checkpoint / remat", r"float32\[\]")):
        jax.checkpoint(lambda a: a)(r)


def test_passed_twice(r):
    for _ in range(2):
        with pytest.raises(ValueError, match=TWICE.format("jit") + r".*Ref{float32\[\]} appeared at both x and y\."):
            jax.jit(lambda x, y: x[...] + y[...])(r, r)
    with pytest.raises(ValueError, match=TWICE.format("scan") + r".* appeared at both c\[0\] and c\[1\]"):
        lax.scan(lambda c, _: (None, None), (r, r), None, length=1)
    with pytest.raises(ValueError, match=TWICE.format("cond") + r".* appeared at both x1 and x2"):
        lax.cond(True, lambda x1, x2: ..., lambda x1, x2: ..., r, r)
    with pytest.raises(ValueError, match=TWICE.format("vmap")):
        jax.vmap(lambda x, y: None)(*[jax.new_ref(jnp.zeros(2))] * 2)
    with pytest.raises(ValueError, match=TWICE.format("jit")):
        jax.jit(lambda q: jax.jit(lambda x, y: x[...])(q, q))(r)


def test_passed_twice_to_a_function_that_is_compiled(r):
    f = jax.jit(lambda x, y: x[...] + y[...])
    f(r, jax.new_ref(1.0))
    with pytest.raises(ValueError, match="appeared at both x and y"):
        f(r, r)


def test_closed_over_and_passed(r):
    f = jax.jit(lambda y: r[...] + y[...])
    f(jax.new_ref(1.0))
    for _ in range(2):
        with pytest.raises(ValueError, match=BOTH.format("jit")):
            f(r)
    with pytest.raises(ValueError, match=BOTH.format("scan")):
        lax.scan(lambda y, _: (r[...] + y[...], None), r, None, length=1)
    with pytest.raises(ValueError, match=BOTH.format("cond")):
        lax.cond(True, lambda y: r[...] + y[...], lambda y: r[...] + y[...], r)


@pytest.mark.parametrize("jitted", [False, True])
def test_functions_with_rules_of_their_own(r, jitted):
    wrap = jax.jit if jitted else lambda f: f

    @jax.custom_vjp
    def returns(ref):
        return ref

    returns.defvjp(lambda ref: ..., lambda *_: ...)
    with pytest.raises(ValueError, match="custom_vjp primal function returns returned a mutable array reference"):
        wrap(returns)(r)

    @jax.custom_vjp
    def two(x_ref, y_ref): ...

    two.defvjp(lambda x, y: (None, None), lambda _, g: (None, None))
    with pytest.raises(ValueError, match="appeared at both x_ref and y_ref"):
        wrap(two)(r, r)

    @jax.custom_vjp
    def keeps(x):
        return x

    keeps.defvjp(lambda x: (x, r), lambda *_: ...)
    with pytest.raises(ValueError, match=r"custom_vjp fwd function <lambda> returned .* that was not an argument"):
        jax.grad(wrap(keeps))(1.0)


def test_arithmetic(r):
    for f in (lax.sin, jnp.sin, jax.jit(lax.sin), jax.jit(lambda x: x + 1)):
        with pytest.raises(
            ValueError, match=r"Attempting to pass a Ref Ref{float32\[\]} to a primitive: (sin|add) -- did"
        ):
            f(r)
    for name in ("sum", "asarray", "reshape"):
        args = (r, ()) if name == "reshape" else (r,)
        with pytest.raises(TypeError, match="requires ndarray or scalar arguments, got <class '.*Ref'> at position 0"):
            getattr(jnp, name)(*args)
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+: 'Ref' and 'int'"):
        r + 1


def test_mapped_values_in_references_from_outside(r):
    with pytest.raises(
        Exception, match=r"a set/swap operation with vmapped value on an unbatched array reference of type"
    ):
        jax.vmap(lambda x: r.__setitem__(..., x))(jnp.arange(3.0))
    with pytest.raises(Exception, match="an addupdate operation with vmapped value on an unbatched"):
        jax.vmap(lambda x: jax.ref.addupdate(r, ..., x))(jnp.arange(3.0))


def test_differentiated_values_in_references_from_outside(r):
    with pytest.raises(
        Exception, match=r"with a differentiated value on a non-differentiated array reference of type Ref"
    ):
        jax.grad(lambda x: [r.__setitem__(..., x), x][1])(1.0)
    with pytest.raises(Exception, match="an addupdate operation with a differentiated value on a non-differ"):
        jax.grad(lambda x: [jax.ref.addupdate(r, ..., x), x][1])(1.0)
    assert float(r[...]) == 0.0


def test_gradients_with_respect_to_references(r):
    with pytest.raises(ValueError, match=r"Expected cotangent type Ref{float32\[\]} but got float32\[\]"):
        jax.grad(lambda x: x[...])(r)
    with pytest.raises(TypeError, match=r"scalar-output functions. Output had abstract value Ref{float32\[\]}"):
        jax.grad(lambda x: r)(1.0)
    with pytest.raises(ValueError, match="must be accumulated into a ref: .* `with_refs`"):
        jax.vjp(lambda x: x[...] * 2, r)[1](1.0)


def _slice_of_one(x):
    jax.new_ref(x)[0:2] = 8.0


def test_wrong_values(r):
    many, ints = jax.new_ref(jnp.zeros(3)), jax.new_ref(jnp.zeros(3, jnp.int32))
    with pytest.raises(
        ValueError, match=r"Invalid shape for `swap`. Ref shape: \(3,\). Expected shape: \(3,\). Value shape: \(4,"
    ):
        many[...] = jnp.zeros(4)
    with pytest.raises(ValueError, match=r"Expected shape: \(\). Value shape: \(2,\)"):
        many[0] = jnp.zeros(2)
    with pytest.raises(ValueError, match=r"Ref shape: \(3,\). Expected shape: \(2,\). Value shape: \(\)"):
        jax.vmap(_slice_of_one)(jnp.zeros((2, 3)))
    with pytest.raises(ValueError, match="Invalid dtype for `swap`. Ref dtype: float32. Value dtype: int32"):
        many[...] = jnp.ones(3, jnp.int32)
    with pytest.raises(ValueError, match="Invalid dtype for `swap`. Ref dtype: int32. Value dtype: float32"):
        ints[0] = 3.5
    with pytest.raises(ValueError, match="Invalid dtype for `addupdate`. Ref dtype: int32. Value shape: float32"):
        jax.ref.addupdate(ints, 0, jnp.float32(1.0))
    with pytest.raises(ValueError, match="can't hold a reference"):
        r[...] = many
    for make in (jax.new_ref, jax.jit(lambda q: jax.new_ref(q)[...])):
        with pytest.raises(ValueError, match="a reference can't hold a reference"):
            make(r)
    with pytest.raises(TypeError, match="Error interpreting argument to new_ref as a JAX value. .* <class 'str'>"):
        jax.new_ref("a")


def test_what_is_no_reference():
    for name, args in (("get", (0,)), ("set", (0, 1.0)), ("addupdate", (0, 1.0))):
        with pytest.raises(ValueError, match=rf"Can only call `ref_{name}` on a `Ref`: \[0. 0. 0.\]"):
            getattr(jax.ref, name)(jnp.zeros(3), *args)
    assert np.asarray(jax.freeze(jnp.ones(2))).tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="does not support item assignment. JAX arrays are immutable"):
        jax.jit(lambda x: x.__setitem__(0, 1.0))(jnp.zeros(3))


def test_after_its_end():
    def f(x):
        ref = jax.new_ref(x)
        jax.freeze(ref)
        return ref[...]

    def in_a_loop(x):
        ref = jax.new_ref(x)
        jax.freeze(ref)
        return lax.scan(lambda c, _: (c + ref[...], None), x, None, length=2)

    for g in (f, in_a_loop):
        with pytest.raises(ValueError, match=r"`get` must be called on `Ref` types: ~float32\[\]"):
            jax.jit(g)(1.0)


def test_constructs_that_know_no_references(r):
    def solved(b):
        return lax.custom_linear_solve(lambda x: x * (r[...] + 2.0), b, lambda mul, b: b / 2.0)

    for f in (solved, jax.jit(solved)):
        with pytest.raises(NotImplementedError, match="can't take a reference, nor close over one: .* `ref"):
            f(jnp.ones(1))


def test_devices_that_share_a_reference(r):
    mesh = jax.make_mesh((1,), ("i",), (AxisType.Auto,))
    for wrap in (jax.jit, lambda f: f):
        f = jax.shard_map(
            lambda x: [r.__setitem__(..., x.sum()), x][1], mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P("i")
        )
        with pytest.raises(
            NotImplementedError, match=r"varies along \['i'\] can't index or be written to a reference that"
        ):
            wrap(f)(jnp.zeros(1))
    with pytest.raises(
        NotImplementedError, match=r"pmap\(<lambda>\) can't take references: pass them to vmap or shard_map"
    ):
        jax.pmap(lambda q: q[...])(jax.new_ref(jnp.zeros((1, 2))))


def test_rules_that_a_loop_would_lose(r):
    @jax.custom_vjp
    def stash(ref, x):
        return x

    stash.defvjp(lambda ref, x: (x, ref), lambda ref, g: (None, g))
    with pytest.raises(NotImplementedError, match="differentiating scan whose program gives references to functions"):
        jax.grad(lambda x: lax.scan(lambda c, _: (stash(r, c), None), x, None, length=2)[0])(1.0)
