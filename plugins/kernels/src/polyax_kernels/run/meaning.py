"""What a graph means: its nodes computed by NumPy, one after the other, each result in memory of its own.

Nothing is fused, planned or compiled for it, so what a pass made wrong shows in what its graph computes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from polyax.ir import blame
from polyax.ir.aval import ShapedArray
from polyax_kernels.emit import numpy as interpreter
from polyax_kernels.ir.expr import points
from polyax_kernels.ir.graph import BranchNode, CallNode, Graph, KernelNode, LoopNode, Node
from polyax_kernels.ir.origin import rules
from polyax_kernels.lower.choice import plugin_of
from polyax_kernels.lower.fallback import on_host
from polyax_kernels.lower.lowering import Call, CallContext
from polyax_kernels.plan.operands import finished

Values = Sequence[np.ndarray]
ANYTHING = 77
"""What is in memory before anything is stored there."""


def meaning(graph: Graph, inputs: Values) -> list[np.ndarray]:
    """The results of ``graph`` for ``inputs``; what only has effects is left out. Call it inside ``with consing():``.

    Raises:
      IndexError, KeyError: a node reads what isn't there.
      ValueError: it does otherwise than it says.
    """
    avals = graph.avals
    values = {v: np.asarray(x, avals[v].dtype) for v, x in graph.literals.items()}
    values |= {v: as_type(x, avals[v]) for v, x in zip(graph.inputs, inputs, strict=True)}
    for node in graph.nodes:
        if not node.outs and not isinstance(node, KernelNode) and node.effects:
            continue
        try:
            values.update(zip(node.outs, _results(graph, node, values), strict=True))
        except Exception as e:
            blame.about(e, plugin=next(filter(None, map(plugin_of, rules(node.primitives))), ""))
            raise
    return [values[v] for v in graph.outputs]


def as_type(x: np.ndarray, aval: ShapedArray) -> np.ndarray:
    """The bytes of ``x`` as an array of ``aval``: complex numbers and their words are the same memory."""
    return x.reshape(-1).view(aval.dtype).reshape(aval.shape)


def _results(graph: Graph, node: Node, values: dict[int, np.ndarray]) -> Values:
    if isinstance(node, KernelNode):
        return _kernel(graph, node, values)
    args = [values[v] for v in node.inputs]
    if isinstance(node, CallNode):
        return _call(graph, node, args)
    if isinstance(node, BranchNode):
        return meaning(node.graphs[int(args[0])], args[1:])
    return _loop(graph, node, args)


def _kernel(graph: Graph, node: KernelNode, values: dict[int, np.ndarray]) -> Values:
    """An update changes a copy; what nobody stores isn't zero."""
    outs = [np.full(graph.avals[v].shape, ANYTHING, graph.avals[v].dtype) for v in node.outs]
    if node.updates is not None:
        outs[0] = np.array(values[node.updates], order="C")
    if points(node.grid) and any(x.size for x in outs):
        kernel, operands = finished(graph, node)
        interpreter.run(kernel, [values[v] for v in operands[: -len(outs)]] + outs)
    if node.alias is not None and values[node.alias].tobytes() != outs[0].tobytes():
        raise ValueError(f"{node.name} gives the elements of its operand in another order than it says")
    return outs


def _call(graph: Graph, node: CallNode, args: Values) -> Values:
    """By the lowering itself where that takes arrays; what takes a device's memory is the reference's rule here."""
    lowering: Call = node.lowering
    takes_arrays = lowering.operands == "host" and (lowering.run or lowering.prepare)
    in_avals, out_avals = graph.types(node)
    outs = [np.zeros(a.shape, a.dtype) for a in out_avals]
    call = lowering if takes_arrays else on_host(node.primitive)
    run = call.ready(CallContext(None), out_avals, in_avals, node.params)
    operands = [np.array(as_type(x, a), order="C") for x, a in zip(args, in_avals, strict=True)]
    run(outs, operands)
    for n, (x, before) in enumerate(zip(operands, args, strict=True)):
        if x.tobytes() != before.tobytes():
            raise ValueError(f"{node.name} writes to its operand {n}")
    return [as_type(x, graph.avals[v]) for x, v in zip(outs, node.outs, strict=True)]


def _loop(graph: Graph, node: LoopNode, args: Values) -> Values:
    of_test, of_body = node.consts
    test, body = args[:of_test], args[of_test : of_test + of_body]
    carries, rows = args[of_test + of_body :][: node.carries], args[of_test + of_body + node.carries :]
    collected = [np.zeros(graph.avals[v].shape, graph.avals[v].dtype) for v in node.outs[node.carries :]]
    turn = 0
    while _goes_on(node, turn, [*test, *carries]):
        n = turn if not node.reverse else (node.length or 0) - 1 - turn
        made = meaning(node.body, [*body, *carries, *[x[n] for x in rows]])
        carries = made[: node.carries]
        for x, row in zip(collected, made[node.carries :], strict=True):
            x[n] = row
        turn += 1
    return [*carries, *collected]


def _goes_on(node: LoopNode, turn: int, args: Values) -> bool:
    if node.test is None:
        return turn < (math.inf if node.length is None else node.length)
    return bool(meaning(node.test, args)[0])
