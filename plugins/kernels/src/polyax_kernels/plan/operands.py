"""From a node of the graph to a kernel: values become operands with positions, and scratch gets its shape.

Nodes address all values by all indices; scratch of one grid point has only those that run inside of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyax_kernels.ir.expr import Axis, Expr, Load, make, rewrite
from polyax_kernels.ir.graph import Graph, KernelNode
from polyax_kernels.ir.kernel import Kernel, Operand, Role, Stage, Store, map_store


def finished(graph: Graph, node: KernelNode) -> tuple[Kernel, list[int]]:
    """The node as a kernel, and the values that its operands are, but for scratch, which comes last."""
    inputs = [v for v in node.reads if v not in node.outs]
    values = [*inputs, *node.outs]
    renaming = _Renaming(node, [*values, *node.locals])
    stages = tuple([Stage(s.axes, tuple(map(renaming.store, s.stores))) for s in node.stages])
    written: Role = "out" if node.pure else "inout"
    roles: list[Role] = [*["in" for _ in inputs], *[written for _ in node.outs]]
    operands = [Operand(graph.avals[v].shape, graph.avals[v].dtype, r) for v, r in zip(values, roles, strict=True)]
    scratch = [renaming.scratch(v) for v in node.locals]
    kernel = Kernel(node.grid, stages, (*operands, *scratch), node.name, node.primitives, node.ordered)
    return kernel, values


class _Renaming:
    """Loads and stores of operands instead of values."""

    def __init__(self, node: KernelNode, values: Sequence[int]) -> None:
        self.slots = {v: n for n, v in enumerate(values)}
        self.inner: dict[int, tuple[list[int], tuple[Axis, ...]]] = {}
        """Local values -> their dimensions that run inside a grid point, and the axes that do."""
        self.dtypes = {s.slot: s.value.dtype for s in node.stores}
        self._memo: dict[Expr, Expr] = {}
        for stage in node.stages:
            for store in stage.stores:
                if store.slot in node.locals:
                    self.inner[store.slot] = _inner(store, stage.axes)

    def scratch(self, value: int) -> Operand:
        _, axes = self.inner[value]
        return Operand(tuple([a.extent for a in axes]), self.dtypes[value], "local")

    def store(self, store: Store) -> Store:
        new = map_store(store, lambda x: rewrite(x, self._load, self._memo))
        indices = self._kept(store.slot, new.indices)
        return Store(self.slots[store.slot], indices, new.value, new.mask, new.combine)

    def _load(self, x: Expr) -> Expr | None:
        if x.kind != "load":
            return None
        indices, rest = (x.args[:-2], x.args[-2:]) if x.attr.masked else (x.args, ())
        args = (*self._kept(x.attr.slot, indices), *rest)
        return make("load", x.dtype, args, Load(self.slots[x.attr.slot], x.attr.masked))

    def _kept(self, value: int, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        if value not in self.inner:
            return indices
        dims, _ = self.inner[value]
        return tuple([indices[d] for d in dims])


def _inner(store: Store, axes: Sequence[Axis]) -> tuple[list[int], tuple[Axis, ...]]:
    own = [(d, i.attr) for d, i in enumerate(store.indices) if i.kind == "index" and i.attr in axes]
    return [d for d, _ in own], tuple([axis for _, axis in own])
