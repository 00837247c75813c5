"""``checkpoint``: what is kept, what is computed again, and that the numbers don't change."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import checkpoint_policies as policies
from polyax import lax
from polyax.ad_checkpoint import checkpoint_name, print_saved_residuals, saved_residuals
from polyax.errors import TracerBoolConversionError

X = np.arange(1.0, 4.0, dtype=np.float32)
W = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)


def net(w: Any, x: Any) -> Any:
    return jnp.sum(jnp.tanh(w @ jnp.tanh(checkpoint_name(w @ x, "hidden"))))


def kept(policy: Any, fun: Any = net) -> list[str]:
    """What is kept of ``net``, besides its arguments; without lines."""
    found = saved_residuals(polyax.checkpoint(fun, policy=policy), W, X)
    return [where.split(" from ")[0] for _, where in found if not where.startswith("from")]


SAVED = {
    "nothing": (None, []),
    "nothing_saveable": (policies.nothing_saveable, []),
    "dots": (policies.dots_saveable, ["output of dot_general"] * 2),
    "dots without batch": (policies.dots_with_no_batch_dims_saveable, ["output of dot_general"] * 2),
    "names": (policies.save_only_these_names("hidden"), ["named 'hidden'"]),
    "other names": (policies.save_any_names_but_these("hidden"), []),
    "all but names": (
        policies.save_anything_except_these_names("hidden"),
        ["output of tanh", "output of sub"] * 2,
    ),
    "both": (
        policies.save_from_both_policies(policies.dots_saveable, policies.save_only_these_names("hidden")),
        ["named 'hidden'", "output of dot_general"],
    ),
}


@pytest.mark.parametrize("name", SAVED)
def test_policies_choose_what_is_kept(name: str) -> None:
    policy, wanted = SAVED[name]
    assert kept(policy) == wanted


@pytest.mark.parametrize("name", [*SAVED, "everything"])
def test_gradients_are_those_without_checkpoint(name: str) -> None:
    policy = SAVED[name][0] if name in SAVED else policies.everything_saveable
    wanted = polyax.grad(net)(W, X)
    rematerialized = polyax.grad(polyax.checkpoint(net, policy=policy))
    for grad in (rematerialized, polyax.jit(rematerialized)):
        np.testing.assert_allclose(grad(W, X), wanted, rtol=1e-5, atol=1e-6)


def test_policies_see_into_jitted_functions() -> None:
    inner = polyax.jit(net)
    assert kept(policies.dots_saveable, lambda w, x: jnp.sin(inner(w, x))) == ["output of dot_general"] * 2


def test_policies_see_into_loops() -> None:
    def loop(w: Any, x: Any) -> Any:
        return jnp.sum(lax.scan(lambda c, _: (jnp.sin(w @ c), None), x, None, length=5)[0])

    def stacked(policy: Any) -> list[Any]:
        found = saved_residuals(polyax.checkpoint(loop, policy=policy), W, X)
        return [a.shape for a, where in found if where.startswith("output of scan")]

    assert stacked(None) == []
    assert stacked(policies.everything_saveable) == [(5, 3), (5, 3)]


def test_a_checkpoint_in_a_loop_keeps_carries_alone() -> None:
    def run(step: Any) -> list[Any]:
        return saved_residuals(lambda x: lax.scan(lambda c, _: (step(c), None), x, None, length=4)[0], 1.0)

    step = lambda c: jnp.sin(jnp.sin(jnp.sin(c)))
    assert [a.shape for a, _ in run(step)] == [(4,)] * 3
    assert [a.shape for a, _ in run(polyax.checkpoint(step))] == [(4,)]


def test_saved_residuals_are_told_with_their_lines(capsys: pytest.CaptureFixture[str]) -> None:
    print_saved_residuals(polyax.checkpoint(net, policy=policies.save_only_these_names("hidden")), W, x=X)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["f32[3,3] from the argument w", "f32[3] from the argument x"]
    assert lines[2].startswith("f32[3] named 'hidden' from ")
    assert lines[2].endswith("(net)")


@pytest.mark.parametrize("order", [1, 2])
def test_nested(order: int) -> None:
    plain = lambda x: jnp.sin(jnp.cos(jnp.sin(x)))
    nested = polyax.checkpoint(lambda x: jnp.sin(polyax.checkpoint(lambda y: jnp.cos(jnp.sin(y)))(x)))
    for _ in range(order):
        plain, nested = polyax.grad(plain), polyax.grad(nested)
    for f in (nested, polyax.jit(nested)):
        np.testing.assert_allclose(f(0.7), plain(0.7), rtol=1e-5)
    np.testing.assert_allclose(polyax.vmap(nested)(X), polyax.vmap(plain)(X), rtol=1e-4)


def test_recursion_keeps_a_logarithm_of_values() -> None:
    def chain(depth: int) -> Any:
        if depth == 0:
            return jnp.sin
        half = chain(depth - 1)
        return lambda x: half(polyax.checkpoint(half)(x))

    assert len(saved_residuals(chain(4), 1.0)) == 5


@pytest.mark.parametrize("how", [{"static_argnums": 1}, {"static_argnums": (-1,)}])
def test_static_arguments_by_position(how: Any) -> None:
    f = polyax.checkpoint(lambda x, flag: jnp.sin(x) if flag else jnp.cos(x), **how)
    np.testing.assert_allclose(polyax.grad(f)(1.0, True), np.cos(1), rtol=1e-6)
    np.testing.assert_allclose(polyax.grad(f)(1.0, False), -np.sin(1), rtol=1e-6)


def test_static_arguments_by_name() -> None:
    @partial(polyax.checkpoint, static_argnames="flag")
    def f(x: Any, *, flag: bool, scale: Any = 1.0) -> Any:
        return scale * (jnp.sin(x) if flag else jnp.cos(x))

    np.testing.assert_allclose(polyax.grad(f)(1.0, flag=True, scale=2.0), 2 * np.cos(1), rtol=1e-6)


def test_bad_arguments() -> None:
    identity = lambda x: x
    with pytest.raises(ValueError, match=r"but got \(3,\), while `len\(args\)` = 1"):
        polyax.checkpoint(identity, static_argnums=3)(1.0)
    with pytest.raises(TypeError, match="must be an int or ints, got 'a'"):
        polyax.checkpoint(identity, static_argnums="a")
    with pytest.raises(TypeError, match="prevent_cse must be a bool"):
        polyax.checkpoint(identity, prevent_cse=3)
    with pytest.raises(TracerBoolConversionError, match=r"tracing the function f at .*test_remat\.py.*\n*.*argument x"):
        polyax.checkpoint(f := _branching)(1.0)
    assert f(1.0) == 1.0


def _branching(x: Any) -> Any:
    return x if x > 0 else -x


_branching.__name__ = "f"


OFFLOADING = partial(policies.save_and_offload_only_these_names, offload_src="device", offload_dst="pinned_host")


def test_names_that_are_saved_in_other_memory() -> None:
    policy = OFFLOADING(names_which_can_be_saved=[], names_which_can_be_offloaded=["hidden"])
    assert kept(policy) == ["output of device_put"]
    assert kept(OFFLOADING(names_which_can_be_saved=["hidden"], names_which_can_be_offloaded=[])) == ["named 'hidden'"]
    with pytest.raises(ValueError, match="should not intersect"):
        OFFLOADING(names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"])
    want = polyax.grad(net)(W, X)
    np.testing.assert_allclose(polyax.jit(polyax.grad(polyax.checkpoint(net, policy=policy)))(W, X), want, rtol=1e-6)


def test_values_between_programs_lie_where_the_policy_says() -> None:
    for policy, count in (
        (OFFLOADING(names_which_can_be_saved=[], names_which_can_be_offloaded=["hidden"]), 1),
        (policies.offload_dot_with_no_batch_dims("device", "pinned_host"), 2),
    ):
        _, pullback = polyax.vjp(polyax.checkpoint(net, policy=policy), W, X)
        kinds = [x.sharding.memory_kind for x in polyax.tree.leaves(pullback) if isinstance(x, polyax.Array)]
        assert kinds.count("pinned_host") == count
        np.testing.assert_allclose(pullback(1.0)[0], polyax.grad(net)(W, X), rtol=1e-6)


def test_policies_must_agree_on_booleans() -> None:
    policy = policies.save_from_both_policies(lambda *_, **__: 1, policies.nothing_saveable)
    with pytest.raises(ValueError, match="return value of the policies should be a boolean"):
        kept(policy)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_what_a_loop_saves_is_not_computed_again(name: str) -> None:
    loop = lambda x: lax.scan(lambda c, _: (jnp.sin(c), jnp.sin(c)), x, None, length=3)
    saving = polyax.checkpoint(loop, policy=lambda primitive, *_, **__: primitive.name == name)
    text = str(polyax.make_jaxpr(polyax.linearize(saving, 4.0)[1])(1.0))
    assert (" cos " in text) == (name != "cos")
    assert " sin " not in text
    saved = polyax.vjp(saving, 4.0)[1]((1.0, jnp.ones(3)))
    assert jnp.allclose(saved[0], polyax.vjp(loop, 4.0)[1]((1.0, jnp.ones(3)))[0])


def _chain(w: Any, x: Any) -> Any:
    for _ in range(3):
        x = jnp.sin(x @ w)
    return x


def _nested(w: Any, x: Any) -> Any:
    step = lambda x, _: (polyax.jit(_chain)(w, lax.scan(lambda x, _: (jnp.sin(x @ w), 0.0), x, None, length=2)[0]), x)
    carry, ys = lax.scan(step, x, None, length=2)
    return carry + ys.sum(0)


def _branch_in_loop(w: Any, x: Any) -> Any:
    step = lambda x, n: (lax.cond(n > 0, lambda x: jnp.sin(x @ w), jnp.cos, x), x @ w)
    return lax.scan(step, x, np.arange(4))[0]


BODIES = {
    "scan": (lambda w, x: lax.scan(lambda x, _: (_chain(w, x), None), x, None, length=2)[0], 6),
    "cond": (lambda w, x: lax.cond(x[0] > 0, _chain, lambda _, x: x * 1.0, w, x), 6),
    "two branches": (lambda w, x: lax.cond(x[0] > 0, _chain, lambda w, x: jnp.sin(x @ w), w, x), 8),
    "nested": (_nested, 8),
    "a branch in a loop": (_branch_in_loop, 2),
    "of constants": (lambda w, x: lax.scan(lambda x, _: (jnp.sin(x @ jnp.sin(w @ w)), None), x, None, length=4)[0], 4),
}


@pytest.mark.parametrize("name", BODIES)
def test_policies_see_into_bodies(name: str) -> None:
    """Products are saved, so that the backward pass has but those of cotangents: as many as in JAX."""
    fun, wanted = BODIES[name]
    saving = polyax.checkpoint(fun, policy=policies.dots_saveable)
    pullback = polyax.vjp(saving, W, X)[1]
    assert str(polyax.make_jaxpr(pullback)(X)).count(" dot_general[") == wanted
    got = polyax.grad(lambda w: saving(w, X).sum())
    want = polyax.grad(lambda w: fun(w, X).sum())(W)
    for f in (got, polyax.jit(got)):
        np.testing.assert_allclose(f(W), want, rtol=1e-4, atol=1e-6)


def test_names_in_a_loop_are_saved() -> None:
    step = lambda x, _: (jnp.sin(checkpoint_name(jnp.sin(x), "inner")), None)
    saving = polyax.checkpoint(
        lambda x: lax.scan(step, x, None, length=4)[0], policy=policies.save_only_these_names("inner")
    )
    assert str(polyax.make_jaxpr(polyax.vjp(saving, 1.0)[1])(1.0)).count(" sin ") == 1
    assert [a.shape for a, where in saved_residuals(saving, 1.0) if where.startswith("output of scan")] == [(4,)]


def test_residuals_of_jitted_functions_are_told_as_without_jit() -> None:
    def f(x, y):
        return checkpoint_name(jnp.sin(3.0), "z") * (x[0] * x[1] * y)

    told = [where for _, where in saved_residuals(polyax.jit(f), (2.0, 3.0), y=4.0)]
    assert told[:3] == ["from the argument x[0]", "from the argument x[1]", "from the argument y"]
    assert told[3].startswith("output of jitted function 'f'")


WAYS = {"plain": lambda f: f, "grad": polyax.grad, "jvp": lambda f: lambda x: polyax.jvp(f, (x,), (x,))}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_one_reference_by_several_names(way: str, jitted: bool) -> None:
    """What is written by one name is read by all."""

    def f(x: Any, wrap: Any) -> Any:
        r, other = polyax.new_ref(x), polyax.new_ref(x)

        def body(a: Any, b: Any, c: Any) -> None:
            a[...] += jnp.sin(r[...])
            b[...] *= c[...]

        wrap(body)(r, r, other)
        return r[...] * x

    program, expected = (WAYS[way](partial(f, wrap=w)) for w in (polyax.checkpoint, lambda body: body))
    np.testing.assert_allclose((polyax.jit(program) if jitted else program)(2.0), expected(2.0), rtol=1e-6)
