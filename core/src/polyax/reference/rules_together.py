"""Collectives that are computed for all peers at once, by whoever runs all of them. Nobody waits for anybody.

``rule(outs, args, shared, **params)``: ``outs[n]`` and ``args[n]`` are the arrays of the peer at place n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir.primitive import Primitive
from polyax.ops import collective
from polyax.ops.parts import all_gather_p, all_to_all_p, reduce_scatter_p
from polyax.ops.permuting import ppermute_p
from polyax.reference.rules_collective import pieces
from polyax.runtime.contract.collectives import combined, flat, reduce_share

Arrays = Sequence[np.ndarray]
Shared = Callable[[int, Callable[[int], None]], None]
"""``run(count, work)``: calls ``work`` with each number below ``count``, maybe on several threads."""
Together = Callable[..., None]

LARGE = 1 << 20
"""Collectives of more bytes are shared by threads."""


def in_order(count: int, work: Callable[[int], None]) -> None:
    """``work`` with each number below ``count``, one after the other."""
    for n in range(count):
        work(n)


def _for_each(args: Sequence[Arrays], shared: Shared, work: Callable[[int], None]) -> None:
    """``work`` with the place of each peer."""
    run = shared if _is_large(args) else in_order
    run(len(args), work)


def _is_large(args: Sequence[Arrays]) -> bool:
    return len(args) * sum(x.nbytes for x in args[0]) > LARGE


def _reduction(operation: str) -> Together:
    def reduce(outs: Sequence[Arrays], args: Sequence[Arrays], shared: Shared, **_: Any) -> None:
        if _is_large(args):
            sources, targets = ([[flat(x) for x in xs] for xs in side] for side in (args, outs))
            shared(len(args), lambda n: reduce_share(operation, sources, targets, n))
            return
        for n in range(len(outs[0])):
            total = combined(operation, [xs[n] for xs in args])
            for out in outs:
                out[n][...] = total

    return reduce


def _all_gather(
    outs: Sequence[Arrays], args: Sequence[Arrays], shared: Shared, *, all_gather_dimension: int, tiled: bool, **_: Any
) -> None:
    whole, join = outs[0][0], np.concatenate if tiled else np.stack
    join([x for (x,) in args], all_gather_dimension, out=whole)

    def copy(n: int) -> None:
        if n:
            outs[n][0][...] = whole

    _for_each(args, shared, copy)


def _reduce_scatter(
    outs: Sequence[Arrays],
    args: Sequence[Arrays],
    shared: Shared,
    *,
    axis_size: int,
    scatter_dimension: int,
    tiled: bool,
    **_: Any,
) -> None:
    parts = [pieces(x, scatter_dimension, axis_size, tiled) for (x,) in args]

    def add(n: int) -> None:
        outs[n][0][...] = combined("psum", [p[n] for p in parts])

    _for_each(args, shared, add)


def _all_to_all(
    outs: Sequence[Arrays],
    args: Sequence[Arrays],
    shared: Shared,
    *,
    axis_size: int,
    split_axis: int,
    concat_axis: int,
    tiled: bool,
    **_: Any,
) -> None:
    join = np.concatenate if tiled else np.stack
    parts = [pieces(x, split_axis, axis_size, tiled) for (x,) in args]

    def collect(n: int) -> None:
        join([p[n] for p in parts], concat_axis, out=outs[n][0])

    _for_each(args, shared, collect)


def _ppermute(
    outs: Sequence[Arrays], args: Sequence[Arrays], shared: Shared, *, perm: Sequence[tuple[int, int]], **_: Any
) -> None:
    source = {target: n for n, target in perm}

    def bring(n: int) -> None:
        outs[n][0][...] = args[source[n]][0] if n in source else 0

    _for_each(args, shared, bring)


TOGETHER: dict[Primitive, Together] = {
    **{p: _reduction(p.name) for p in (collective.psum_p, collective.pmax_p, collective.pmin_p)},
    all_gather_p: _all_gather,
    reduce_scatter_p: _reduce_scatter,
    all_to_all_p: _all_to_all,
    ppermute_p: _ppermute,
}
