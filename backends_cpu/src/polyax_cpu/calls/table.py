"""Kinds of calls as tables for native code: trees, leaves and bases, with all that they point to."""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.runtime.arrays.array import Array
from polyax.runtime.contract.calls import CallKind, LeafKind
from polyax.trace.nodes import default_registry
from polyax.trace.tree import PyTreeDef
from polyax_cpu import pool
from polyax_cpu.calls import layout, slots
from polyax_cpu.calls.layout import (
    NativeCall,
    NativeLeaf,
    NativeNode,
    NativeResult,
    NativeShelf,
    NativeTypes,
)
from polyax_cpu.calls.running import ENTER
from polyax_cpu.entry import native_function
from polyax_cpu.notes.reading import Known, know
from polyax_cpu.records import NativeSteps
from polyax_kernels.plan.plan import Plan, Step
from polyax_kernels.run.memory import FREE, SHARED, Memory, Pool, Shelf

MOST = 4096
"""Of nodes, leaves and bases: they take room on the stack."""
LARGEST = 1 << 16
"""Bytes of the host's that are copied while nothing else runs."""

NativeFunction = Callable[[tuple[Any, ...], dict[str, Any]], Any]
_NUMBERS = {
    (float, "float32"): layout.FLOAT32,
    (float, "float64"): layout.FLOAT64,
    (int, "int32"): layout.INT32,
    (int, "int64"): layout.INT64,
    (bool, "bool"): layout.BOOL,
}
_NODES = {tuple: layout.TUPLE, list: layout.LIST, dict: layout.DICT, type(None): layout.NONE}


@functools.cache
def supported() -> bool:
    """Whether objects are counted by one thread at a time: without the interpreter's lock, they'd change meanwhile.
    And whether they look as native code expects."""
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    return locked and ctypes.sizeof(ctypes.c_void_p) == 8 and slots.known()


class _Kept:
    """Structures, and objects that they hold addresses of."""

    def __init__(self) -> None:
        self.objects: list[Any] = []

    def object(self, x: Any) -> int:
        self.objects.append(x)
        return id(x)

    def array(self, items: Sequence[Any], kind: Any) -> int:
        """Their address, next to each other."""
        sized: Any = kind * len(items)
        made = sized(*items)
        self.objects.append(made)
        return ctypes.addressof(made)


@dataclass(frozen=True)
class Runs:
    """What a call runs. ``sources``: the steps of the plan that ``steps`` are. ``literals`` are the plan's, with None
    where the plan has it; ``release``: without the interpreter's lock; ``keep`` must live as long as the steps."""

    plan: Plan
    steps: NativeSteps
    sources: Sequence[Step]
    release: bool
    literals: Sequence[Any]
    pool: Pool
    keep: Any


def native_call(kind: CallKind, runs: Runs) -> NativeFunction | None:
    """The Python function of calls of one kind, which gives NotImplemented for others; None if there is something in
    them that native code doesn't know. Only where such calls are ``supported``."""
    count = len(kind.consts) + len(kind.leaves) + len(runs.plan.fresh) + len(runs.literals)
    if max(count, len(kind.in_tree.entries), len(kind.out_tree.entries)) > MOST:
        return None
    kept = _Kept()
    kept.object(runs)
    leaves = _leaves(kept, kind, runs.pool)
    if leaves is None or not {x.base for x in leaves if _is_ours(x)}.issuperset(runs.plan.overwritten):
        return None
    types = NativeTypes(id(Array), id(Memory), id(FREE), id(SHARED))
    call = NativeCall(steps=runs.steps, release=runs.release, types=types, dtype=kept.object(sys.intern("dtype")))
    call.told = kind.told is not None
    call.seat = kept.object(kind.seat)
    call.tasks = kept.object(kind.seat.device.queue.tasks)
    _arguments(kept, call, kind, leaves)
    _bases(kept, call, kind, runs)
    _results(kept, call, kind, runs.plan)
    address = ctypes.addressof(call) + NativeCall.steps.offset
    kept.objects.append(know(address, Known(runs.sources, str(kind.seat.device), kind.told)))
    return native_function(pool.native_calls.symbols()[ENTER], call, kept.objects)


def _arguments(kept: _Kept, call: NativeCall, kind: CallKind, leaves: Sequence[NativeLeaf]) -> None:
    call.avals = kept.object([x.aval for x in kind.leaves])
    call.leaves, call.leaf_count = kept.array(leaves, NativeLeaf), len(leaves)
    call.donates = any(x.donated for x in leaves)
    nodes = _nodes(kept, kind.in_tree, _places(call.leaves, leaves))[1:]  # the root is always the same
    call.nodes, call.node_count = kept.array(nodes, NativeNode), len(nodes)
    call.depth = 2 + sum(n.count for n in nodes)


def _bases(kept: _Kept, call: NativeCall, kind: CallKind, runs: Runs) -> None:
    """Constants, inputs, fresh memory, literals: as in ``PlanExecutable.launch``."""
    inputs = sum(x.aval is not None for x in kind.leaves)
    arena = [runs.plan.arena_bytes] if runs.plan.arena_bytes else []
    shelves = [_shelf(kept, runs.pool.shelf(n)) for n in (*runs.plan.fresh, *arena)]
    holders: list[Any] = [*kind.consts, *[None] * (inputs + len(shelves)), *runs.literals]
    kept.object(holders)
    call.base_count, call.const_count, call.first_fresh = len(holders), len(kind.consts), len(kind.consts) + inputs
    call.holders = kept.array([id(x) for x in holders], ctypes.c_void_p)
    call.given = kept.array([getattr(x, "pointer", None) for x in holders], ctypes.c_void_p)
    call.shelves, call.shelf_count = kept.array(shelves, NativeShelf), len(shelves)


def _results(kept: _Kept, call: NativeCall, kind: CallKind, plan: Plan) -> None:
    pairs = zip(plan.outputs, kind.out_avals, strict=True)
    results = [NativeResult(n, kept.object(a), n in plan.shared) for n, a in pairs]
    nodes = _nodes(kept, kind.out_tree, _places(kept.array(results, NativeResult), results))
    call.made, call.made_count = kept.array(nodes, NativeNode), len(nodes)


def _places(first: int, items: Sequence[ctypes.Structure]) -> list[int]:
    """The addresses of structures next to each other."""
    return [first + n * ctypes.sizeof(x) for n, x in enumerate(items)]


def _is_ours(leaf: NativeLeaf) -> bool:
    """Whether a program may write to its memory."""
    return leaf.donated or leaf.kind not in (layout.STATIC, layout.STATIC_FLOAT, layout.ARRAY)


def _shelf(kept: _Kept, shelf: Shelf) -> NativeShelf:
    return NativeShelf(kept.object(shelf), kept.object(shelf.free), kept.object(shelf.take))


def _leaves(kept: _Kept, kind: CallKind, pool: Pool) -> list[NativeLeaf] | None:
    found: list[NativeLeaf] = []
    base = len(kind.consts)
    for number, leaf in enumerate(kind.leaves):
        donated = bool(kind.donated) and leaf.aval is not None and kind.donated[base - len(kind.consts)]
        native = _leaf(kept, leaf, number, base, donated, pool)
        if native is None:
            return None
        found.append(native)
        base += leaf.aval is not None
    return found


def _leaf(kept: _Kept, leaf: LeafKind, number: int, base: int, donated: bool, pool: Pool) -> NativeLeaf | None:
    aval, kind = leaf.aval, leaf.type
    where: dict[str, Any] = {"number": number, "base": base, "type": kept.object(kind)}
    if aval is None and kind is float:
        (bits,) = struct.unpack("q", struct.pack("d", leaf.value))
        return NativeLeaf(kind=layout.STATIC_FLOAT, hash=bits, **where)
    if aval is None:
        return NativeLeaf(kind=layout.STATIC, value=kept.object(leaf.value), hash=hash(leaf.value), **where)
    if kind is Array:
        return NativeLeaf(kind=layout.ARRAY, seat=kept.object(leaf.seat), donated=donated, **where)
    code = _NUMBERS.get((kind, aval.dtype.name)) or _memory(kind, aval)
    if code is None:
        return None
    shelf = kept.array([_shelf(kept, pool.shelf(aval.nbytes))], NativeShelf)
    shape = kept.array(aval.shape, ctypes.c_int64)
    size: dict[str, Any] = {"ndim": aval.ndim, "shape": shape, "nbytes": aval.nbytes}
    return NativeLeaf(kind=code, shelf=shelf, dtype=kept.object(aval.dtype), **size, **where)


def _memory(kind: type, aval: ShapedArray) -> int | None:
    """Whether objects of this type show memory as it is on the device."""
    plain = isinstance(aval.dtype, np.dtype) and aval.dtype.isbuiltin == 1 and aval.nbytes <= LARGEST
    return layout.BYTES if plain and (kind is np.ndarray or issubclass(kind, np.generic)) else None


def _nodes(kept: _Kept, tree: PyTreeDef, leaves: Sequence[int]) -> list[NativeNode]:
    """``leaves``: the addresses of what describes them."""
    rest = iter(leaves)
    return [
        NativeNode(kind=layout.LEAF, leaf=next(rest)) if kind is None else _node(kept, kind, aux, count)
        for kind, aux, count in tree.entries
    ]


def _node(kept: _Kept, kind: type, aux: Any, count: int) -> NativeNode:
    found = default_registry.find(kind)
    assert found is not None
    code = _NODES.get(kind, layout.CUSTOM)
    functions = {"flatten": kept.object(found.flatten), "unflatten": kept.object(found.unflatten)}
    return NativeNode(kind=code, type=kept.object(kind), count=count, data=kept.object(aux), **functions)
