"""Pairs of 32-bit words that a kernel only moves, moved as one word of 64 bits: complex numbers, mostly.

``out[i, 0] = x[j, 0]; out[i, 1] = x[j, 1]`` is ``out[i] = x[j]`` on operands without the dimension of two. Half as many
loads and stores, and vectors that need not be sorted: transposes and shifts take a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polyax_kernels.ir.expr import Expr, const, load, op, postorder
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store, kernel_roots

WORD = np.dtype("uint64")


def moved_whole(kernel: Kernel) -> Kernel:
    """The kernel on words of 64 bits, if it does nothing but move pairs; it itself otherwise."""
    stores = [store for stage in kernel.stages for store in stage.stores]
    if not all(_of_pairs(kernel.operands[store.slot]) for store in stores):
        return kernel
    stages = [_paired(stage, kernel.operands) for stage in kernel.stages]
    found = tuple([stage for stage in stages if stage is not None])
    if len(found) < len(stages):
        return kernel
    whole = replace(kernel, stages=found)
    loads = [x for x in postorder(*kernel_roots(whole)) if x.kind == "load"]
    slots = {*(x.attr.slot for x in loads if x.dtype == WORD and _of_pairs(kernel.operands[x.attr.slot]))}
    slots |= {store.slot for store in stores}
    if any(x.attr.slot in slots and x.dtype != WORD for x in loads):
        return kernel  # a condition looks into a pair
    operands = [replace(o, shape=o.shape[:-1], dtype=WORD) if n in slots else o for n, o in enumerate(kernel.operands)]
    return replace(whole, operands=tuple(operands))


def _of_pairs(operand: Operand) -> bool:
    return len(operand.shape) > 1 and operand.shape[-1] == 2 and operand.dtype.itemsize == 4 and operand.role != "local"


def _paired(stage: Stage, operands: Sequence[Operand]) -> Stage | None:
    """The stage with one store instead of each two; None if a store has no twin that does the same."""
    firsts, seconds = stage.stores[::2], stage.stores[1::2]
    if len(firsts) != len(seconds):
        return None
    made = [_one_store(a, b, operands) for a, b in zip(firsts, seconds, strict=True)]
    stores = tuple([store for store in made if store is not None])
    return replace(stage, stores=stores) if len(stores) == len(made) else None


def _one_store(a: Store, b: Store, operands: Sequence[Operand]) -> Store | None:
    alike = (a.slot, a.mask, a.combine) == (b.slot, b.mask, b.combine) and a.combine is None
    if not alike or not _next_to_each_other(a.indices, b.indices):
        return None
    value = _one_value(a.value, b.value, operands)
    return None if value is None else Store(a.slot, a.indices[:-1], value, a.mask)


def _next_to_each_other(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> bool:
    return a[:-1] == b[:-1] and (a[-1], b[-1]) == (const(0), const(1))


def _one_value(a: Expr, b: Expr, operands: Sequence[Operand]) -> Expr | None:
    """The word whose lower half is ``a`` and whose upper is ``b``, if it is made without computing anything."""
    if a.kind == b.kind == "const":
        halves = (np.array(x.attr).astype(x.dtype) for x in (a, b))
        return const(int.from_bytes(b"".join(x.tobytes() for x in halves), "little"), WORD)
    if a.kind == b.kind == "op" and a.attr == b.attr == "select" and a.args[0] is b.args[0]:
        either, other = (_one_value(x, y, operands) for x, y in zip(a.args[1:], b.args[1:], strict=True))
        return None if either is None or other is None else op("select", a.args[0], either, other)
    if a.kind == b.kind == "load" and a.attr == b.attr and _of_pairs(operands[a.attr.slot]):
        return _one_load(a, b, operands)
    return None


def _one_load(a: Expr, b: Expr, operands: Sequence[Operand]) -> Expr | None:
    rank = len(operands[a.attr.slot].shape)
    if not _next_to_each_other(a.args[:rank], b.args[:rank]):
        return None
    place = a.args[: rank - 1]
    if not a.attr.masked:
        return load(a.attr.slot, WORD, place)
    mask, other = a.args[rank], _one_value(a.args[rank + 1], b.args[rank + 1], operands)
    return None if mask is not b.args[rank] or other is None else load(a.attr.slot, WORD, place, mask, other)
