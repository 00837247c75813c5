"""Calls whose results are only added up over devices: one that adds them up as it computes them, where there is one.

A product of which each device has a part of the sum then writes that sum at once, and not a part per device first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from polyax.ops.collective import psum_p
from polyax_kernels.ir.graph import CallNode, Graph, Node
from polyax_kernels.lower.lowering import Call

SMALL = 1 << 16
"""Results of at most this many bytes are left to a sum that takes several together."""

Adding = tuple[CallNode, Any]
"""A call, and the function that adds up what it gives."""


def sum_calls(graph: Graph) -> Graph:
    """Every sum over devices, with the calls taken in that can add up and have no other reader."""
    sums = [n for n in graph.nodes if isinstance(n, CallNode) and n.primitive is psum_p and n.lowering.together]
    if not sums:
        return graph
    producers, consumers, results = graph.producers(), graph.consumers(), set(graph.outputs)
    taken: dict[int, Adding] = {}
    for v in [v for node in sums for v in node.inputs]:
        call = producers.get(v)
        if isinstance(call, CallNode) and len(consumers[v]) == 1 and v not in results and (run := _adds(graph, call)):
            taken[v] = call, run
    if not taken:
        return graph
    gone = {id(call) for call, _ in taken.values()}
    nodes: list[Node] = []
    for node in graph.nodes:
        if not isinstance(node, CallNode) or taken.keys().isdisjoint(node.inputs):
            nodes += () if id(node) in gone else (node,)
        else:
            nodes += _parted(node, taken)
    return graph.with_nodes(nodes)


def _adds(graph: Graph, call: CallNode) -> Any:
    """The function that adds up what ``call`` gives, if that is so large that moving it takes longer than one more
    meeting."""
    adds = call.lowering.adds
    return adds and graph.avals[call.outs[0]].nbytes > SMALL and adds(graph.types(call)[0], call.params)


def _parted(exchange: CallNode, taken: dict[int, Adding]) -> list[Node]:
    """A sum of each of the calls, and that of all other operands."""
    rest = [n for n, v in enumerate(exchange.inputs) if v not in taken]
    of_rest = lambda xs: tuple([xs[n] for n in rest])
    nodes: list[Node] = []
    if rest:
        nodes.append(replace(exchange, inputs=of_rest(exchange.inputs), outs=of_rest(exchange.outs)))
    pairs = zip(exchange.inputs, exchange.outs, strict=True)
    return nodes + [_summed(*taken[v], exchange, out) for v, out in pairs if v in taken]


def _summed(call: CallNode, run: Any, exchange: CallNode, out: int) -> CallNode:
    lowering = Call(
        prepare=_one_by_one(call, exchange),
        together=lambda outs, args, shared, **_: run(outs, args, shared),
        sums=call,
    )
    primitives = (*call.primitives, *exchange.primitives)
    return replace(exchange, outs=(out,), inputs=call.inputs, lowering=lowering, seen=call.seen, primitives=primitives)


def _one_by_one(call: CallNode, exchange: CallNode) -> Any:
    """Where each member runs by itself: the call, and then the sum."""

    def prepare(context: Any, outs: Any, args: Any, params: dict[str, Any]) -> Any:
        compute = call.lowering.ready(context, outs, args, call.params)
        add = exchange.lowering.ready(context, outs, outs, params)

        def run(outs: Any, args: Any) -> None:
            compute(outs, args)
            add(outs, outs)

        return run

    return prepare
