"""Operations on references that are atomic on GPUs. Kernels run here place after place, so that all are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.control.refs.access import addupdate
from polyax.control.refs.slices import Slice


def _updating(name: str, doc: str, combine: Callable[[Any, Any], Any], repeated: str = "") -> Callable[..., Any]:
    """``repeated``: the method of ``array.at[...]`` that combines what is for the same place."""

    def update(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Any:
        before = x_ref_or_view[idx]
        val = jnp.asarray(val, before.dtype)
        if not _may_repeat(idx) or (repeated == "set" and mask is None):
            after = combine(before, val)
            x_ref_or_view[idx] = after if mask is None else jnp.where(mask, after, before)
        elif repeated in ("max", "min"):
            val = val if mask is None else jnp.where(mask, val, before)  # which changes nothing
            x_ref_or_view[...] = getattr(x_ref_or_view[...].at[idx], repeated)(val)
        else:
            raise NotImplementedError(
                f"{name}{'' if mask is None else ' under a mask'} at arrays of indices, {idx}: they may name a place "
                "several times, and what is for the same place isn't combined. Go through them one by one, in a loop."
            )
        return before

    update.__name__ = update.__qualname__ = name
    update.__doc__ = f"{doc} at ``idx`` of a reference, where ``mask`` holds; gives what was there before."
    return update


def _may_repeat(idx: Any) -> bool:
    """Whether it has arrays of indices, which may name a place several times."""
    places = idx if isinstance(idx, tuple) else (idx,)
    return any(np.ndim(i) > 0 for i in places if not isinstance(i, (slice, Slice)))


atomic_and = _updating("atomic_and", "``& val``", jnp.bitwise_and)
atomic_max = _updating("atomic_max", "The larger of it and ``val``", jnp.maximum, "max")
atomic_min = _updating("atomic_min", "The smaller of it and ``val``", jnp.minimum, "min")
atomic_or = _updating("atomic_or", "``| val``", jnp.bitwise_or)
atomic_xchg = _updating("atomic_xchg", "``val``", lambda _, val: val, "set")
atomic_xor = _updating("atomic_xor", "``^ val``", jnp.bitwise_xor)


def atomic_add(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Any:
    """Adds ``val`` at ``idx`` of a reference, where ``mask`` holds, as often as a place is named; gives what was there
    before.

    >>> import polyax
    >>> ref = polyax.new_ref(jnp.zeros(3))
    >>> atomic_add(ref, jnp.array([0, 2, 0]), 1.0).tolist(), ref[...].tolist()
    ([0.0, 0.0, 0.0], [2.0, 0.0, 1.0])
    """
    before = x_ref_or_view[idx]
    val = jnp.broadcast_to(jnp.asarray(val, before.dtype), before.shape)
    addupdate(x_ref_or_view, idx, val if mask is None else jnp.where(mask, val, 0))
    return before


def atomic_cas(ref: Any, cmp: Any, val: Any) -> Any:
    """Puts ``val`` in place of ``cmp`` if that is what a reference holds; gives what it held before."""
    before = ref[...]
    ref[...] = jnp.where(before == cmp, jnp.asarray(val, before.dtype), before)
    return before


def debug_barrier() -> None:
    """Nothing: no other thread is there to be waited for."""


def max_contiguous(x: Any, values: Any) -> Any:
    """``x``: that so many elements follow each other isn't asked here."""
    return x
