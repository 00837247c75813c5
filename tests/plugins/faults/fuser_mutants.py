"""Fusers with one fault each: what they give is the graph that they were given, with something in it got wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from kernels.numpy_backend import NumpyKernelBackend
from plugins.faults.expressions import SLIPS, STORES, everywhere, regrid, shorter, slipped

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax_kernels.ir.edits import inline, merge, why_not_merge
from polyax_kernels.ir.expr import consing, make, rewrite
from polyax_kernels.ir.graph import BranchNode, CallNode, Graph, KernelNode, LoopNode, Node, rebuilt, row_node
from polyax_kernels.ir.kernel import map_stages

X = np.array([[0.3, -1.7, 2.2, 0.9], [1.4, 0.2, -0.6, 3.1], [-2.5, 1.1, 0.7, -0.4], [0.6, 1.3, -1.2, 0.1]], np.float32)


def noted(x: Any) -> Any:
    polyax.debug.callback(lambda x: None, x[0, 0], ordered=True)
    y = jnp.sin(x) * 2
    polyax.debug.callback(lambda x, y: None, x[0, 1], y[0, 0], ordered=True)
    return y + 1


PROGRAMS: dict[str, tuple[Callable[..., Any], Sequence[np.ndarray]]] = {
    "a chain": (lambda x: jnp.cos(jnp.sin(x) * 1.1 + 2) - x.T, (X,)),
    "siblings": (lambda x: (jnp.exp(x).sum(0), x.max(0), (x - 1).sum(1)), (X,)),
    "an update": (lambda x: x.at[1].set(x[2] * 2).at[3, 2:4].add(x[0, 2:4]) * 3, (X,)),
    "library calls": (lambda x: jnp.sort(x * 2, axis=1) + 1 - (x @ x), (X,)),
    "a scan": (lambda x: lax.scan(lambda c, r: (jnp.cos(c) + r, (c * 2, c.sum())), x[0], x), (X,)),
    "a branch": (lambda x: lax.cond(x[0, 0] > 0, lambda x: jnp.exp(x) - 1, lambda x: -x * 2, x) + x, (X,)),
    "effects": (noted, (X,)),
}
Change = Callable[[Graph], Any]


@dataclass(frozen=True)
class FuserMutant:
    """``change`` of the graphs of the program ``case``."""

    name: str
    change: Change
    case: str


def fuser_mutants() -> list[FuserMutant]:
    """For each program, what makes another graph of its own before anything is fused."""
    backend = NumpyKernelBackend(fused=False)
    found: list[FuserMutant] = []
    with consing():
        for case, (program, args) in PROGRAMS.items():
            graph = backend.graph(polyax.make_jaxpr(program)(*args))
            every = {**WHOLES, **dict(changes(graph))}
            found += [FuserMutant(f"{case}: {how}", change, case) for how, change in every.items()]
    return found


def changes(graph: Graph) -> Iterator[tuple[str, Change]]:
    """Of single nodes and of pairs; nodes are counted, since they are others in each compilation."""
    for n, node in enumerate(graph.nodes):
        at = f"node {n} ({node.name})"
        for how, change in ORDERS.items():
            yield f"{at} {how}", partial(change, n)
        table: dict[str, Any] = KINDS[type(node)]
        for how, edit in table.items():
            yield f"{at} {how}", partial(edited, n, edit)
        if isinstance(node, KernelNode):
            for how, slip in SLIPS.items():
                if any(slipped(slip, s.value) is not s.value for s in node.stores):
                    yield f"{at}: {how}", partial(edited, n, partial(with_slip, slip))
    for m, n in itertools.combinations(range(len(graph.nodes)), 2):
        a, b = graph.nodes[m], graph.nodes[n]
        if isinstance(a, KernelNode) and isinstance(b, KernelNode):
            if set(a.outs) & set(b.reads):
                yield f"node {m} in {n}, and nowhere else", partial(together, m, n, inline)
            elif why_not_merge(a, b) is None:
                yield f"{m} and {n} as one, too early", partial(together, m, n, merge)
                yield f"{m} and {n} as one, too late", partial(together, m, n, merge, late=True)


# --- nodes ------------------------------------------------------------------------------------------------------------


def edited(n: int, edit: Callable[[Graph, Any], Any], graph: Graph) -> Graph:
    if n >= len(graph.nodes):
        return graph
    return graph.with_nodes([edit(graph, x) if m == n else x for m, x in enumerate(graph.nodes)])


def with_slip(slip: Any, graph: Graph, node: Any) -> Any:
    if not isinstance(node, KernelNode):
        return node
    return with_stages(node, everywhere(lambda s: replace(s, value=slipped(slip, s.value)), node.stages))


def with_stages(node: KernelNode, stages: Any) -> KernelNode:
    return replace(rebuilt(node, stages, node.primitives), alias=node.alias)


def with_stores(change: Any, graph: Graph, node: KernelNode) -> KernelNode:
    return with_stages(node, everywhere(change, node.stages))


def another_grid(by: int, graph: Graph, node: KernelNode) -> KernelNode:
    if not node.grid:
        return node
    grid, axes = shorter(node.grid, by)
    return replace(node, grid=grid, stages=regrid(node.stages, axes))


def rewired(graph: Graph, node: KernelNode) -> KernelNode:
    """It reads the program's first input instead of another value of that type."""
    (first, *_) = graph.inputs

    def change(x: Any) -> Any:
        other = x.kind == "load" and x.attr.slot != first and graph.avals[x.attr.slot] == graph.avals[first]
        return make("load", x.dtype, x.args, x.attr._replace(slot=first)) if other else None

    return with_stages(node, map_stages(node.stages, lambda x: rewrite(x, change)))


KERNELS: dict[str, Callable[[Graph, Any], Any]] = {
    **{how: partial(with_stores, change) for how, change in STORES.items()},
    "with a grid too short": partial(another_grid, -1),
    "with a grid too long": partial(another_grid, 1),
    "reading another value": rewired,
    "with its results in the other order": lambda graph, node: replace(node, outs=node.outs[::-1]),
    "without results": lambda graph, node: replace(node, outs=()),
    "with a result that isn't there": lambda graph, node: replace(node, outs=(10**6,)),
    "without stages": lambda graph, node: replace(node, stages=()),
    "without reads": lambda graph, node: replace(node, reads={}),
    "in rows": lambda graph, node: row_node(node.grid, node.stages[::-1], node.outs, node.primitives),
    "in place of the first input": lambda graph, node: replace(node, pure=False, updates=graph.inputs[0]),
    "in place of nothing": lambda graph, node: replace(node, updates=None),
    "in any order": lambda graph, node: replace(node, ordered=False),
    "as an alias": lambda graph, node: replace(node, alias=graph.inputs[0]),
    "as something else": lambda graph, node: "a kernel",
    "as None": lambda graph, node: None,
}
WHOLE: dict[str, Callable[[Graph, Any], Any]] = {
    "with its operands in the other order": lambda graph, node: replace(node, inputs=node.inputs[::-1]),
    "with one operand for all": lambda graph, node: replace(node, inputs=node.inputs[:1] * len(node.inputs)),
    "with an operand less": lambda graph, node: replace(node, inputs=node.inputs[:-1]),
    "with its results in the other order": lambda graph, node: replace(node, outs=node.outs[::-1]),
    "without results": lambda graph, node: replace(node, outs=()),
    "without its effects": lambda graph, node: replace(node, effects=False),
}
CALLS = WHOLE | {"without parameters": lambda graph, node: replace(node, params={})}
LOOPS = WHOLE | {
    "one turn shorter": lambda graph, node: replace(node, length=node.length - 1),
    "one turn longer": lambda graph, node: replace(node, length=node.length + 1),
    "backwards": lambda graph, node: replace(node, reverse=not node.reverse),
    "with a carry less": lambda graph, node: replace(node, carries=node.carries - 1),
    "with constants that it hasn't": lambda graph, node: replace(node, consts=(0, 1)),
    "with results of its body swapped": lambda graph, node: node.with_graphs([outputs(g, -1) for g in node.graphs]),
}
BRANCHES = WHOLE | {
    "with its branches swapped": lambda graph, node: node.with_graphs(node.graphs[::-1]),
    "with one branch": lambda graph, node: node.with_graphs(node.graphs[:1]),
    "with one branch for all": lambda graph, node: node.with_graphs(node.graphs[:1] * len(node.graphs)),
}
KINDS: dict[type, dict[str, Any]] = {KernelNode: KERNELS, CallNode: CALLS, LoopNode: LOOPS, BranchNode: BRANCHES}


# --- orders -----------------------------------------------------------------------------------------------------------


def without(n: int, graph: Graph) -> Graph:
    return graph.with_nodes([*graph.nodes[:n], *graph.nodes[n + 1 :]])


def moved(n: int, to: int, graph: Graph) -> Graph:
    nodes = [*graph.nodes[:n], *graph.nodes[n + 1 :]]
    nodes.insert(to, graph.nodes[min(n, len(graph.nodes) - 1)])
    return graph.with_nodes(nodes)


ORDERS: dict[str, Callable[[int, Graph], Graph]] = {
    "dropped": without,
    "first": lambda n, graph: moved(n, 0, graph),
    "last": lambda n, graph: moved(n, len(graph.nodes), graph),
    "twice": lambda n, graph: graph.with_nodes([*graph.nodes, *graph.nodes[n : n + 1]]),
}


def together(m: int, n: int, edit: Callable[..., Node], graph: Graph, late: bool = False) -> Graph:
    """Two nodes as one, in the place of one of them; whoever needs the first isn't asked."""
    if n >= len(graph.nodes):
        return graph
    a, b = graph.nodes[m], graph.nodes[n]
    nodes: list[Node] = [x for x in graph.nodes if x is not a and x is not b]
    nodes.insert(len(nodes) if late else m, edit(a, b))
    return graph.with_nodes(nodes)


# --- graphs -----------------------------------------------------------------------------------------------------------


def outputs(graph: Graph, step: int) -> Graph:
    return replace(graph, outputs=graph.outputs[::step])


def in_place(change: Callable[[list[Node]], object]) -> Change:
    def run(graph: Graph) -> Graph:
        change(graph.nodes)
        return graph

    return run


def narrower(graph: Graph) -> Graph:
    avals = [a.update(dtype=np.dtype(np.int32)) if n in graph.outputs else a for n, a in enumerate(graph.avals)]
    return replace(graph, avals=avals, nodes=list(graph.nodes))


def other_literals(graph: Graph) -> Graph:
    return replace(graph, literals={v: np.asarray(x) + 1 for v, x in graph.literals.items()})


WHOLES: dict[str, Change] = {
    "None": lambda graph: None,
    "its nodes": lambda graph: graph.nodes,
    "an error": lambda graph: graph.nodes[10**6],
    "no nodes": lambda graph: graph.with_nodes([]),
    "nodes backwards": lambda graph: graph.with_nodes(graph.nodes[::-1]),
    "nodes in a tuple": lambda graph: replace(graph, nodes=tuple(graph.nodes)),
    "nodes as they come": lambda graph: replace(graph, nodes=iter(graph.nodes)),
    "results in the other order": partial(outputs, step=-1),
    "a result less": lambda graph: replace(graph, outputs=graph.outputs[1:]),
    "an input less": lambda graph: replace(graph, inputs=graph.inputs[1:]),
    "other types": narrower,
    "no types": lambda graph: replace(graph, avals=[]),
    "no literals": lambda graph: replace(graph, literals={}),
    "other literals": other_literals,
    "decisions that are words": lambda graph: graph.with_nodes(graph.nodes, ["fused"]),  # type: ignore[list-item]
    "a node taken from the graph that it was given": in_place(lambda nodes: nodes.pop()),
    "the graph that it was given turned": in_place(lambda nodes: nodes.reverse()),
    "the graph that it was given emptied": in_place(lambda nodes: nodes.clear()),
}
