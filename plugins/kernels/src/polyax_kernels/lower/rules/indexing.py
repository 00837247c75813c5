"""Reads and writes at computed positions. Nothing leaves its array: positions are clamped, or checked by a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax_kernels.ir.expr import Expr, const, op
from polyax_kernels.ir.kernel import Stage, Store
from polyax_kernels.lower.lowering import Kernels, Out, Read, Update
from polyax_kernels.lower.rules.shape import all_of
from polyax_kernels.lower.rules.table import RULES, kernels


def clamped(i: Expr, last: int) -> Expr:
    """``i`` in ``[0, last]``."""
    return const(0) if last == 0 else op("min", op("max", i, const(0)), const(last))


def _starts(starts: Sequence[Read], shape: Sequence[int], sizes: Sequence[int]) -> list[Expr]:
    """Where a slice begins, such that it fits."""
    return [clamped(s.index(), n - m) for s, n, m in zip(starts, shape, sizes, strict=True)]


def _plus(i: Expr, start: Expr) -> Expr:
    return i if start.kind == "const" and start.attr == 0 else start + i


@kernels("dynamic_slice")
def _dynamic_slice(out: Out, x: Read, *starts: Read, slice_sizes: Sequence[int]) -> Expr:
    return x(*map(_plus, out.i, _starts(starts, x.shape, slice_sizes)))


@kernels("dynamic_update_slice")
def _dynamic_update_slice(out: Out, x: Read, update: Read, *starts: Read) -> Update:
    """Only the slice is written."""
    grid, i = out.grid(update.shape)
    at = tuple(map(_plus, i, _starts(starts, x.shape, update.shape)))
    return Update(grid, (Stage((), (Store(out.slot, at, update(*i)),)),), updates=0)


def _drops(mode: Any) -> bool:
    """Whether slices that leave the array are filled or dropped; else their positions are clamped."""
    return mode.name == "FILL_OR_DROP"


def _index_vector(indices: Read, batch: Sequence[Expr], n: int) -> Expr:
    return indices.index(*batch, const(n))


def _batch_positions(batch: Sequence[Expr], operand_dims: Sequence[int], index_dims: Sequence[int]) -> dict[int, Expr]:
    """The position in each batching dimension of the operand: that in the batching dimension of the indices."""
    return {d: batch[i] for d, i in zip(operand_dims, index_dims, strict=True)}


@kernels("gather")
def _gather(out: Out, x: Read, indices: Read, *, dimension_numbers: Any, slice_sizes: Any, mode: Any, **p: Any) -> Expr:
    """Each element of a slice is read where its index vector says; see ``polyax.ops.gather``."""
    d = dimension_numbers
    batch = [i for n, i in enumerate(out.i) if n not in d.offset_dims]
    offsets = iter([out.i[n] for n in d.offset_dims])
    at = _batch_positions(batch, d.operand_batching_dims, d.start_indices_batching_dims)
    conditions: list[Expr] = []
    for dim, size in enumerate(slice_sizes):
        if dim in at:
            continue
        offset = None if dim in d.collapsed_slice_dims else next(offsets)
        if dim in d.start_index_map:
            start = _index_vector(indices, batch, d.start_index_map.index(dim))
            last = x.shape[dim] - size
            if _drops(mode):
                conditions += [start >= 0, start <= last]
            else:
                start = clamped(start, last)
            at[dim] = start if offset is None else start + offset
        else:
            at[dim] = const(0) if offset is None else offset
    places = [at[dim] for dim in range(len(x.shape))]
    if not conditions:
        return x(*places)
    return x(*places, mask=all_of(conditions), other=const(p["fill_value"], x.dtype))


def _scatter(combine: str | None) -> Kernels:
    def build(
        out: Out, x: Read, indices: Read, updates: Read, *, dimension_numbers: Any, mode: Any, **p: Any
    ) -> Update:
        """Each update goes where its index vector says, in order unless the indices differ."""
        d = dimension_numbers
        grid, i = out.grid(updates.shape)
        batch = [k for n, k in enumerate(i) if n not in d.update_window_dims]
        window = iter([i[n] for n in d.update_window_dims])
        sizes = d.window(x.shape, updates.shape)
        at = _batch_positions(batch, d.operand_batching_dims, d.scatter_indices_batching_dims)
        conditions: list[Expr] = []
        for dim in range(len(x.shape)):
            if dim in at:
                continue
            offset = None if dim in d.inserted_window_dims else next(window)
            if dim not in d.scatter_dims_to_operand_dims:
                at[dim] = const(0) if offset is None else offset
                continue
            start = _index_vector(indices, batch, d.scatter_dims_to_operand_dims.index(dim))
            last = x.shape[dim] - sizes[dim]
            if mode.name == "CLIP":
                start = clamped(start, last)
            else:
                conditions += [start >= 0, start <= last]
            at[dim] = start if offset is None else start + offset
        places = tuple([at[dim] for dim in range(len(x.shape))])
        mask = all_of(conditions) if conditions else None
        store = Store(out.slot, places, updates(*i), mask, combine)
        return Update(grid, (Stage((), (store,)),), updates=0, ordered=not p.get("unique_indices", False))

    return Kernels(build)


RULES["scatter"] = _scatter(None)
RULES.update({f"scatter-{combine}": _scatter(combine) for combine in ("add", "sub", "mul", "min", "max")})
