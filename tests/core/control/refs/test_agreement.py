"""Functions that use references inside, against the same without: all transformations give the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax

X = jnp.linspace(0.1, 1.3, 4)


def whole(x):
    r = jax.new_ref(x)
    r[...] = jnp.sin(r[...])
    return r[...] * r[...]


def whole_plain(x):
    return jnp.sin(x) ** 2


def parts(x):
    r = jax.new_ref(jnp.zeros((2, 4)))
    r[0] = x
    r[1, 1:3] = x[:2] * 2
    r[:, 0] += x[3]
    old = jax.ref.swap(r, (0, 2), x[0] ** 2)
    return r[...].sum(0) * old


def parts_plain(x):
    r = jnp.zeros((2, 4)).at[0].set(x).at[1, 1:3].set(x[:2] * 2).at[:, 0].add(x[3])
    return r.at[0, 2].set(x[0] ** 2).sum(0) * r[0, 2]


def gathers(x):
    r = jax.new_ref(x)
    i = jnp.array([0, 3, 3])
    jax.ref.addupdate(r, i, x[i] * 2)
    r[i[:2]] = r[i[1:]] ** 2
    return jax.freeze(r)


def gathers_plain(x):
    i = jnp.array([0, 3, 3])
    r = x.at[i].add(x[i] * 2)
    return r.at[i[:2]].set(r[i[1:]] ** 2)


def strides(x):
    r = jax.new_ref(jnp.concatenate([x, x * x]))
    r[1::2] = x * 3
    r[::4] += x[:2]
    return r[::2] * r[1::2]


def strides_plain(x):
    r = jnp.concatenate([x, x * x]).at[1::2].set(x * 3).at[::4].add(x[:2])
    return r[::2] * r[1::2]


def scanned(x):
    total = jax.new_ref(jnp.zeros(4))

    def step(c, row):
        total[...] += c * row
        return c + row.sum(), total[0] * 2

    c, ys = lax.scan(step, x[0], jnp.stack([x, 2 * x, x * x]))
    return total[...] * c + ys.sum()


def scanned_plain(x):
    total, c, ys = jnp.zeros(4), x[0], 0.0
    for row in (x, 2 * x, x * x):
        total = total + c * row
        c, ys = c + row.sum(), ys + total[0] * 2
    return total * c + ys


def scanned_over(x):
    r = jax.new_ref(jnp.stack([x, 2 * x]))

    def step(c, row):
        row[...] = row[...] * c
        return c + 1, row[0]

    _, ys = lax.scan(step, 2.0, r)
    return r[...].sum(0) + ys.sum()


def scanned_over_plain(x):
    r = jnp.stack([2 * x, 6 * x])
    return r.sum(0) + r[:, 0].sum()


def places(x):
    r = jax.new_ref(jnp.zeros(4))
    lax.fori_loop(0, 4, lambda i, _: r.__setitem__(i, x[3 - i] ** 2), None)
    lax.fori_loop(1, 4, lambda i, _: r.__setitem__(i, r[i] + r[i - 1]), None)
    return r[...]


def places_plain(x):
    return jnp.cumsum(x[::-1] ** 2)


def branches(x):
    r = jax.new_ref(x)

    def yes():
        r[0] *= 2.0
        return r[1]

    def no():
        r[1] = r[0] ** 2
        return r[2]

    out = lax.cond(x.sum() > 0, yes, no) + lax.cond(x.sum() < 0, yes, no)
    return r[...] * out


def branches_plain(x):
    doubled = x.at[0].multiply(2.0)
    positive = doubled.at[1].set(doubled[0] ** 2)
    squared = x.at[1].set(x[0] ** 2)
    negative = squared.at[0].multiply(2.0)
    return jnp.where(x.sum() > 0, positive * (doubled[1] + positive[2]), negative * (squared[2] + negative[1]))


def nested(x):
    @jax.jit
    def inner(ref, y):
        ref[...] = ref[...] * y
        own = jax.new_ref(y)
        own[0] += 1.0
        return own[...] + ref[0]

    r = jax.new_ref(x)
    a = inner(r, x)
    return inner(r, a) * r[...]


def nested_plain(x):
    def inner(r, y):
        r = r * y
        return r, y.at[0].add(1.0) + r[0]

    r, a = inner(x, x)
    r, b = inner(r, a)
    return b * r


def remade(x):
    @jax.checkpoint
    def inner(y):
        r = jax.new_ref(y)
        r[...] = jnp.sin(r[...])
        r[1] = r[0] * r[2]
        return r[...]

    return inner(inner(x))


def remade_plain(x):
    def inner(y):
        s = jnp.sin(y)
        return s.at[1].set(s[0] * s[2])

    return inner(inner(x))


def views(x):
    r = jax.new_ref(jnp.stack([x, x * x]))
    r.at[1].at[1:3][0] = x[0]
    r.at[:, 1:][0] += 1.0
    return r.at[0][...] * r.at[1][...]


def views_plain(x):
    r = jnp.stack([x, x * x]).at[1, 1].set(x[0]).at[0, 1:].add(1.0)
    return r[0] * r[1]


def constants(x):
    """What is made of constants may be written to with what isn't."""
    r, n = jax.new_ref(1.0), jax.new_ref(0)
    n[...] += 2
    r[...] = x[0] * n[...]
    return x * r[...]


def constants_plain(x):
    return x * x[0] * 2


PAIRS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    f.__name__: (f, globals()[f"{f.__name__}_plain"])
    for f in (
        *(whole, parts, gathers, strides, scanned, scanned_over, places, branches, nested, remade, views, constants),
    )
}


def many(f):
    return lambda x: jax.vmap(f)(jnp.stack([x, x + 0.5, -x]))


def weighted(f):
    return lambda x: (f(x) * jnp.arange(1.0, 5.0)).sum()


WAYS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda f: f,
    "jit": jax.jit,
    "grad": lambda f: jax.grad(weighted(f)),
    "jit grad": lambda f: jax.jit(jax.grad(weighted(f))),
    "grad jit": lambda f: jax.grad(weighted(jax.jit(f))),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (jnp.cos(x),)),
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](jnp.cos(x)),
    "jit linearize": lambda f: jax.jit(lambda x: jax.linearize(f, x)[1](jnp.cos(x))),
    "vmap": many,
    "jit vmap": lambda f: jax.jit(many(f)),
    "vmap jit": lambda f: many(jax.jit(f)),
    "vmap grad": lambda f: many(jax.grad(weighted(f))),
    "grad vmap": lambda f: jax.grad(lambda x: many(f)(x).sum()),
    "grad grad": lambda f: jax.grad(lambda x: (jax.grad(weighted(f))(x) * x).sum()),
    "in a loop": lambda f: lambda x: lax.scan(lambda c, _: (jnp.tanh(f(c)), None), x, None, length=3)[0],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PAIRS)
def test_the_same_as_without_references(name: str, way: str) -> None:
    with_refs, plain = PAIRS[name]
    got, want = WAYS[way](with_refs)(X), WAYS[way](plain)(X)
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=2e-5, atol=1e-5)
