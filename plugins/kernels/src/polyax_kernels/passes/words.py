"""Pairs of 32-bit numbers, complex ones mostly, read and written as one word of 64 bits.

``out[i, 0] = f(x[j, 0], x[j, 1]); out[i, 1] = g(x[j, 0], x[j, 1])`` is ``out[i] = word(f(low, high), g(low, high))`` of
``x[j]``, on operands without the dimension of two. Half as many loads and stores, of places that lie next to each
other, so that vectors, squares of transposes and blocks of rows serve pairs as they do single numbers; words are taken
apart in registers. What is only moved isn't taken apart at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from polyax_kernels.ir.expr import Expr, bitcast, cast, const, load, op, postorder, rewriter
from polyax_kernels.ir.kernel import Kernel, Operand, Store, kernel_roots, map_store, with_stores

WORD, HALF = np.dtype("uint64"), np.dtype("uint32")
BITS = 32
"""Of a half."""


def in_words(kernel: Kernel) -> Kernel:
    """The kernel on words of 64 bits, as far as it reads and writes whole pairs; it itself, where it doesn't."""
    slots = {n for n, operand in enumerate(kernel.operands) if _of_pairs(operand)}
    if not slots:
        return kernel
    loads = [x for x in postorder(*kernel_roots(kernel)) if x.kind == "load" and x.attr.slot in slots]
    slots -= {x.attr.slot for x in loads if not _is_half(x)}
    slots -= {slot for stage in kernel.stages for slot in _written_by_halves(stage.stores)}
    if not slots:
        return kernel
    halved = rewriter(lambda x: _half(x) if x.kind == "load" and x.attr.slot in slots else None)
    stages = [with_stores(s, tuple(_joined([map_store(x, halved) for x in s.stores], slots))) for s in kernel.stages]
    operands = [replace(o, shape=o.shape[:-1], dtype=WORD) if n in slots else o for n, o in enumerate(kernel.operands)]
    return replace(kernel, stages=tuple(stages), operands=tuple(operands))


def _of_pairs(operand: Operand) -> bool:
    return len(operand.shape) > 1 and operand.shape[-1] == 2 and operand.dtype.itemsize == 4 and operand.role != "local"


def _is_half(x: Expr) -> bool:
    """Whether it is known which of two a load of pairs reads."""
    return x.args[_rank(x) - 1].kind == "const"


def _rank(x: Expr) -> int:
    return len(x.args) - 2 * x.attr.masked


def _written_by_halves(stores: Sequence[Store]) -> set[int]:
    """The slots of stores without a twin next to them."""
    twins = {id(s) for a, b in pairwise(stores) if _are_twins(a, b) for s in (a, b)}
    return {s.slot for s in stores if id(s) not in twins}


def _are_twins(a: Store, b: Store) -> bool:
    alike = (a.slot, a.mask, a.combine, a.indices[:-1]) == (b.slot, b.mask, b.combine, b.indices[:-1])
    return alike and a.combine is None and (a.indices[-1:], b.indices[-1:]) == ((const(0),), (const(1),))


def _joined(stores: Sequence[Store], slots: set[int]) -> Iterator[Store]:
    """One store for each two to ``slots``."""
    rest = iter(stores)
    for store in rest:
        if store.slot in slots:
            yield replace(store, indices=store.indices[:-1], value=word(store.value, next(rest).value))
        else:
            yield store


def _half(x: Expr) -> Expr:
    """The load ``x`` of half a pair as part of a word. Where a mask is false, a load of words gives 0."""
    rank = _rank(x)
    *place, which = x.args[:rank]
    whole = load(x.attr.slot, WORD, tuple(place), *x.args[rank : rank + 1])
    half = bitcast(cast(op("shift_right_logical", whole, const(BITS, WORD)) if which.attr else whole, HALF), x.dtype)
    if not x.attr.masked or x.args[rank + 1] is const(0, x.dtype):
        return half
    return op("select", x.args[rank], half, x.args[rank + 1])


def word(low: Expr, high: Expr) -> Expr:
    """The word of two values of 32 bits."""
    whole = _moved(low, high)
    if whole is not None:
        return whole
    halves = [cast(bitcast(x, HALF), WORD) for x in (low, high)]
    return op("or", halves[0], op("shift_left", halves[1], const(BITS, WORD)))


def _moved(low: Expr, high: Expr) -> Expr | None:
    """The word of two values, if it is made without putting together anything."""
    if low.kind == high.kind == "const":
        bits = b"".join(np.array(x.attr).astype(x.dtype).tobytes() for x in (low, high))
        return const(int.from_bytes(bits, "little"), WORD)
    if low.kind == high.kind == "op" and low.attr == high.attr == "select" and low.args[0] is high.args[0]:
        either, other = (_moved(x, y) for x, y in zip(low.args[1:], high.args[1:], strict=True))
        return None if either is None or other is None else op("select", low.args[0], either, other)
    whole = _taken_of(low)
    shifted = None if whole is None else op("shift_right_logical", whole, const(BITS, WORD))
    return whole if shifted is _taken_of(high) else None


def _taken_of(half: Expr) -> Expr | None:
    """The word that ``half`` is the end of; None if it is none."""
    bits = half.args[0] if half.kind == "bitcast" else half
    return bits.args[0] if bits.kind == "cast" and bits.args[0].dtype == WORD else None
