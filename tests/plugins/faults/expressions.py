"""One wrong thing in an expression or in the stores of a kernel: what a slip in a lowering or a fuser leaves there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from polyax_kernels.ir.expr import Axis, Expr, Fold, Load, const, fold, index, make, op, postorder, rewrite
from polyax_kernels.ir.kernel import Stage, Store, map_stages
from polyax_kernels.lower.lowering import Update

Slip = Callable[[Expr], Expr | None]
"""Another node in place of one; None where there is nothing to get wrong."""

OTHERS = {
    "add": "sub", "sub": "add", "mul": "add", "div": "mul", "max": "min", "min": "max", "sin": "cos", "cos": "sin",
    "exp": "expm1", "log": "log1p", "tanh": "sin", "neg": "abs", "abs": "neg", "sqrt": "abs", "lt": "le", "le": "lt",
    "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq", "and": "or", "or": "xor", "xor": "and", "rem": "div", "pow": "mul",
    "atan2": "div", "argmax": "argmin", "argmin": "argmax", "floor": "ceil", "logistic": "tanh",
    "shift_left": "shift_right_logical", "shift_right_logical": "shift_left",
}  # fmt: skip


def swapped_operands(x: Expr) -> Expr | None:
    if x.kind != "op" or len(x.args) < 2 or x.args[-1] is x.args[-2]:
        return None
    return op(x.attr, *x.args[:-2], x.args[-1], x.args[-2])


def dropped_operand(x: Expr) -> Expr | None:
    """The first one is all that's left."""
    return x.args[0] if x.kind == "op" and len(x.args) > 1 and x.args[0].dtype == x.dtype else None


def other_operation(x: Expr) -> Expr | None:
    return op(OTHERS[x.attr], *x.args) if x.kind == "op" and x.attr in OTHERS else None


def one_more(x: Expr) -> Expr | None:
    """Also the constants of indices."""
    return const(x.attr + 1, x.dtype) if x.kind == "const" and x.dtype.kind in "iuf" else None


def other_sign(x: Expr) -> Expr | None:
    return const(-x.attr, x.dtype) if x.kind == "const" and x.dtype.kind in "if" and x.attr else None


def indices(x: Expr) -> tuple[Expr, ...]:
    """Of a load."""
    return x.args[:-2] if x.attr.masked else x.args


def moved(by: int, dim: int) -> Slip:
    def slip(x: Expr) -> Expr | None:
        if x.kind != "load" or not indices(x):
            return None
        at = list(indices(x))
        at[dim] = at[dim] + by
        return make("load", x.dtype, (*at, *x.args[len(at) :]), x.attr)

    return slip


def wrong_axis(x: Expr) -> Expr | None:
    if x.kind != "load" or len(at := indices(x)) < 2:
        return None
    return make("load", x.dtype, (*at[::-1], *x.args[len(at) :]), x.attr)


def without_mask(x: Expr) -> Expr | None:
    if x.kind != "load" or not x.attr.masked:
        return None
    return make("load", x.dtype, indices(x), Load(x.attr.slot))


def turned_mask(x: Expr) -> Expr | None:
    if x.kind != "load" or not x.attr.masked:
        return None
    *at, mask, other = x.args
    return make("load", x.dtype, (*at, op("not", mask), other), x.attr)


def without_cast(x: Expr) -> Expr | None:
    return x.args[0] if x.kind in ("cast", "bitcast") else None


def bits_for_cast(x: Expr) -> Expr | None:
    same = (
        x.kind == "cast"
        and x.dtype.itemsize == x.args[0].dtype.itemsize
        and "b" not in (x.dtype.kind, x.args[0].dtype.kind)
    )
    return make("bitcast", x.dtype, x.args) if same else None


def other_start(x: Expr) -> Expr | None:
    """Folds begin at seven."""
    if x.kind != "fold":
        return None
    half = len(x.args) // 2
    return fold(x.attr.combine, x.attr.axes, (const(7, x.args[0].dtype), *x.args[1:half]), x.args[half:], x.attr.which)


def other_fold(x: Expr) -> Expr | None:
    if x.kind != "fold" or x.attr.combine not in OTHERS:
        return None
    other = "max" if x.attr.combine == "add" else "add" if x.attr.combine == "mul" else OTHERS[x.attr.combine]
    return make("fold", x.dtype, x.args, Fold(other, x.attr.axes, x.attr.which))


def other_extent(by: int) -> Slip:
    """The last axis of a fold is longer or shorter than it should be."""

    def slip(x: Expr) -> Expr | None:
        if x.kind != "fold" or not isinstance(x.attr.axes[-1].extent, int):
            return None
        axes = (*x.attr.axes[:-1], Axis(x.attr.axes[-1].extent + by, "wrong"))
        half = len(x.args) // 2
        bodies = tuple(renamed(b, x.attr.axes[-1], axes[-1]) for b in x.args[half:])
        return fold(x.attr.combine, axes, x.args[:half], bodies, x.attr.which)

    return slip


def renamed(x: Expr, old: Axis, new: Axis) -> Expr:
    return rewrite(x, lambda e: index(new) if e.kind == "index" and e.attr is old else None)


SLIPS: dict[str, Slip] = {
    "operands swapped": swapped_operands,
    "an operand dropped": dropped_operand,
    "another operation": other_operation,
    "a constant one more": one_more,
    "a constant of the other sign": other_sign,
    "one row on": moved(1, 0),
    "one row back": moved(-1, 0),
    "one column on": moved(1, -1),
    "another axis": wrong_axis,
    "no mask": without_mask,
    "the other mask": turned_mask,
    "no cast": without_cast,
    "bits instead of values": bits_for_cast,
    "a fold that starts elsewhere": other_start,
    "another fold": other_fold,
    "a fold too short": other_extent(-1),
    "a fold too long": other_extent(1),
}


def slipped(slip: Slip, x: Expr, *, first: bool = False) -> Expr:
    """``x`` with the slip made at the last place in the order of evaluation that allows it, or at the first one."""
    found = [node for node in postorder(x) if slip(node) is not None]
    if not found:
        return x
    at = found[0 if first else -1]
    if at is x:
        changed = slip(x)
        return x if changed is None else changed
    return rewrite(x, lambda node: slip(node) if node is at else None)


# --- stores -----------------------------------------------------------------------------------------------------------

Slipped = Callable[[Expr], Expr]


def in_values(change: Slipped) -> Callable[[Store], Store]:
    return lambda s: replace(s, value=change(s.value))


def in_indices(change: Slipped) -> Callable[[Store], Store]:
    return lambda s: replace(s, indices=tuple(map(change, s.indices)))


def everywhere(change: Callable[[Store], Store | None], stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """``change`` made to all stores; those of which it gives None are left out."""
    kept = [replace(s, stores=tuple([x for x in map(change, s.stores) if x is not None])) for s in stages]
    return tuple([s for s in kept if s.stores])


STORES: dict[str, Callable[[Store], Store | None]] = {
    "stored one on": lambda s: replace(s, indices=(*s.indices[:-1], s.indices[-1] + 1)) if s.indices else s,
    "stored across": lambda s: replace(s, indices=s.indices[::-1]),
    "stored everywhere": lambda s: replace(s, mask=None),
    "stored where it shouldn't be": lambda s: s if s.mask is None else replace(s, mask=op("not", s.mask)),
    "stored, not added": lambda s: replace(s, combine=None),
    "added, not stored": lambda s: replace(s, combine="add"),
    "not stored": lambda s: None,
    "stored as zeros": lambda s: replace(s, value=const(0, s.value.dtype)),
    "stored with another type": lambda s: replace(s, value=make("cast", np.dtype("int16"), (s.value,))),
}


def shorter(grid: tuple[Axis, ...], by: int) -> tuple[tuple[Axis, ...], Mapping[Axis, Axis]]:
    """The grid with a last axis of another extent, and what that axis is in place of."""
    *rest, last = grid
    assert isinstance(last.extent, int)
    wrong = Axis(last.extent + by, "wrong")
    return (*rest, wrong), {last: wrong}


def regrid(stages: tuple[Stage, ...], axes: Mapping[Axis, Axis]) -> tuple[Stage, ...]:
    def change(x: Expr) -> Expr:
        return rewrite(x, lambda e: index(axes[e.attr]) if e.kind == "index" and e.attr in axes else None)

    return map_stages(stages, change)


def another_grid(update: Update, by: int) -> Update:
    if not update.grid:
        return update
    grid, axes = shorter(update.grid, by)
    return replace(update, grid=grid, stages=regrid(update.stages, axes))


UPDATES: dict[str, Callable[[Update], Any]] = {
    **{name: lambda u, f=f: replace(u, stages=everywhere(f, u.stages)) for name, f in STORES.items()},
    "a grid too short": lambda u: another_grid(u, -1),
    "a grid too long": lambda u: another_grid(u, 1),
    "nothing updated": lambda u: replace(u, updates=None),
    "the last operand updated": lambda u: replace(u, updates=1),
    "in any order": lambda u: replace(u, ordered=False),
    "no stages": lambda u: replace(u, stages=()),
}
