"""``polyax.experimental.pallas.triton``: what kernels for Triton name, so that they run as loops elsewhere."""

from __future__ import annotations

from typing import Any

from polyax import late
from polyax import numpy as jnp
from polyax.experimental.pallas.atomics import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xchg,
    atomic_xor,
    debug_barrier,
    max_contiguous,
)
from polyax.experimental.pallas.blocks import CompilerParams

__all__ = [
    "CompilerParams", "approx_tanh", "atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min", "atomic_or",
    "atomic_xchg", "atomic_xor", "debug_barrier", "dot", "load", "max_contiguous", "store",
]  # fmt: skip


def load(
    ref: Any,
    *,
    mask: Any = None,
    other: Any = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: bool = False,
) -> Any:
    """What a reference, or a part of one (``ref.at[...]``), holds.

    Args:
      mask: where it is false, ``other`` is given, or zero.
      cache_modifier, eviction_policy, volatile: for compatibility.
    """
    found = ref[...]
    return found if mask is None else jnp.where(mask, found, jnp.asarray(0 if other is None else other, found.dtype))


def store(ref: Any, val: Any, *, mask: Any = None, eviction_policy: str | None = None) -> None:
    """Writes into a reference, or a part of one (``ref.at[...]``), where ``mask`` holds."""
    ref[...] = val if mask is None else jnp.where(mask, val, ref[...])


def dot(
    a: Any, b: Any, trans_a: bool = False, trans_b: bool = False, allow_tf32: bool | None = None, precision: Any = None
) -> Any:
    """The product of two matrices, each transposed if so asked, in float32, or in int32 for integers."""
    wide = jnp.int32 if jnp.issubdtype(a.dtype, jnp.integer) else jnp.float32
    return jnp.matmul(a.T if trans_a else a, b.T if trans_b else b, precision=precision, preferred_element_type=wide)


def approx_tanh(x: Any) -> Any:
    """``tanh``, not approximated here."""
    return jnp.tanh(x)


def __getattr__(name: str) -> Any:
    return late.load(__name__, late.NOTHING, name)
