"""Programs with references as text, as JAX prints them, and what they say of their effects."""

from __future__ import annotations

import polyax as jax
import polyax.numpy as jnp
from polyax import lax
from polyax.ir.refs import AccumEffect, ReadEffect, RefEffect, WriteEffect

REF = jax.new_ref(jnp.zeros((3, 4)))


def printed(fun, *args):
    return [line.strip() for line in str(jax.make_jaxpr(fun)(*args)).splitlines()]


def test_reading():
    def f(r, i):
        return r[...], r[0], r[i], r[:, 1], r[0:2, 1], r[jnp.array([0, 1]), i], r[::2], r.at[1:].at[0][...]

    lines = printed(f, REF, jnp.int32(1))
    assert lines[:1] == ["{ lambda a:i32[2]; b:Ref{f32[3,4]} c:i32[]. let"]
    assert lines[1:-1] == [
        "d:f32[3,4] <- b[...]",
        "e:f32[4] <- b[0,:]",
        "f:f32[4] <- b[c,:]",
        "g:f32[3] <- b[:,1]",
        "h:f32[2] <- b[:2,1]",
        "i:f32[2] <- b[a,c]",
        "j:f32[2,4] <- b[::2,:]",
        "k:f32[4] <- b[1:,:][0,:]",
    ]


def test_writing():
    def f(r, i, x):
        r[i] = x
        r[0] += x
        jax.ref.addupdate(r, jax.ds(i, 1), x[None])
        r[1]
        return jax.ref.swap(r, 2, x)

    assert printed(f, REF, jnp.int32(1), jnp.zeros(4))[1:-1] == [
        "a[b,:] <- c",
        "d:f32[4] <- a[0,:]",
        "e:f32[4] = add d c",
        "a[0,:] <- e",
        "f:f32[1,4] = broadcast_in_dim[broadcast_dimensions=(1,) shape=(1, 4)] c",
        "a[b:b+1,:] += f",
        "_:f32[4] <- a[1,:]",
        "g:f32[4], a[2,:] <- a[2,:], c",
    ]


def test_lives():
    def f(x):
        r = jax.new_ref(x)
        r[...] = 2.0
        return jax.freeze(r)

    assert printed(f, 1.0)[1:-1] == [
        "b:Ref{f32[]} = new_ref[kind=None memory_space=None] a",
        "b[...] <- 2.0:f32[]",
        "c:f32[] = freeze b",
    ]


def test_in_constructs():
    def f(r):
        lax.fori_loop(0, 3, lambda i, _: r.__setitem__(i, jnp.zeros(4)), None)

    (line,) = [x for x in printed(f, REF) if "jaxpr=" in x]
    assert ":Ref{f32[3,4]}" in line


def test_effects():
    kinds = lambda f: {type(e) for e in jax.make_jaxpr(f)(REF).effects}
    assert kinds(lambda r: r[...]) == {ReadEffect}
    assert kinds(jax.jit(lambda r: r.__setitem__(0, jnp.zeros(4)))) == {ReadEffect, WriteEffect}
    assert kinds(lambda r: jax.ref.addupdate(r, 0, jnp.zeros(4))) == {AccumEffect}
    assert all(issubclass(k, RefEffect) for k in kinds(lambda r: jax.new_ref(r[...])[0]))
