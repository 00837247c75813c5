"""Reductions that don't wait for each other are made in one exchange."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.control.inner.programs import run
from polyax.control.spmd import axes_bound
from polyax.ir.aval import aval_of
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.meshes.axes import Axes
from polyax.partition.together import _Buckets, together
from polyax.trace.recording import trace_to_jaxpr
from support.meshed import partitioned

MESH: Axes = (("x", 2), ("y", 2))
X = np.random.default_rng(0).normal(size=(2, 2, 3)).astype(np.float32)
REDUCTIONS = ("psum", "pmax")


def program(fun: Callable[..., Any], **options: Any) -> ClosedJaxpr:
    with axes_bound(MESH):
        return trace_to_jaxpr(lambda x: fun(x, **options), [aval_of(X[0, 0])])


def reductions(found: ClosedJaxpr) -> list[tuple[str, int]]:
    return [(e.primitive.name, len(e.invars)) for e in found.eqns if e.primitive.name in REDUCTIONS]


def checked(fun: Callable[..., Any]) -> list[tuple[str, int]]:
    """The reductions left, after the program has given what it gave before."""
    before = program(fun)
    after = together(before)
    results: list[list[np.ndarray]] = []
    for closed in (before, after):
        mapped: Callable[..., Any] = partial(lambda closed, x: run(closed, [x]), closed)
        for name in ("y", "x"):
            mapped = polyax.vmap(mapped, axis_name=name)
        results.append([np.asarray(y) for y in mapped(X)])
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)
    return reductions(after)


def test_sums_that_nothing_waits_for_are_one() -> None:
    assert checked(lambda x: [lax.psum(x, "x"), jnp.sin(lax.psum(x * 2, "x")), lax.psum(x[0], "x")]) == [("psum", 3)]


def test_what_depends_on_a_sum_is_put_off_with_it() -> None:
    def steps(x: Any) -> list[Any]:
        first = jnp.transpose(lax.psum(x, "x")) * 2
        return [first - 1, lax.psum(jnp.exp(x), "x")]

    assert checked(steps) == [("psum", 2)]


def test_sums_of_sums_come_after() -> None:
    def chain(x: Any) -> list[Any]:
        a = lax.psum(x, "x")
        b = lax.psum(x * 3, "x")
        c = lax.psum(a * x, "x")
        return [lax.psum(x + 1, "x"), b, c]

    assert checked(chain) == [("psum", 2), ("psum", 2)]


def test_unlike_reductions_stay_apart() -> None:
    def unlike(x: Any) -> list[Any]:
        return [lax.psum(x, "x"), lax.psum(x, "y"), lax.pmax(x, "x"), lax.psum(-x, "x"), lax.psum(-x, "y")]

    assert sorted(checked(unlike)) == [("pmax", 1), ("psum", 2), ("psum", 2)]


def test_a_sum_along_one_axis_needn_t_hasten_those_along_another() -> None:
    """The gradients of the layers are summed along one axis once, while layers exchange along the other."""

    def layers(x: Any) -> list[Any]:
        gradients: list[Any] = []
        for _ in range(3):
            gradients.append(lax.psum(x * x, "x"))
            x = jnp.tanh(lax.psum(x, "y"))
        return [x, *(g * 2 for g in gradients)]

    assert sorted(checked(layers)) == [("psum", 1), ("psum", 1), ("psum", 1), ("psum", 3)]


def test_effects_stay_in_their_order() -> None:
    def told(x: Any) -> list[Any]:
        a = lax.psum(x, "x")
        polyax.debug.callback(lambda a: None, a, ordered=True)
        polyax.debug.callback(lambda: None, ordered=True)
        return [a, lax.psum(x + 1, "x")]

    found = together(program(told))
    assert [e.primitive.name for e in found.eqns if e.effects or e.primitive.name in REDUCTIONS] == [
        "psum", "debug_callback", "debug_callback", "psum",
    ]  # fmt: skip


def test_the_gradients_of_a_step_are_one_exchange() -> None:
    def step(w: Any, x: Any) -> Any:
        def loss(w: Any) -> Any:
            return (jnp.tanh(x @ w[0] + w[1]) @ w[2]).mean()

        value, slopes = polyax.value_and_grad(loss)(w)
        return value, [p - 0.1 * g for p, g in zip(w, slopes, strict=True)]

    rng = np.random.default_rng(0)
    x, *w = (rng.normal(size=s).astype(np.float32) for s in ((512, 64), (64, 128), (128,), (128, 32)))
    whole = [((),) * p.ndim for p in w]
    found = partitioned(step, [w, x], MESH, [*whole, (("x", "y"), ())], [(), *whole])
    assert sorted(m.collective for m in found.moves) == ["psum"] * 4
    assert reductions(found.program) == [("psum", 4)]


def test_what_waits_is_looked_at_once_for_each_bucket_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not whenever any other sum is made: that would be quadratic."""

    def steps(x: Any) -> list[Any]:
        waits, chain = lax.psum(x, "y"), x
        for _ in range(50):
            waits, chain = jnp.sin(waits), lax.psum(jnp.cos(chain), "x")
        return [waits, waits * chain]

    put, places = _Buckets._put, []
    monkeypatch.setattr(_Buckets, "_put", lambda self, place, eqn: (places.append(place), put(self, place, eqn)))
    assert len(checked(steps)) == 51
    assert max(map(places.count, places)) <= 3
