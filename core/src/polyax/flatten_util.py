"""``polyax.flatten_util``: a pytree of arrays as one vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from polyax import numpy as jnp
from polyax.ir.aval import ShapedArray, aval_of
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """All leaves end to end in one vector, of the dtype that they promote to, and the function that goes back.

    >>> flat, unravel = ravel_pytree({'a': jnp.ones((2, 2)), 'b': 3})
    >>> flat.tolist()
    [1.0, 1.0, 1.0, 1.0, 3.0]
    >>> unravel(flat * 2)['b'].item()
    6
    """
    leaves, treedef = tree_flatten(pytree)
    avals = [aval_of(x) for x in leaves]
    flat = jnp.concatenate([jnp.ravel(x) for x in leaves]) if leaves else jnp.zeros(0)
    flat = flat.astype(flat.dtype) if len({a.dtype for a in avals}) > 1 else flat  # which isn't weak
    return flat, _Unravel(treedef, tuple(avals), aval_of(flat))


@dataclass(frozen=True)
class _Unravel:
    """From the vector of a pytree's elements to the pytree; equal for pytrees of one structure and type."""

    treedef: PyTreeDef
    avals: tuple[ShapedArray, ...]
    vector: ShapedArray

    def __call__(self, flat: Any) -> Any:
        """The pytree with these elements.

        Raises:
          ValueError: their number is another.
          TypeError: the dtypes of the leaves differ, and that of ``flat`` is not what they promote to.
        """
        _check(aval_of(flat), self.vector, self.avals)
        return tree_unflatten(self.treedef, _cut(flat, self.avals))


def _cut(flat: Any, avals: Sequence[ShapedArray]) -> list[Any]:
    """The leaves; if all have one dtype, they take that of ``flat``."""
    mixed = len({a.dtype for a in avals}) > 1
    ends = list(accumulate(a.size for a in avals))
    parts = [jnp.reshape(flat[end - a.size : end], a.shape) for a, end in zip(avals, ends, strict=True)]
    return [x.astype(a.dtype) if mixed else x for x, a in zip(parts, avals, strict=True)]


def _check(got: ShapedArray, want: ShapedArray, avals: Sequence[ShapedArray]) -> None:
    which = "The function returned by ravel_pytree (unravel)"
    if got.shape != want.shape:
        raise ValueError(f"{which} was given an array of shape {got.shape}, but expected {want.shape}: got {got}")
    if len({a.dtype for a in avals}) > 1 and got.dtype != want.dtype:
        raise TypeError(
            f"{which} was given an array of dtype {got.dtype}, but expected dtype {want.dtype}, which those of the "
            f"leaves promote to: got {got}"
        )
