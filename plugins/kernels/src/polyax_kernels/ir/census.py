"""What expressions compute: the loads, how often each runs, the operations, and whether anything is folded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from polyax_kernels.ir.expr import Expr, points
from polyax_kernels.ir.scalars import cost


class Census(NamedTuple):
    """Of expressions that are evaluated a number of times."""

    loads: dict[Expr, int]
    """How often each load runs."""
    costs: dict[Expr, int]
    """The operations of one evaluation of each expression that takes any, loads left out."""
    folds: bool


def census(roots: Iterable[Expr], times: int) -> Census:
    """What is computed if ``roots`` are evaluated so many times: the bodies of folds once per element, and what
    several share as often as the one does that needs it most.

    >>> import numpy as np
    >>> from polyax_kernels.ir.expr import Axis, consing, const, fold, index, load
    >>> i, k, f32 = Axis(8), Axis(16), np.dtype("float32")
    >>> with consing():
    ...     row = fold("add", (k,), (const(0, f32),), (load(0, f32, (index(i), index(k))),))
    ...     found = census([row * 2.0], 8)
    ...     list(found.loads.values()), sum(found.costs.values()), found.folds
    ([128], 2, True)
    """
    seen: dict[Expr, int] = {}
    loads: dict[Expr, int] = {}
    costs: dict[Expr, int] = {}
    waiting = [(times, list(roots))]
    for n, stack in waiting:
        while stack:
            x = stack.pop()
            known = seen.get(x)
            if known is not None and n <= known:
                continue
            seen[x] = n
            if x.kind == "load":
                loads[x] = n
            elif known is None and (operations := cost(x)):
                costs[x] = operations
            if x.kind == "fold":
                waiting.append((n * points(x.attr.axes), list(x.args)))
            else:
                stack += x.args
    return Census(loads, costs, any(x.kind == "fold" for x in costs))
