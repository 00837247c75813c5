"""How far a linear index moves when one axis advances."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from polyax_kernels.ir.expr import Axis, Expr, points, postorder

NEAR = (1, 2)
"""Elements that neighbours are apart: of complex numbers the same parts are two."""


def steps_across(at: Expr, along: Axis, neighbours: Axis) -> bool:
    """Whether steps ``along`` an axis go through memory at the linear index ``at`` across where ``neighbours`` lie."""
    return stride(at, neighbours) in NEAR and stride(at, along) not in (0, *NEAR)


def stride(at: Expr, axis: Axis) -> int | None:
    """The coefficient of ``axis`` in ``at``; None if ``at`` isn't linear in it with a constant coefficient.

    >>> from polyax_kernels.ir.expr import consing, index
    >>> with consing():
    ...     i, j = Axis(8, "i"), Axis(4, "j")
    ...     stride(index(i) * 4 + index(j), i)
    4
    """
    known: dict[Expr, int | None] = {}
    for x in postorder(at):
        known[x] = _stride(x, axis, [known[a] for a in x.args])
    return known[at]


def origin(at: Expr) -> int | None:
    """The value of ``at`` where all indices are 0; None if it isn't made of sums and products of them and constants.

    >>> from polyax_kernels.ir.expr import consing, index
    >>> with consing():
    ...     origin(index(Axis(8, "i")) * 4 + 3)
    3
    """
    known: dict[Expr, int | None] = {}
    for x in postorder(at):
        known[x] = _at_zero(x, [known[a] for a in x.args])
    return known[at]


def _at_zero(x: Expr, parts: list[int | None]) -> int | None:
    if x.kind in ("index", "const"):
        return 0 if x.kind == "index" else int(x.attr) if x.dtype.kind in "iub" else None
    values = [n for n in parts if n is not None]
    if x.kind != "op" or len(values) < len(parts) or x.attr not in ("add", "sub", "mul", "neg"):
        return None
    first, last = values[0], values[-1]
    return {"add": first + last, "sub": first - last, "mul": first * last, "neg": -last}[x.attr]


def contiguous_from(indices: Sequence[Expr], shape: Sequence[int], grid: Sequence[Axis]) -> int | None:
    """Where the block of memory begins, in elements, that the points of ``grid`` walk through in order.

    None if they don't: ``indices`` into a row-major array of ``shape`` skip, repeat or reorder elements.
    """
    sizes = [prod(shape[k + 1 :]) for k in range(len(shape))]
    for n, axis in enumerate(grid):
        steps = [stride(at, axis) for at in indices]
        if axis.extent != 1 and (None in steps or _dot(steps, sizes) != points(grid[n + 1 :])):
            return None
    starts = [origin(at) for at in indices]
    return None if None in starts else _dot(starts, sizes)


def _dot(steps: Sequence[int | None], sizes: Sequence[int]) -> int:
    return sum((n or 0) * size for n, size in zip(steps, sizes, strict=True))


def _stride(x: Expr, axis: Axis, parts: list[int | None]) -> int | None:
    if x.kind == "index":
        return int(x.attr is axis)
    if not any(n != 0 for n in parts):
        return 0
    if x.kind != "op" or None in parts or x.attr not in ("add", "sub", "mul", "neg"):
        return None
    steps = [n for n in parts if n is not None]
    if x.attr == "mul":
        return _scaled(x, steps)
    first, last = steps[0], steps[-1]
    return {"add": first + last, "sub": first - last, "neg": -last}[x.attr]


def _scaled(x: Expr, steps: list[int]) -> int | None:
    """One factor must be a constant."""
    a, b = x.args
    if b.kind == "const":
        return steps[0] * b.attr
    return steps[1] * a.attr if a.kind == "const" else None
