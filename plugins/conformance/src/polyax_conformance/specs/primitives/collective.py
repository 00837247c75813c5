"""Collectives: under ``vmap``, which computes them by operations on arrays; and in programs that run side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import polyax
import polyax.numpy as jnp
from polyax import P, lax
from polyax.sharding import AxisType
from polyax_conformance.specs.case import Case, case, values
from polyax_conformance.specs.primitives.data import X, Y

SQUARES = np.stack([Y[:, :3], X[:, :3], X[:, 1:]])

ROWS: dict[str, Callable[[Any], Any]] = {
    "psum": lambda r: r * lax.psum(jnp.sin(r), "i"),
    "pmean": lambda r: r * lax.pmean(jnp.sin(r), "i"),
    "all_gather": lambda r: jnp.sin(lax.all_gather(r * r, "i")),
    "all_gather, tiled": lambda r: lax.all_gather(r * r, "i", tiled=True) * r[0],
    "ppermute": lambda r: r * lax.ppermute(jnp.sin(r), "i", [(0, 1), (1, 0)]),
    "pshuffle": lambda r: r * lax.pshuffle(jnp.sin(r), "i", [1, 2, 0]),
    "axis_index": lambda r: jnp.sin(r) * lax.axis_index("i"),
    "axis_size": lambda r: jnp.sin(r) * lax.axis_size("i"),
}
OF_SQUARES: dict[str, Callable[[Any], Any]] = {
    "psum_scatter": lambda r: lax.psum_scatter(jnp.sin(r), "i") * r[0],
    "psum_scatter, tiled": lambda r: lax.psum_scatter(jnp.sin(r), "i", scatter_dimension=1, tiled=True) * r[:, :1],
    "all_to_all": lambda r: r * lax.all_to_all(jnp.sin(r), "i", 0, 1),
    "all_to_all, tiled": lambda r: lax.all_to_all(jnp.sin(r), "i", 0, 1, tiled=True) * r[0, 0],
    "pswapaxes": lambda r: r * lax.pswapaxes(jnp.sin(r), "i", 0),
}
EXTREMA: dict[str, Callable[[Any], Any]] = {
    "pmax": lambda r: r * lax.pmax(jnp.sin(r), "i"),
    "pmin": lambda r: r * lax.pmin(jnp.sin(r), "i"),
}


ONE = SQUARES[:1, :1, :1]
ALONE: dict[str, tuple[Callable[[Any], Any], Any]] = {
    **{name: (ROWS[name], X[:1]) for name in ("psum", "pmean", "all_gather", "axis_index")},
    **{name: (OF_SQUARES[name], ONE) for name in ("psum_scatter", "all_to_all")},
    "ppermute": (lambda r: r * lax.ppermute(jnp.sin(r), "i", [(0, 0)]), X[:1]),
}
"""What there is a device for, wherever these cases run."""


def on_devices(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return polyax.pmap(fun, axis_name="i")


def product_with_total(x: Any, y: Any) -> Any:
    return polyax.pmap(lambda a, b: a * lax.psum(b * a, "i"), axis_name="i", in_axes=(0, None))(x, y)


def scaled_by_all(x: Any, y: Any) -> Any:
    """What is the same everywhere, ``y``, is used where things vary."""
    mesh = polyax.make_mesh((1,), ("i",), (AxisType.Auto,))
    return polyax.shard_map(
        lambda a, b: a * b * lax.psum(jnp.sin(a), "i"), mesh=mesh, in_specs=(P("i"), P()), out_specs=P("i")
    )(x, y)


def mapped(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return polyax.vmap(fun, axis_name="i")


CASES: dict[str, Case] = {
    **{f"{name} under vmap": case(mapped(f), X) for name, f in {**ROWS, **EXTREMA}.items()},
    **{f"{name} under vmap": case(mapped(f), SQUARES) for name, f in OF_SQUARES.items()},
    **{f"{name} under pmap": case(on_devices(f), x) for name, (f, x) in ALONE.items()},
    **{f"{name} under pmap": values(on_devices(f), X[:1]) for name, f in EXTREMA.items()},
    "pmap on one device": case(product_with_total, X[:1], Y[0]),
    "shard_map on one device": case(scaled_by_all, X[:1], Y[0]),
    "nested axes": case(
        polyax.vmap(polyax.vmap(lambda r: r * lax.psum(jnp.sin(r), ("i", "j")), axis_name="i"), axis_name="j"), SQUARES
    ),
}
