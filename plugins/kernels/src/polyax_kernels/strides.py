"""How far a linear index moves when one axis advances."""

from __future__ import annotations

from polyax_kernels.expr import Axis, Expr, postorder


def stride(at: Expr, axis: Axis) -> int | None:
    """The coefficient of ``axis`` in ``at``; None if ``at`` isn't linear in it with a constant coefficient.

    >>> from polyax_kernels.expr import consing, index
    >>> with consing():
    ...     i, j = Axis(8, "i"), Axis(4, "j")
    ...     stride(index(i) * 4 + index(j), i)
    4
    """
    known: dict[Expr, int | None] = {}
    for x in postorder(at):
        known[x] = _stride(x, axis, [known[a] for a in x.args])
    return known[at]


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
