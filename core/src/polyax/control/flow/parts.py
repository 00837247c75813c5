"""A scan as a scan of scans, so that something can be done after each part of its turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyax.control.flow.looping import scan
from polyax.ops.basis import reshape
from polyax.ops.joining import concatenate
from polyax.ops.slicing import slice_in_dim
from polyax.trace.tree import tree_map


def scan_in_parts(
    f: Callable[..., Any], init: Any, xs: Any, length: int, reverse: bool, parts: int, after: Callable[[int], None]
) -> tuple[Any, Any]:
    """``scan``, where ``after(turns)`` is called in the program when a part of so many turns is done.

    There are at most ``parts``, of one size; what remains comes last.
    """
    size = max(1, -(-length // parts))
    whole = length - length % size
    cut = length - whole if reverse else whole
    first, last = (_between(xs, 0, cut), _between(xs, cut, length))
    of_parts, rest = (last, first) if reverse else (first, last)

    def part(carry: Any, x: Any, turns: int = size) -> tuple[Any, Any]:
        carry, ys = scan(f, carry, x, turns, reverse)
        after(turns)
        return carry, ys

    grouped = tree_map(lambda x: reshape(x, (whole // size, size, *x.shape[1:])), of_parts)
    carry, ys = scan(part, init, grouped, whole // size, reverse)
    ys = tree_map(lambda y: reshape(y, (whole, *y.shape[2:])), ys)
    if whole == length:
        return carry, ys
    carry, others = part(carry, rest, length - whole)
    both = (others, ys) if reverse else (ys, others)
    return carry, tree_map(lambda a, b: concatenate([a, b], 0), *both)


def _between(xs: Any, start: int, stop: int) -> Any:
    return tree_map(lambda x: slice_in_dim(x, start, stop), xs)
