"""Every row of the specification tables under every transformation, against NumPy in float64 and differences of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax_conformance.specs import elementwise, networks, products, reductions, shapes
from polyax_conformance.specs.oracle import directional, gradient, is_float, widen
from polyax_conformance.specs.spec import TableRow, parameters

SPECS = [*elementwise.SPECS, *reductions.SPECS, *shapes.SPECS, *products.SPECS, *networks.SPECS]
BATCH = 3

every_row = pytest.mark.parametrize("spec", parameters(SPECS))
differentiable_rows = pytest.mark.parametrize("spec", parameters([s for s in SPECS if s.differentiable]))


def subject(spec: TableRow) -> Callable[..., Any]:
    return lambda *args: spec.fun(jnp, *args)


def check(spec: TableRow, got: Any, want: Any) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    scale = max(1.0, float(np.abs(want).max(initial=0))) if want.dtype.kind == "f" else 1.0
    np.testing.assert_allclose(got, want, rtol=spec.rtol, atol=spec.atol * scale)


def put(args: list[np.ndarray]) -> list[Any]:
    return [jnp.asarray(x) for x in args]


def weights(shape: tuple[int, ...]) -> np.ndarray:
    """Fixed weights of a sum, so that gradients of outputs of any shape are tested in every element."""
    return np.cos(1.0 + np.arange(np.prod(shape, dtype=int))).reshape(shape)


def weighted(fun: Callable[..., Any], xp: Any) -> Callable[..., Any]:
    def total(*args: Any) -> Any:
        out = fun(*args)
        return xp.sum(out * xp.asarray(weights(out.shape), dtype=out.dtype))

    return total


def float_positions(args: list[np.ndarray]) -> tuple[int, ...]:
    return tuple(i for i, x in enumerate(args) if is_float(x))


@every_row
def test_eager(spec: TableRow, platform: str) -> None:
    args = spec.args()
    check(spec, subject(spec)(*put(args)), spec.expected(*map(widen, args)))


@every_row
def test_jit(spec: TableRow, platform: str) -> None:
    args = spec.args()
    check(spec, jax.jit(subject(spec))(*put(args)), spec.expected(*map(widen, args)))


@every_row
def test_vmap(spec: TableRow, platform: str) -> None:
    args = spec.args(BATCH)
    check(spec, jax.vmap(subject(spec))(*put(args)), stacked(spec.expected, args))


@every_row
def test_vmap_over_one_argument_and_trailing_axis(spec: TableRow, platform: str) -> None:
    args = spec.args()
    args[0] = np.stack(spec.args(BATCH)[0], axis=-1)
    fun = jax.vmap(subject(spec), in_axes=(-1,) + (None,) * (len(args) - 1), out_axes=-1)
    rows = [spec.expected(*map(widen, [args[0][..., i], *args[1:]])) for i in range(BATCH)]
    check(spec, fun(*put(args)), np.stack(rows, axis=-1))


@differentiable_rows
def test_jvp(spec: TableRow, platform: str) -> None:
    args = spec.args()
    moving = float_positions(args)
    tangents = [weights(x.shape) if i in moving else None for i, x in enumerate(args)]

    def of_floats(*floats: Any) -> Any:
        return subject(spec)(*merged(args, moving, floats))

    primals = put([args[i] for i in moving])
    directions = [jnp.asarray(tangents[i], dtype=jnp.float32) for i in moving]
    _, got = jax.jvp(of_floats, primals, directions)
    check(spec, got, directional(spec.expected, args, tangents))


@differentiable_rows
def test_grad(spec: TableRow, platform: str) -> None:
    args = spec.args()
    moving = float_positions(args)
    got = jax.grad(weighted(subject(spec), jnp), argnums=moving)(*put(args))
    for which, g in zip(moving, got):
        check(spec, g, gradient(weighted(spec.expected, np), args, which))


@differentiable_rows
def test_jit_vmap_grad(spec: TableRow, platform: str) -> None:
    args = spec.args(BATCH)
    which = float_positions(args)[-1]
    got = jax.jit(jax.vmap(jax.grad(weighted(subject(spec), jnp), argnums=which)))(*put(args))
    check(spec, got, stacked(lambda *one: gradient(weighted(spec.expected, np), one, which), args))


def stacked(fun: Callable[..., Any], args: list[np.ndarray]) -> np.ndarray:
    return np.stack([fun(*(widen(x[i]) for x in args)) for i in range(BATCH)])


def merged(args: list[Any], positions: tuple[int, ...], values: tuple[Any, ...]) -> list[Any]:
    out = list(args)
    for i, v in zip(positions, values):
        out[i] = v
    return out
