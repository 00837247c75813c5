"""Reads and writes at computed positions. Nothing leaves its array: positions are clamped, or checked by a mask."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
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


def _places(
    shape: Sequence[int],
    window: Sequence[int],
    at: dict[int, Expr],
    inside: dict[int, Expr],
    starts: dict[int, Expr],
    *,
    clamps: bool,
) -> tuple[tuple[Expr, ...], Expr | None]:
    """Where the element ``inside`` a ``window`` is that begins at ``starts``, and at the indices ``at`` of batching
    dimensions; and the mask that says whether the window fits, if it isn't moved such that it does."""
    conditions: list[Expr] = []
    for dim, start in starts.items():
        last = shape[dim] - window[dim]
        conditions += [] if clamps else [start >= 0, start <= last]
        start = clamped(start, last) if clamps else start
        at[dim] = start + inside[dim] if dim in inside else start
    every = {dim: const(0) for dim in range(len(shape))} | inside | at
    return tuple([every[dim] for dim in range(len(shape))]), all_of(conditions)


def _starts_of(indices: Read, batch: Sequence[Expr], dims: Sequence[int]) -> dict[int, Expr]:
    """The dimensions that an index vector is about, and what it says."""
    return {dim: indices.index(*batch, const(n)) for n, dim in enumerate(dims)}


def _within(rank: int, left_out: Sequence[int], offsets: Sequence[Expr]) -> dict[int, Expr]:
    """The offsets of the dimensions that windows have."""
    return dict(zip([d for d in range(rank) if d not in left_out], offsets, strict=True))


@kernels("gather")
def _gather(out: Out, x: Read, indices: Read, *, dimension_numbers: Any, slice_sizes: Any, mode: Any, **p: Any) -> Expr:
    """Each element of a slice is read where its index vector says; see ``polyax.ops.gather``. Slices that leave the
    array are filled, or moved into it."""
    d = dimension_numbers
    batch = [i for n, i in enumerate(out.i) if n not in d.offset_dims]
    at = {dim: batch[n] for dim, n in zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True)}
    inside = _within(len(x.shape), (*d.collapsed_slice_dims, *at), [out.i[n] for n in d.offset_dims])
    starts = _starts_of(indices, batch, d.start_index_map)
    places, mask = _places(x.shape, slice_sizes, at, inside, starts, clamps=mode.name != "FILL_OR_DROP")
    return x(*places, mask=mask, other=None if mask is None else const(p["fill_value"], x.dtype))


def _scatter(combine: str | None) -> Kernels:
    def build(
        out: Out, x: Read, indices: Read, updates: Read, *, dimension_numbers: Any, mode: Any, **p: Any
    ) -> Update:
        """Each update goes where its index vector says, in order unless no two can meet."""
        d = dimension_numbers
        grid, i = out.grid(updates.shape)
        batch = [k for n, k in enumerate(i) if n not in d.update_window_dims]
        at = {dim: batch[n] for dim, n in zip(d.operand_batching_dims, d.scatter_indices_batching_dims, strict=True)}
        inside = _within(len(x.shape), (*d.inserted_window_dims, *at), [i[n] for n in d.update_window_dims])
        starts = _starts_of(indices, batch, d.scatter_dims_to_operand_dims)
        window = d.window(x.shape, updates.shape)
        places, mask = _places(x.shape, window, at, inside, starts, clamps=mode.name == "CLIP")
        store = Store(out.slot, places, updates(*i), mask, combine)
        meet = not p.get("unique_indices", False) and prod(indices.shape[:-1]) > 1
        return Update(grid, (Stage((), (store,)),), updates=0, ordered=meet)

    return Kernels(build)


RULES["scatter"] = _scatter(None)
RULES.update({f"scatter-{combine}": _scatter(combine) for combine in ("add", "sub", "mul", "min", "max")})
