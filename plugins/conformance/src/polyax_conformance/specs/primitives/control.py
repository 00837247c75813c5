"""Branches, loops and calls."""

from __future__ import annotations

from typing import Any

import numpy as np

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.ad_checkpoint import checkpoint_name
from polyax_conformance.specs.case import Case, case
from polyax_conformance.specs.primitives.data import SIGNED, N, V, X, Y

FORWARD = {"modes": ("fwd",), "again": ("fwd",)}
"""A loop whose number of steps isn't known can't be run backwards."""
POLICIES = polyax.checkpoint_policies


def recurrence(h: Any, x: Any) -> tuple[Any, Any]:
    h = jnp.tanh(h * x + 0.5)
    return h, h * x


def affine(a: Any, b: Any) -> Any:
    """The composition of ``x -> a0 x + a1`` with the same of ``b``: associative, and not commutative."""
    return a[0] * b[0], b[0] * a[1] + b[1]


def two_scans(x: Any) -> Any:
    return lax.scan(lambda c, row: (c * row, lax.scan(recurrence, c, row[None])[0]), jnp.ones(4), x)


BRANCHES: dict[str, Case] = {
    "cond": case(lambda n, x, y: lax.cond(n > 0, lambda x, y: x * y, lambda x, y: jnp.sin(x), x, y), N, X, Y),
    "cond, closing over": case(lambda n, x, y: lax.cond(n > 0, lambda: x * y, lambda: x), N, X, Y),
    "cond, constant branch": case(lambda n, x: lax.cond(n > 0, lambda x: x * x, jnp.zeros_like, x), N, X),
    "cond of several results": case(
        lambda n, x, y: lax.cond(n > 0, lambda: (x, y * x), lambda: (y * y, jnp.exp(x))), N, X, Y
    ),
    "cond by the operand": case(lambda x: lax.cond(jnp.sum(x) > 0, jnp.sin, jnp.cos, x), X),
    "switch": case(lambda n, x: lax.switch(n, [jnp.sin, jnp.cos, lambda x: x * x], x), N, X),
}

LOOPS: dict[str, Case] = {
    "while": case(
        lambda n, x: lax.while_loop(lambda c: c[0] < n + 2, lambda c: (c[0] + 1, jnp.sin(c[1]) * x), (0, x))[1],
        N,
        X,
        **FORWARD,
    ),
    "while, test by the carry": case(
        lambda x, y: lax.while_loop(lambda c: jnp.sum(c) < 20, lambda c: c * 1.5 + y, x), X, Y, **FORWARD
    ),
    "fori_loop": case(lambda x, y: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * y + i, x), X, Y),
    "fori_loop to a bound": case(
        lambda n, x: lax.fori_loop(0, n + 1, lambda i, c: jnp.sin(c) * (1 + i), x), N, X, **FORWARD
    ),
    "fori_loop writing": case(
        lambda x, y: lax.fori_loop(1, 3, lambda i, c: c.at[i].set(jnp.sin(c[i - 1]) * y), jnp.asarray(x)), X, V
    ),
    **{
        f"scan, {name}": case(lambda h, x, kw=kw: lax.scan(recurrence, h, x, **kw), V, SIGNED)
        for name, kw in {"forward": {}, "reverse": {"reverse": True}, "unrolled": {"unroll": 2}}.items()
    },
    "scan with constants": case(
        lambda w, h, x: lax.scan(lambda h, x: (jnp.tanh(w @ h + x), None), h, x)[0], SIGNED[:, :3], V[:3], SIGNED[:, :3]
    ),
    "scan without elements": case(
        lambda h, w: lax.scan(lambda h, _: (jnp.sin(h) * w, h), h, None, length=3), V, V[::-1].copy()
    ),
    "scan of no steps": case(lambda h, x: lax.scan(recurrence, h, x[:0])[0], V, SIGNED),
    "scan with integers": case(
        lambda n, x: lax.scan(lambda c, v: ((c[0] + 1, c[1] * v * c[0]), c[1]), (n, x[0]), x)[0][1], N, X
    ),
    "scan in scan": case(two_scans, X),
    "scan with a branch": case(
        lambda h, x: lax.scan(lambda h, x: (lax.cond(jnp.sum(x) > 0, jnp.sin, jnp.cos, h) * x, h), h, x), V, SIGNED
    ),
    "map": case(lambda x, y: lax.map(lambda r: jnp.sin(r) * y, x), X, V),
    "map in batches": case(lambda x: lax.map(lambda r: jnp.cumsum(r * r), x, batch_size=2), X),
    **{
        f"associative_scan, {name}": case(lambda x, y, kw=kw: lax.associative_scan(affine, (x, y), **kw), X, Y)
        for name, kw in {"forward": {}, "reverse": {"reverse": True}, "axis 1": {"axis": 1}}.items()
    },
}

CALLS: dict[str, Case] = {
    "jit": case(lambda x, y: polyax.jit(lambda x, y: (jnp.sin(x) * y, x))(x, y), X, Y),
    "jit, closing over": case(lambda x, y: polyax.jit(lambda x: jnp.sin(x) * y)(x * y), X, Y),
    "jit in jit": case(polyax.jit(lambda x: polyax.jit(jnp.sin)(x) * polyax.jit(jnp.sin)(x * x)), X),
    "checkpoint": case(lambda x, y: polyax.checkpoint(lambda x: jnp.sin(jnp.sin(x) * y))(x), X, Y),
    "checkpoint of a scan": case(lambda h, x: lax.scan(polyax.checkpoint(recurrence), h, x, reverse=True), V, SIGNED),
    **{
        f"checkpoint, {name}": case(
            lambda x, y, p=policy: polyax.checkpoint(
                lambda x, y: jnp.exp(checkpoint_name(jnp.sin(x), "s") @ y.T) * 2, policy=p
            )(x, y),
            X,
            Y,
        )
        for name, policy in {
            "everything": POLICIES.everything_saveable,
            "nothing": POLICIES.nothing_saveable,
            "products": POLICIES.dots_saveable,
            "names": POLICIES.save_only_these_names("s"),
        }.items()
    },
    "debug_callback": case(lambda x: (polyax.debug.callback(lambda x: None, x), jnp.sin(x))[1], np.float64(0.3)),
    "debug_print": case(lambda x: (polyax.debug.print("{}", x), jnp.sin(x))[1], np.float64(0.3)),
    "inspect_sharding": case(
        lambda x: (polyax.debug.inspect_array_sharding(x, callback=str), jnp.sin(x))[1], np.float64(0.3)
    ),
}

CASES = {**BRANCHES, **LOOPS, **CALLS}
