"""What can be wrong with one kernel of a graph: what it says of itself, and where it reads and writes.

Accesses must lie inside their values wherever they happen. By intervals alone, which lowerings take care of: what
depends on data is clamped, or masked by comparisons with the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from polyax_kernels.ir.expr import BOOL, INT, Expr, Load, make, op, points, postorder, pretty, rewrite
from polyax_kernels.ir.graph import Graph, KernelNode, rebuilt
from polyax_kernels.ir.intervals import Interval, Intervals
from polyax_kernels.ir.kernel import Stage, Store, store_roots
from polyax_kernels.ir.origin import equations
from polyax_kernels.ir.scalars import TABLE
from polyax_kernels.ir.simplify import Simplifier


class KernelChecker:
    """``faults(node)`` are texts that follow the node's name; what is known of intervals serves all kernels."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._nodes = [node for node in graph.nodes if isinstance(node, KernelNode)]
        self._everywhere = Intervals()
        self._where: dict[Expr, Intervals | None] = {}

    def faults(self, node: KernelNode) -> Iterator[str]:
        yield from _ill_typed(node)
        yield from self._memory(node)
        for n, stage in enumerate(node.stages):
            if points(node.grid) and points(stage.axes):
                yield from self._loads(node, n, stage)
                for store in stage.stores:
                    yield from self._store(node, stage, store)
        yield from self._bookkeeping(node)

    # --- what it says of itself ---

    def _bookkeeping(self, node: KernelNode) -> Iterator[str]:
        """What fusers and the planner are told must be what its expressions say."""
        again = rebuilt(node, node.stages, node.primitives)
        if set(node.reads) != set(again.reads):
            yield f"says that it reads {_named(node.reads)}, and loads {_named(again.reads)}"
        for v, access in node.reads.items():
            found = again.reads[v]
            if (set(access.places), access.times, access.aligned) != (set(found.places), found.times, found.aligned):
                yield f"reads v{v} at other places than it says"
        if (node.weight, node.folds) != (again.weight, again.folds):
            yield f"says that it has {node.weight} operations, and has {again.weight}"

    def _memory(self, node: KernelNode) -> Iterator[str]:
        """Values that share memory have one size; pure nodes store each result once, all of it."""
        avals, (out, *_) = self.graph.avals, node.outs
        shared = node.alias if node.updates is None else node.updates
        if shared is not None and avals[shared].nbytes != avals[out].nbytes:
            yield f"puts v{out} in the memory of v{shared}, which has another size"
        slots = [s.slot for s in node.stores]
        stored = set(slots)
        if stored != {*node.outs, *node.locals} or (node.pure and len(slots) > len(stored)):
            yield f"stores {_named(slots)}, and its results are {_named(node.outs)}"
        if node.alias is not None and not _is_load(node.body(out), node.alias):
            yield f"says that v{out} has the elements of v{node.alias} in their order, and computes others"
        if not node.pure and node.updates is None:
            yield from self._filled(node)

    def _filled(self, node: KernelNode) -> Iterator[str]:
        """Memory with any contents is written before it is read: by the node itself, and by those behind it that fill
        other parts."""
        first, (out, *_) = node.stores[0], node.outs
        if first.combine is not None:
            yield f"adds to v{out}, where nothing was stored before"
        count, value, parts = _points_stored(node), out, {n.updates: n for n in self._nodes if n.updates is not None}
        own = set(equations(node.primitives))
        while value in parts and own & set(equations(parts[value].primitives)):
            count, value = count + _points_stored(parts[value]), parts[value].outs[0]
        size = self.graph.avals[out].size
        if count < size:
            yield f"stores {count} elements of v{out}, which has {size}, and says of no operand that it updates that"

    # --- where it reads and writes ---

    def _loads(self, node: KernelNode, n: int, stage: Stage) -> Iterator[str]:
        own = {s.slot: (m < n, s) for m, other in enumerate(node.stages) for s in other.stores if node.pure}
        nodes = postorder(*[x for store in stage.stores for x in store_roots(store)])
        known = {*node.grid, *stage.axes, *(a for x in nodes if x.kind == "fold" for a in x.attr.axes)}
        for x in nodes:
            if x.kind == "index" and x.attr not in known:
                yield f"uses the index {x.attr} outside of its loop"
            if x.kind == "load":
                indices, mask = (x.args[:-2], x.args[-2]) if x.attr.masked else (x.args, None)
                yield from self._access("reads", x.attr.slot, x, indices, mask)
                there, store = own.get(x.attr.slot, (True, None))
                if not there or (store is not None and not _own_row(node, indices, store)):
                    yield f"reads v{x.attr.slot} at {_at(indices)}, where it hasn't stored it yet"

    def _store(self, node: KernelNode, stage: Stage, store: Store) -> Iterator[str]:
        yield from self._access("writes", store.slot, store.value, store.indices, store.mask)
        if node.pure and not self._covers(node, stage, store):
            yield f"writes v{store.slot} at {_at(store.indices)}, which isn't each element once"

    def _covers(self, node: KernelNode, stage: Stage, store: Store) -> bool:
        """Whether each element is written at one point of the loops."""
        axes = [i.attr for i in store.indices if i.kind == "index"]
        shape = [i.attr.extent if i.kind == "index" else 1 for i in store.indices]
        rows = points(node.grid) * points(stage.axes)
        plain = store.mask is None and store.combine is None and len(set(axes)) == len(axes)
        return plain and tuple(shape) == self.graph.avals[store.slot].shape and rows == points(axes)

    def _access(self, does: str, v: int, x: Expr, indices: Sequence[Expr], mask: Expr | None) -> Iterator[str]:
        """Whether the element at ``indices``, which is ``x``, is one of ``v``, wherever ``mask`` holds."""
        aval = self.graph.avals[v]
        if x.dtype != aval.dtype or len(indices) != len(aval.shape):
            yield f"{does} v{v} ({aval.str_short(True)}) as {x.dtype} at {len(indices)} indices"
        for d, (i, size) in enumerate(zip(indices, aval.shape, strict=False)):
            least, greatest = self._bounds(i, mask, size)
            if not (least >= 0 and greatest < size) and not _never(indices):
                where = f"dimension {d} of v{v} ({aval.str_short(True)})"
                yield f"{does} {where} at {pretty(i)}, which is from {least} to {greatest}"

    def _bounds(self, i: Expr, mask: Expr | None, size: int) -> Interval:
        """The interval of an index, by the first way that finds it inside ``size``."""
        inside = lambda found: found[0] >= 0 and found[1] < size
        if inside(found := self._interval(i, mask)) or inside(found := self._by_cases(i, mask)):
            return found
        simplified = Simplifier()
        i, mask = simplified(i), None if mask is None else simplified(mask)
        last = self._by_cases(i if mask is None else _chosen(i, mask), mask)
        return last if inside(last) else found

    def _by_cases(self, i: Expr, mask: Expr | None) -> Interval:
        """The interval of an index that depends on masked loads: each is what is there where its mask holds, else what
        it gives instead, unless ``mask`` says that its own holds."""
        guarded = next((x for x in postorder(i) if x.kind == "load" and x.attr.masked), None)
        if guarded is None:
            return self._interval(i, mask)
        *indices, holds, other = guarded.args
        bare = make("load", guarded.dtype, tuple(indices), Load(guarded.attr.slot))
        found: list[Interval] = []
        cases = [(bare, holds), (other, None)]
        for instead, known in cases[:1] if mask is not None and _conjuncts(holds) <= _conjuncts(mask) else cases:
            replaced = lambda x, instead=instead: instead if x is guarded else None
            given = None if mask is None else rewrite(mask, replaced)
            both = known if given is None else given if known is None else op("and", given, known)
            found.append(self._by_cases(rewrite(i, replaced), both))
        kept = [(least, greatest) for least, greatest in found if least <= greatest]
        return min((x for x, _ in kept), default=0), max((x for _, x in kept), default=-1)

    def _interval(self, i: Expr, mask: Expr | None) -> Interval:
        if mask is None:
            return _found(self._everywhere, i)
        if mask not in self._where:
            _found(self._everywhere, mask)
            self._where[mask] = self._everywhere.where(mask)
        intervals = self._where[mask]
        return (0, -1) if intervals is None else _found(intervals, i)


# --- types ------------------------------------------------------------------------------------------------------------


def _ill_typed(node: KernelNode) -> Iterator[str]:
    """Of what its stores evaluate."""
    for store in node.stores:
        for x in postorder(*store_roots(store)):
            if (reason := _WHY_ILL_TYPED.get(x.kind, lambda _: None)(x)) is not None:
                yield f"computes {pretty(x)}, where {reason}"
        for what, xs, dtype in (("an index", store.indices, INT), ("the mask", (store.mask,), BOOL)):
            for x in xs:
                if x is not None and x.dtype != dtype:
                    yield f"stores where {what} is {x.dtype}, not {dtype}"


def _why_no_op(x: Expr) -> str | None:
    if x.attr not in TABLE:
        return f"{x.attr!r} is no operation of the table"
    if len(x.args) != TABLE[x.attr].arity:
        return f"{x.attr} has {len(x.args)} operands, and takes {TABLE[x.attr].arity}"
    operands = x.args
    if x.attr == "select":
        condition, *operands = operands
        if condition.dtype != BOOL:
            return f"the condition is {condition.dtype}, not bool"
    types = {a.dtype for a in operands}
    if len(types) > 1:
        return f"{x.attr} has operands of {' and '.join(sorted(map(str, types)))}; `cast` makes them one"
    dtype = TABLE[x.attr].result(operands[0].dtype)
    return None if dtype == x.dtype else f"{x.attr} gives {dtype}, not {x.dtype}"


def _why_no_bits(x: Expr) -> str | None:
    (source,) = x.args
    return f"{source.dtype} has another width than {x.dtype}" if source.dtype.itemsize != x.dtype.itemsize else None


def _why_no_load(x: Expr) -> str | None:
    indices = x.args
    if x.attr.masked:
        *indices, mask, other = x.args
        if mask.dtype != BOOL or other.dtype != x.dtype:
            return f"the mask is {mask.dtype} and what is there instead {other.dtype}, not bool and {x.dtype}"
    return next((f"an index is {i.dtype}, not int64" for i in indices if i.dtype != INT), None)


def _why_no_fold(x: Expr) -> str | None:
    half = len(x.args) // 2
    types = [[a.dtype.name for a in part] for part in (x.args[:half], x.args[half:])]
    return None if types[0] == types[1] else f"the fold starts with {types[0]} and goes on with {types[1]}"


_WHY_ILL_TYPED: dict[str, Callable[[Expr], str | None]] = {
    "op": _why_no_op,
    "bitcast": _why_no_bits,
    "load": _why_no_load,
    "fold": _why_no_fold,
}


def _is_load(x: Expr, value: int) -> bool:
    return x.kind == "load" and x.attr.slot == value and not x.attr.masked


def _points_stored(node: KernelNode) -> int:
    return points(node.grid) * sum(points(stage.axes) * len(stage.stores) for stage in node.stages)


def _conjuncts(mask: Expr) -> set[Expr]:
    """The conditions that all hold where a mask does."""
    found: set[Expr] = set()
    waiting = [mask]
    while waiting:
        x = waiting.pop()
        if x.kind == "op" and x.attr == "and" and x.dtype.kind == "b":
            waiting.extend(x.args)
        else:
            found.add(x)
    return found


def _chosen(i: Expr, mask: Expr) -> Expr:
    """``i`` with the choices made that are known where ``mask`` holds."""
    known = _conjuncts(mask)

    def rule(x: Expr) -> Expr | None:
        choice = x.kind == "op" and x.attr == "select" and _conjuncts(x.args[0]) <= known
        return x.args[1] if choice else None

    return rewrite(i, rule)


def _found(intervals: Intervals, i: Expr) -> Interval:
    """The interval of ``i``, found operands first, since it may be long."""
    for x in postorder(i) if i.args else ():
        if x.dtype.kind in "biu":
            intervals(x)
    return intervals(i)


def _own_row(node: KernelNode, indices: Sequence[Expr], store: Store) -> bool:
    """Whether a kernel reads what it has stored at the same point of its grid; other points may be others' work."""
    simplified, rows = Simplifier(), [a for a in node.grid if a.extent != 1]
    pairs = [(i, s) for i, s in zip(indices, store.indices, strict=True) if s.kind == "index" and s.attr in rows]
    return all(i is s or simplified(i) is s for i, s in pairs)


def _never(indices: Sequence[Expr]) -> bool:
    """Whether the access lies in a loop that never turns."""
    return any(x.kind == "index" and x.attr.extent == 0 for x in postorder(*indices))


def _named(values: Iterable[int]) -> str:
    return " ".join(f"v{v}" for v in sorted(values)) or "nothing"


def _at(indices: Sequence[Expr]) -> str:
    return f"[{', '.join(map(pretty, indices))}]"
