"""``associative_scan``: all prefixes of an associative operation, in a number of steps logarithmic in the length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.ir.aval import aval_of
from polyax.ir.dims import is_symbolic_dim
from polyax.ops.basis import canonical_axis, expand_dims, reshape
from polyax.ops.joining import concatenate
from polyax.ops.shape import rev
from polyax.ops.slicing import slice_in_dim
from polyax.trace.flat import name_of
from polyax.trace.paths import keystr, tree_leaves_with_path
from polyax.trace.tree import tree_flatten, tree_unflatten

Leaves = list[Any]


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The results of combining the first, the first two, ... elements along ``axis``.

    Args:
      fn: an associative operation on pytrees like ``elems``, vectorised over ``axis``.
      elems: a pytree of arrays of one size along ``axis``.
      reverse: combine the elements from the last to the first.

    >>> import numpy as np, operator
    >>> print(associative_scan(operator.add, np.arange(1, 5)))
    [ 1  3  6 10]
    """
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    leaves, tree = tree_flatten(elems)
    if not leaves:
        return elems
    axes = [canonical_axis(axis, aval_of(x).ndim) for x in leaves]
    sizes = {aval_of(x).shape[a] for x, a in zip(leaves, axes, strict=True)}
    if len(sizes) > 1:
        shapes = ", ".join(f"elems{keystr(path)} is {aval_of(x)}" for path, x in tree_leaves_with_path(elems))
        raise ValueError(
            "Array inputs to associative_scan must have the same first dimension. (saw: "
            f"{[aval_of(x).shape for x in leaves]}) That is the one along axis {axis}: {shapes}"
        )

    def combine(a: Leaves, b: Leaves) -> Leaves:
        outs, out_tree = tree_flatten(fn(tree_unflatten(tree, a), tree_unflatten(tree, b)))
        if out_tree != tree:
            raise TypeError(
                f"fn ({name_of(fn)}) of associative_scan must keep the structure {tree}, it gave {out_tree}"
            )
        return outs

    if reverse:
        leaves = [rev(x, (a,)) for x, a in zip(leaves, axes, strict=True)]
    outs = _prefixes(combine, leaves, axes)
    if reverse:
        outs = [rev(x, (a,)) for x, a in zip(outs, axes, strict=True)]
    return tree_unflatten(tree, outs)


def _prefixes(combine: Callable[[Leaves, Leaves], Leaves], xs: Leaves, axes: Sequence[int]) -> Leaves:
    """Neighbours are combined, the prefixes of the pairs are those at odd places, and the others need one step more."""
    n = aval_of(xs[0]).shape[axes[0]]
    if is_symbolic_dim(n):
        raise NotImplementedError(f"associative scan over axis of non-constant size: {n}.")
    if n < 2:
        return xs

    def part(values: Leaves, start: int, stop: int, step: int = 1) -> Leaves:
        return [slice_in_dim(x, start, stop, step, a) for x, a in zip(values, axes, strict=True)]

    odd = _prefixes(combine, combine(part(xs, 0, n - 1, 2), part(xs, 1, n, 2)), axes)
    before = part(odd, 0, (n - 1) // 2)
    even = combine(before, part(xs, 2, n, 2)) if n > 2 else before
    first = part(xs, 0, 1)
    even = [concatenate([f, e], a) for f, e, a in zip(first, even, axes, strict=True)] if n > 2 else first
    return [_interleaved(e, o, a, n) for e, o, a in zip(even, odd, axes, strict=True)]


def _interleaved(even: Any, odd: Any, axis: int, n: int) -> Any:
    """The elements at even and odd places in turns."""
    last = [] if n % 2 == 0 else [slice_in_dim(even, n // 2, n // 2 + 1, 1, axis)]
    pairs = [expand_dims(x, (axis + 1,)) for x in (slice_in_dim(even, 0, n // 2, 1, axis), odd)]
    shape = aval_of(odd).shape
    joined = reshape(concatenate(pairs, axis + 1), (*shape[:axis], 2 * (n // 2), *shape[axis + 1 :]))
    return concatenate([joined, *last], axis) if last else joined
