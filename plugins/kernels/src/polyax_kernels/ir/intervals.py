"""Interval arithmetic on integer and bool expressions: between which values each can lie.

Sound for wrapping arithmetic: a result that could leave its type is the whole type. Symbolic extents are taken as
non-negative, as lengths are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from polyax_kernels.ir.expr import INT, Expr

Interval = tuple[int, int]


def whole(dtype: np.dtype) -> Interval:
    """All values of ``dtype``."""
    if dtype.kind == "b":
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _mul(x: Interval, y: Interval) -> Interval:
    corners = [a * b for a in x for b in y]
    return min(corners), max(corners)


def _floordiv(x: Interval, y: Interval) -> Interval | None:
    corners = [a // b for a in x for b in y if b]
    return (min(corners), max(corners)) if y[0] > 0 else None


def _mod(x: Interval, y: Interval) -> Interval | None:
    if y[0] <= 0:
        return None
    if y[0] == y[1] and x[0] // y[0] == x[1] // y[0]:
        return x[0] % y[0], x[1] % y[0]
    return (0, min(x[1], y[1] - 1)) if x[0] >= 0 else (0, y[1] - 1)


def _less(x: Interval, y: Interval) -> Interval:
    return int(x[1] < y[0]), int(x[0] < y[1])


def _equal(x: Interval, y: Interval) -> Interval:
    return int(x[0] == x[1] == y[0] == y[1]), int(x[0] <= y[1] and y[0] <= x[1])


def _not(x: Interval) -> Interval:
    return 1 - x[1], 1 - x[0]


_RULES: dict[str, Callable[..., Interval | None]] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "sub": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "neg": lambda x: (-x[1], -x[0]),
    "mul": _mul,
    "floordiv": _floordiv,
    "mod": _mod,
    "div": lambda x, y: _floordiv(x, y) if x[0] >= 0 else None,
    "rem": lambda x, y: _mod(x, y) if x[0] >= 0 else None,
    "min": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    "max": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    "clamp": lambda low, x, high: (min(max(low[0], x[0]), high[0]), min(max(low[1], x[1]), high[1])),
    "select": lambda c, x, y: x if c[0] else (min(x[0], y[0]), max(x[1], y[1])) if c[1] else y,
    "lt": _less,
    "gt": lambda x, y: _less(y, x),
    "le": lambda x, y: _not(_less(y, x)),
    "ge": lambda x, y: _not(_less(x, y)),
    "eq": _equal,
    "ne": lambda x, y: _not(_equal(x, y)),
    "and": lambda x, y: (0, min(x[1], y[1])) if x[0] >= 0 and y[0] >= 0 else None,
}


_ENDLESS = 1 << 64
_IF_TRUE: dict[str, Callable[[Interval], Interval]] = {
    "lt": lambda y: (-_ENDLESS, y[1] - 1),
    "le": lambda y: (-_ENDLESS, y[1]),
    "gt": lambda y: (y[0] + 1, _ENDLESS),
    "ge": lambda y: (y[0], _ENDLESS),
    "eq": lambda y: y,
}
"""Comparison -> where its left operand lies if it holds, by the interval of the right one."""


def _both(x: Interval, y: Interval) -> Interval:
    return max(x[0], y[0]), min(x[1], y[1])


def _conditions(mask: Expr) -> Iterator[Expr]:
    """What must all hold for ``mask`` to hold."""
    stack = [mask]
    while stack:
        x = stack.pop()
        if x.kind == "op" and x.attr == "and":
            stack += x.args
        else:
            yield x


class Intervals:
    """Remembers the interval of every expression that it was asked for; ``assumed`` ones are known to be so narrow."""

    def __init__(self, assumed: Mapping[Expr, Interval] | None = None) -> None:
        self._known: dict[Expr, Interval] = {}
        self._assumed = assumed or {}

    def __call__(self, x: Expr) -> Interval:
        found = self._known.get(x)
        if found is None:
            found = self._clip(x, self._compute(x))
            found = self._known[x] = _both(found, self._assumed[x]) if x in self._assumed else found
        return found

    def where(self, mask: Expr) -> Intervals | None:
        """The intervals at the points where ``mask`` holds; None if there is none.

        >>> from polyax_kernels.ir.expr import Axis, consing, index
        >>> with consing():
        ...     i = index(Axis(8)) + -2
        ...     Intervals()(i), Intervals().where((i >= 0) & (i < 4))(i)
        ((-2, 5), (0, 3))
        """
        assumed: dict[Expr, Interval] = {}
        for x in _conditions(mask):
            if not self(x)[1]:
                return None
            if x.kind == "op" and x.attr in _IF_TRUE and x.args[0].dtype.kind in "biu":
                left, right = x.args
                found = _both(assumed.get(left) or self(left), _IF_TRUE[x.attr](self(right)))
                if found[0] > found[1]:
                    return None
                assumed[left] = found
        return Intervals(assumed)

    def _clip(self, x: Expr, bounds: Interval | None) -> Interval:
        least, greatest = whole(x.dtype)
        return bounds if bounds and least <= bounds[0] and bounds[1] <= greatest else (least, greatest)

    def _compute(self, x: Expr) -> Interval | None:
        if x.kind == "const":
            return int(x.attr), int(x.attr)
        if x.kind == "index":
            extent = x.attr.extent
            return 0, max(0, (self(extent)[1] if isinstance(extent, Expr) else extent) - 1)
        if x.kind == "param" and x.dtype == INT:
            return 0, 2**48
        if x.kind == "cast" and x.args[0].dtype.kind in "biu" and x.dtype.kind != "b":
            return self(x.args[0])
        if x.kind == "op" and x.attr == "not" and x.dtype.kind == "b":
            return _not(self(x.args[0]))
        rule = _RULES.get(x.attr) if x.kind == "op" else None
        if rule is None or any(a.dtype.kind not in "biu" for a in x.args):
            return None
        return rule(*map(self, x.args))
