"""``polyax.experimental.shard_alike``: two values that lie on devices in the same way."""

from __future__ import annotations

from typing import Any

from polyax.numpy.promotion import as_array
from polyax.runtime.arrays.array import is_concrete
from polyax.runtime.arrays.placing import device_put
from polyax.trace.tree import tree_flatten, tree_unflatten

__all__ = ["shard_alike"]


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """``x`` and ``y``, laid out alike: arrays outside of programs are put where those of ``x`` lie, within them the
    partitioner decides for both.

    Args:
      x, y: pytrees of one structure, whose leaves have equal shapes.

    Raises:
      ValueError: structures or shapes differ.

    >>> import polyax.numpy as jnp
    >>> [a.tolist() for a in shard_alike(jnp.ones(2), jnp.zeros(2))]
    [[1.0, 1.0], [0.0, 0.0]]
    """
    xs, tree = tree_flatten(x)
    ys, other = tree_flatten(y)
    if tree != other:
        raise ValueError(f"Trees should match. Got x tree: {tree} and y tree: {other}")
    pairs = [_alike(as_array(a), as_array(b)) for a, b in zip(xs, ys, strict=True)]
    return tree_unflatten(tree, [a for a, _ in pairs]), tree_unflatten(tree, [b for _, b in pairs])


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    if a.shape != b.shape:
        raise ValueError(
            "The leaves shapes of `x` and `y` should match. "
            f"Got `x` leaf shape: {a.shape} and `y` leaf shape: {b.shape}."
        )
    if is_concrete(a) and is_concrete(b) and a.sharding != b.sharding:
        return a, device_put(b, a.sharding)
    return a, b
