"""Functions with rules of their own, and Python functions, which have none unless they are given some."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.custom_batching import custom_vmap, sequential_vmap
from polyax.custom_derivatives import linear_call
from polyax.experimental import io_callback
from polyax_conformance.specs.case import Case, case, values
from polyax_conformance.specs.primitives.data import CUBE, WELL, V, X, Y

BACKWARD = {"modes": ("rev",)}
"""A function with a backward rule only: forward mode comes second."""


@polyax.custom_jvp
def logistic_product(x: Any, y: Any) -> Any:
    return y / (1 + jnp.exp(-x))


@logistic_product.defjvp
def logistic_product_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    out, s = logistic_product(x, y), logistic_product(x, 1.0)
    return out, s * (1 - s) * y * dx + s * dy


@partial(polyax.custom_jvp, nondiff_argnums=(0,))
def applied(f: Any, x: Any) -> Any:
    return f(x) * x


applied.defjvp(lambda f, xs, ts: (applied(f, *xs), polyax.jvp(lambda x: f(x) * x, xs, ts)[1]))

each_jvp = polyax.custom_jvp(lambda x, y: jnp.sin(x) * y)
each_jvp.defjvps(lambda dx, out, x, y: jnp.cos(x) * y * dx, lambda dy, out, x, y: jnp.sin(x) * dy)


def plain_scaled(p: Any) -> Any:
    return {"out": jnp.sin(p["x"]) * p["y"], "x": p["x"]}


def scaled_backward(p: Any, ct: Any) -> Any:
    return ({"x": ct["out"] * jnp.cos(p["x"]) * p["y"] + ct["x"], "y": ct["out"] * jnp.sin(p["x"])},)


scaled = polyax.custom_vjp(plain_scaled)
scaled.defvjp(lambda p: (plain_scaled(p), p), scaled_backward)

remat_scaled = polyax.custom_vjp(lambda x: jnp.sin(x) * x)
remat_scaled.defvjp(
    lambda x: (jnp.sin(x) * x, x), lambda x, ct: (ct * (jnp.cos(x) * x + jnp.sin(x)),), optimize_remat=True
)


@polyax.custom_gradient
def cubed(x: Any) -> Any:
    return x**3, lambda ct: 3 * x**2 * ct


@custom_vmap
def sine_product(x: Any, y: Any) -> Any:
    return jnp.sin(x) * y


@sine_product.def_vmap
def sine_product_rule(size: int, mapped: Any, x: Any, y: Any) -> Any:
    x, y = (v if m else jnp.broadcast_to(v, (size, *jnp.shape(v))) for v, m in zip((x, y), mapped))
    return jnp.sin(x) * y, True


def linear_solve(a: Any, b: Any, **how: Any) -> Any:
    solve = lambda matvec, y: jnp.linalg.solve(a, y)
    return lax.custom_linear_solve(lambda x: a @ x, b, solve, **how)


def transposed_solve(a: Any, b: Any) -> Any:
    return linear_solve(a, b, transpose_solve=lambda vecmat, y: jnp.linalg.solve(a.T, y))


def symmetric_solve(a: Any, b: Any) -> Any:
    return linear_solve(a @ a.T, b, symmetric=True)


def square_root(a: Any) -> Any:
    newton = lambda f, x: lax.fori_loop(0, 8, lambda _, x: 0.5 * (x + a / x), x)
    return lax.custom_root(lambda x: x * x - a, jnp.ones_like(a), newton, lambda g, y: y / g(jnp.ones_like(y)))


def called(method: str) -> Any:
    like = lambda x: polyax.ShapeDtypeStruct(x.shape, polyax.dtypes.canonicalize_dtype(x.dtype))
    return lambda x: polyax.pure_callback(np.sin, like(x), x, vmap_method=method)


@polyax.custom_jvp
def sine_outside(x: Any) -> Any:
    return called("expand_dims")(x)


sine_outside.defjvp(lambda xs, ts: (sine_outside(*xs), jnp.cos(*xs) * ts[0]))

CASES: dict[str, Case] = {
    "custom_jvp": case(logistic_product, X, Y),
    "custom_jvp, defjvps": case(each_jvp, X, Y),
    "custom_jvp of a function": case(lambda x: applied(jnp.sin, x), X),
    "custom_jvp in a scan": case(lambda x, y: lax.scan(lambda c, r: (logistic_product(c, r), c), x, y), V, Y),
    "custom_vjp": case(lambda x, y: list(scaled({"x": x, "y": y}).values()), X, Y, **BACKWARD),
    "custom_vjp in a scan": case(
        lambda x, y: lax.scan(lambda c, r: (scaled({"x": c, "y": r})["out"], c), x, y), V, Y, **BACKWARD
    ),
    "custom_vjp, optimize_remat": case(remat_scaled, X, **BACKWARD),
    "custom_gradient": case(cubed, X, **BACKWARD),
    "custom_vmap": case(sine_product, X, Y),
    "sequential_vmap": case(sequential_vmap(lambda x, y: jnp.sin(x) * y), X, Y),
    "custom_linear_solve": case(transposed_solve, WELL, V[:3]),
    "custom_linear_solve, symmetric": case(symmetric_solve, WELL, V[:3]),
    "custom_linear_solve, forward": case(linear_solve, WELL, V[:3], modes=("fwd",), again=("fwd",)),
    "linear_call": case(
        lambda r, x: linear_call(lambda r, x: jnp.sin(r) * x, lambda r, ct: jnp.sin(r) * ct, r, x), X, Y
    ),
    "custom_root": case(square_root, V),
    "pure_callback with a rule": case(sine_outside, X),
    **{f"pure_callback, {m}": values(called(m), CUBE) for m in ("sequential", "expand_dims", "broadcast_all")},
    "io_callback": values(lambda x: io_callback(np.sin, polyax.ShapeDtypeStruct(x.shape, x.dtype), x), V),
}
