"""The checker of kernel graphs, which runs between passes under ``config.checks``: the pass that makes a wrong graph is
named, before its numbers are.

Linear in the size of the graph; kernels that the pass has left alone aren't looked into again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from polyax.ir import blame
from polyax.ir.errors import InternalError, PluginError
from polyax_kernels.ir.edits.bounds import scratch_bytes
from polyax_kernels.ir.graph import ControlNode, Graph, KernelNode, Node, WholeNode
from polyax_kernels.ir.limits import Limits
from polyax_kernels.ir.origin import equations, facts, rules
from polyax_kernels.ir.work import bytes_moved
from polyax_kernels.lower.choice import WITHOUT, plugin_of
from polyax_kernels.passes.check_kernel import KernelChecker


def check_graph(graph: Graph, who: str, before: Graph | None = None, limits: Limits | None = None) -> None:
    """Raises unless ``graph``, which the pass ``who`` made of ``before``, can run and computes what that did.

    ``limits``: of the device, if the pass is a fuser, which must keep them and doesn't move more bytes.

    Raises:
      InternalError: the text names the pass, and the node and the value that are wrong.
    """
    fault = next(_faults(graph, before, limits), None)
    if fault is not None:
        raise InternalError(
            f"{who} made a wrong program: {fault}. The fault is the compiler's, not your program's: please report it "
            "to whoever wrote that pass. POLYAX_FUSERS names the fusers that run, so that one can be left out"
        )


def check_lowerings(graph: Graph) -> None:
    """Raises unless the kernels that lowerings of plugins say can run.

    Raises:
      PluginError: the text names the plugin and the primitive.
    """
    kernels = KernelChecker(graph)
    for node in graph.nodes:
        if isinstance(node, ControlNode):
            for inner in node.graphs:
                check_lowerings(inner)
        plugin = next(filter(None, map(plugin_of, rules(node.primitives))), "")
        fault = next(kernels.faults(node), None) if plugin and isinstance(node, KernelNode) else None
        if fault is not None:
            error = PluginError(f"the lowering of {node.name} of {plugin} made a wrong kernel: it {fault}. {WITHOUT}")
            blame.about(error, plugin=plugin, **facts(node.primitives))
            raise error


def _faults(graph: Graph, before: Graph | None, limits: Limits | None) -> Iterator[str]:
    yield from _inner(graph, before, limits)
    yield from _order(graph, before)
    if before is not None:
        yield from _changes(graph, before)
    if before is not None and limits is not None:
        yield from _whole_nodes(graph, before)
    old = set() if before is None else set(map(id, before.nodes))
    made = [n for n in graph.nodes if isinstance(n, KernelNode) and id(n) not in old]
    kernels = KernelChecker(graph)
    for node in made:
        yield from (f"{node.name} {fault}" for fault in kernels.faults(node))
    if before is not None and limits is not None:
        for node in made:
            yield from (f"{node.name} {fault}" for fault in _over(node, limits))
        yield from _traffic(graph, before)


def _inner(graph: Graph, before: Graph | None, limits: Limits | None) -> Iterator[str]:
    """Of the programs of loops and branches."""
    old = {} if before is None else {_key(node): node.graphs for node in before.nodes if isinstance(node, ControlNode)}
    for node in graph.nodes:
        if isinstance(node, ControlNode):
            for inner, was in zip(node.graphs, old.get(_key(node), [None] * len(node.graphs)), strict=True):
                if inner is not was:
                    yield from (f"within {node.name}, {fault}" for fault in _faults(inner, was, limits))


def _key(node: WholeNode) -> tuple[object, ...]:
    return node.outs, equations(node.primitives)


# --- values -----------------------------------------------------------------------------------------------------------


def _order(graph: Graph, before: Graph | None) -> Iterator[str]:
    """Each value is computed once, before it is used."""
    known = {*graph.inputs, *graph.literals}
    for node in graph.nodes:
        for v in node.inputs:
            if v not in known:
                yield f"{node.name} reads {_typed(graph, v)}, which {_missing(graph, before, v)}"
        for v in node.outs:
            if v in known:
                yield f"{node.name} computes {_typed(graph, v)}, which is there already"
            known.add(v)
    for v in graph.outputs:
        if v not in known:
            yield f"the result {_typed(graph, v)} {_missing(graph, before, v)}"


def _missing(graph: Graph, before: Graph | None, value: int) -> str:
    if value in graph.producers():
        return f"{graph.producers()[value].name} computes later"
    lost = None if before is None else before.producers().get(value)
    return "is computed by nobody" if lost is None else f"is computed by nobody: {lost.name} did before this pass"


def _typed(graph: Graph, value: int) -> str:
    return f"v{value} ({graph.avals[value].str_short(True)})"


# --- changes ----------------------------------------------------------------------------------------------------------


def _changes(graph: Graph, before: Graph) -> Iterator[str]:
    """The program stays the same from outside."""
    if graph.inputs != before.inputs or graph.outputs != before.outputs:
        yield f"its inputs and results are {graph.inputs} and {graph.outputs}, not {before.inputs} and {before.outputs}"
    for v, (aval, old) in enumerate(zip(graph.avals, before.avals, strict=False)):
        if aval is not old and aval != old:
            yield f"v{v} is {aval.str_short(True)}, and was {old.str_short(True)} before this pass"
    yield from effects_out_of_order(graph.nodes, before.nodes)


def _whole_nodes(graph: Graph, before: Graph) -> Iterator[str]:
    """Fusers leave library calls, loops and branches as they are, but for what is inside of these."""
    old = {_key(node): node for node in before.nodes if not isinstance(node, KernelNode)}
    for node in graph.nodes:
        if isinstance(node, KernelNode) or _key(node) not in old:
            continue
        was = old[_key(node)]
        for what in ("primitive", "params", "lowering", "consts", "carries", "length", "reverse", "effects"):
            if (now := getattr(node, what, None)) != (then := getattr(was, what, None)):
                yield f"{node.name} has {now!r} as {what}, and had {then!r} before this pass"
        types = [[(graph.avals[v].shape, graph.avals[v].dtype) for v in n.inputs] for n in (node, was)]
        if types[0] != types[1]:
            yield f"{node.name} takes other operands than before this pass"


def effects_out_of_order(nodes: Iterable[Node], before: Iterable[Node]) -> Iterator[str]:
    """Whether the effects of ``nodes`` aren't those that were there ``before``, in their order."""
    found, wanted = ([_effect(n) for n in ns if not isinstance(n, KernelNode) and n.effects] for ns in (nodes, before))
    if found != wanted:
        yield f"its effects are {', '.join(found) or 'none'} in this order, not {', '.join(wanted) or 'none'}"


def _effect(node: Node) -> str:
    return f"{node.name} (equation {' '.join(map(str, equations(node.primitives)))})"


def _over(node: KernelNode, limits: Limits) -> Iterator[str]:
    """What a primitive takes that is alone in its kernel is no fuser's business."""
    operands, scratch = len({*node.inputs, *node.outs} - {node.updates}), scratch_bytes(node)
    for count, limit, what in (
        (operands, limits.operands, "operands"),
        (node.weight, limits.kernel_nodes, "operations"),
        (scratch, limits.local_bytes, "bytes of scratch"),
    ):
        if count > limit:
            yield f"has {count} {what}, and {limit} are the limit"


def _traffic(graph: Graph, before: Graph) -> Iterator[str]:
    """The bytes that are moved don't grow, neither as they are counted nor, since that is a bound, as whole values."""
    counts: tuple[Callable[[Graph, Node], int], ...] = bytes_moved, _whole
    totals = [[sum(count(g, node) for node in g.nodes) for g in (graph, before)] for count in counts]
    if all(after > allowed for after, allowed in totals):
        yield "its kernels move {} bytes, and those before this pass {}".format(*totals[0])


def _whole(graph: Graph, node: Node) -> int:
    alias = isinstance(node, KernelNode) and node.alias is not None
    return 0 if alias else sum(graph.avals[v].nbytes for v in (*node.inputs, *node.outs))
