"""Functions given to control flow are traced once for their types, and forgotten when nobody needs them."""

from __future__ import annotations

import gc
import weakref

import numpy as np

import polyax as jax
import polyax.numpy as jnp
from polyax import lax

XS = np.arange(4, dtype=np.float32)


def counted():
    """A body of scan, and how often it was called."""
    calls = []

    def body(c, x):
        calls.append(1)
        return c + x, c * x

    return body, calls


def test_the_same_loop_is_traced_once() -> None:
    body, calls = counted()
    for _ in range(3):
        lax.scan(body, jnp.float32(0), XS)
    assert len(calls) == 1
    lax.scan(body, jnp.float32(0), XS[:2])
    assert len(calls) == 1, "the length isn't part of the body"
    lax.scan(body, jnp.int32(0), XS.astype(np.int32))
    assert len(calls) == 2


def test_every_kind_of_loop_is_traced_once() -> None:
    calls = []

    def double(x):
        calls.append(1)
        return x * 2

    def below(x):
        return x < 10

    for _ in range(3):
        lax.while_loop(below, double, jnp.float32(1))
        lax.map(double, XS)
        lax.map(double, XS, batch_size=2)
        lax.cond(True, double, double, jnp.float32(1))
    assert len(calls) == 3, "cond and while_loop call it with the same types"


def test_eager_loops_are_compiled_once() -> None:
    body, _ = counted()
    seen = []
    f = jax.jit(lambda: lax.scan(body, jnp.float32(0), XS))
    for _ in range(2):
        seen.append(jax.make_jaxpr(f)().jaxpr.eqns[0].params["jaxpr"])
    assert np.allclose(f()[0], 6)
    inner = [p.jaxpr.eqns[-1].params["jaxpr"] for p in seen]
    assert inner[0] is inner[1]


def test_loops_over_values_of_outer_traces_are_traced_each_time() -> None:
    @jax.jit
    def f(w, n):
        def body(c, x):
            return c * w + x, None

        first = lax.scan(body, 1.0, XS)[0]
        return first + lax.scan(body, 1.0, XS)[0]

    want = 2 * np.polyval([1, *XS], 2.0)
    for n in range(3):
        assert np.allclose(f(2.0, n), want)
    assert np.allclose(jax.vmap(f, (0, None))(jnp.array([2.0, 2.0]), 1), want)


def test_settings_are_part_of_what_is_remembered() -> None:
    def body(c, x):
        return c + jnp.ones((), float), x

    assert lax.scan(body, 0.0, XS)[0].dtype == np.float32
    with jax.enable_x64(True):
        assert lax.scan(body, 0.0, XS)[0].dtype == np.float64
    assert lax.scan(body, 0.0, XS)[0].dtype == np.float32


def test_axis_names_are_part_of_what_is_remembered() -> None:
    def body(c, x):
        return c + lax.axis_size("i"), x

    for size in (2, 3):
        got = jax.vmap(lambda x: lax.scan(body, 0, XS)[0] + x, axis_name="i")(np.zeros(size, np.int32))
        assert got.tolist() == [4 * size] * size


def test_functions_can_be_freed() -> None:
    body, _ = counted()
    lax.scan(body, jnp.float32(0), XS)
    known = weakref.ref(body)
    del body
    gc.collect()
    assert known() is None
