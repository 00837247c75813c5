"""What threads do at once: each job gives arrays that depend on its seed and platform alone."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np

import polyax as jax
import polyax.numpy as jnp
from polyax import lax

Job = Callable[[int, Any], Any]
JOBS: dict[str, Job] = {}


def job(run: Job) -> Job:
    """``run(seed, device)`` is one."""
    JOBS[run.__name__] = run
    return run


def given(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@jax.jit
def chain(x: Any, y: Any) -> Any:
    return jnp.tanh(x * y + 1.0) - jnp.exp(-y * y)


@jax.jit
@jax.grad
def slope(weights: Any, x: Any) -> Any:
    hidden = jnp.tanh(x @ weights["in"])
    return ((hidden @ weights["out"]) ** 2).mean()


@jax.jit
def walk(x: Any) -> Any:
    return lax.scan(lambda carry, row: (carry * 0.9 + row, carry.sum()), jnp.zeros(x.shape[1:]), x)


@job
def elementwise(seed: int, device: Any) -> Any:
    x, y = jax.device_put((given(seed, 64, 33), given(seed + 1, 33)), device)
    return chain(x, y)


@job
def gradients(seed: int, device: Any) -> Any:
    weights = {"in": given(seed, 12, 20), "out": given(seed + 1, 20, 3)}
    return slope(*jax.device_put((weights, given(seed + 2, 40, 12)), device))


@job
def loops(seed: int, device: Any) -> Any:
    return walk(jax.device_put(given(seed, 50, 7), device))


@job
def long_programs(seed: int, device: Any) -> Any:
    """Handed to the device's queue, and read when half of it may be done."""
    x = jax.device_put(given(seed, 300_000), device)
    for _ in range(3):
        x = chain(x, x)
    return x


@job
def eager_operations(seed: int, device: Any) -> Any:
    x = jax.device_put(given(seed, 9, 9), device)
    return jnp.sort(x, 0)[::2].sum(1) + jnp.where(x > 0, x, -x).max(), jnp.linalg.norm(x)


@job
def compiling(seed: int, device: Any) -> Any:
    """A function that nobody has seen: traced and compiled, and forgotten with its program."""
    return jax.jit(jax.vmap(lambda row: jnp.cumsum(row * float(seed))))(jax.device_put(given(seed, 5, 8), device))


@job
def transfers(seed: int, device: Any) -> Any:
    """To all other devices and back."""
    x = jax.device_put(given(seed, 100), device)
    for other in [*jax.devices(), *jax.devices("reference")]:
        x = jax.device_put(x, other) + 1
    return jax.device_put(x, device)


@job
def donations(seed: int, device: Any) -> Any:
    x = jax.device_put(given(seed, 1000), device)
    out = jax.jit(lambda v: v * 2, donate_argnums=0)(x)
    kept = jax.device_put(given(seed, 10), device)
    kept.delete()
    try:
        return kept + 1
    except RuntimeError as e:
        assert "deleted" in str(e), e
    return out


@job
def callbacks(seed: int, device: Any) -> Any:
    x = jax.device_put(given(seed, 6), device)
    return jax.jit(lambda v: jax.pure_callback(np.sort, jax.ShapeDtypeStruct(v.shape, v.dtype), v) * 2)(x)


@job
def mistakes(seed: int, device: Any) -> Any:
    x, y = jax.device_put((given(seed, 3), given(seed, 4)), device)
    try:
        return jax.jit(jnp.add)(x, y)
    except TypeError as e:
        assert "(3,)" in str(e) and "(4,)" in str(e), e
    return x


@job
def collections(seed: int, device: Any) -> Any:
    """Of garbage, and now and then of all programs, while others run them."""
    if seed % 16 == 0:
        jax.clear_caches()
    gc.collect()
    return jax.device_put(given(seed, 2), device)
