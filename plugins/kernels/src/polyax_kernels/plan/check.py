"""The checker of plans, which runs under ``config.checks``: an abstract machine whose memory holds the names of values.

It follows the steps in order. What a step reads must be there, whole; what it writes is there afterwards, and whatever
it has written over is gone. So lifetimes, places, copies and donated memory are right if all steps find what they need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from polyax.ir.errors import InternalError
from polyax_kernels.ir.expr import Expr, points
from polyax_kernels.ir.graph import BranchNode, CallNode, ControlNode, Graph, KernelNode, LoopNode
from polyax_kernels.ir.limits import Limits
from polyax_kernels.ir.strides import contiguous_from
from polyax_kernels.passes.check import effects_out_of_order
from polyax_kernels.plan.pieces import Pieces, written
from polyax_kernels.plan.plan import (
    BranchStep,
    CallStep,
    ControlStep,
    CopyStep,
    Inner,
    KernelStep,
    LoopStep,
    Made,
    Plan,
    Ref,
    Step,
    literal_key,
)  # fmt: skip
from polyax_kernels.plan.text import base_names, place_text

Placed = list[tuple[int, Ref]]
"""Values, and where they are."""
Pairs = set[tuple[int, int]]


def check_plan(plan: Plan, graph: Graph, donated: Sequence[bool] = (), limits: Limits | None = None) -> None:
    """Raises unless the steps of ``plan``, which were made of the nodes ``plan.made``, compute what ``graph`` says.

    Raises:
      InternalError: the text names the step, and the value that isn't where the step looks for it.
    """
    fault = next(_Machine(plan, graph, donated).faults(limits), None)
    if fault is not None:
        raise InternalError(
            f"the plan of a program is wrong: {fault}. The fault is the compiler's, not yours: please report it"
        )


class _Machine:
    def __init__(self, plan: Plan, graph: Graph, donated: Sequence[bool]) -> None:
        self.plan = plan
        self.graph = graph
        self.free = plan.overwritten & {n for n, d in enumerate(donated) if d}
        """Inputs that may be written to."""
        sizes = [*(a.nbytes for a in plan.inputs), *plan.fresh, plan.arena_bytes, *(x.nbytes for x in plan.literals)]
        self.memory = Pieces(sizes)
        self.names = base_names(plan)
        self.step = "the beginning"
        self.same = _same(graph)
        known = {literal_key(np.asarray(x, graph.avals[v].dtype)): v for v, x in graph.literals.items()}
        literals = [known.get(literal_key(x)) for x in plan.literals]
        for base, v in (*enumerate(graph.inputs), *enumerate(literals, plan.arena + 1)):
            if v is not None:
                self._put(v, Ref(base))

    def faults(self, limits: Limits | None) -> Iterator[str]:
        made = self.plan.made
        for n, (step, of) in enumerate(zip(self.plan.steps, made, strict=True)):
            self.step = f"step {n} ({of.node.name})"
            if limits is not None and isinstance(step, KernelStep):
                yield from self._over(step, limits)
            if isinstance(of.node, ControlNode) and isinstance(step, ControlStep):
                for inner, graph, donated in _inner(step, of.node):
                    faults = _Machine(inner.plan, graph, donated).faults(limits)
                    yield from (f"within {self.step}, {fault}" for fault in faults)
            yield from self._run(step, of, n + 1 < len(made) and made[n + 1].node is of.node)
        self.step = "the end of the program"
        yield from self._reads([(v, Ref(b)) for v, b in zip(self.graph.outputs, self.plan.outputs, strict=True)])
        yield from effects_out_of_order([of.node for of in made], self.graph.nodes)

    def _over(self, step: KernelStep, limits: Limits) -> Iterator[str]:
        """A primitive that is alone in its kernel takes what it takes."""
        if len(step.operands) > limits.operands and len(set(step.primitives)) > 1:
            yield f"{self.step} has {len(step.operands)} operands, and {limits.operands} are the limit"

    def _run(self, step: Step, of: Made, goes_on: bool) -> Iterator[str]:
        """``goes_on``: the next step is of the same node."""
        node = of.node
        if isinstance(node, CallNode) and isinstance(step, CallStep):
            return self._does(_placed(node.inputs, step.args), _placed(node.outs, step.outs), set())
        if isinstance(node, ControlNode) and isinstance(step, ControlStep):
            return self._control(step, node, _placed(node.inputs, of.args), _placed(node.outs, of.outs))
        if isinstance(node, KernelNode) and isinstance(step, KernelStep):
            return self._kernel(step, node)
        if isinstance(node, KernelNode) and isinstance(step, CopyStep):
            idle = not points(node.grid) or not any(self.graph.avals[v].size for v in node.outs)
            old = node.updates is not None and (goes_on or idle)
            return self._copy_old(step, node) if old else self._copy_block(step, node)
        return iter([f"{self.step} is a {type(step).__name__}, which its node doesn't become"])

    def _kernel(self, step: KernelStep, node: KernelNode) -> Iterator[str]:
        inputs = [v for v in node.reads if v not in node.outs]
        places = _placed([*inputs, *node.outs], step.operands)
        reads, writes = places[: len(inputs)], places[len(inputs) :]
        if node.updates is not None:
            yield from self._reads([(node.updates, writes[0][1])])
        yield from self._does(reads, writes, _at_own_points(self.graph, node))

    def _copy_old(self, step: CopyStep, node: KernelNode) -> Iterator[str]:
        """The old contents, to where they are updated."""
        assert node.updates is not None
        yield from self._does([(node.updates, step.source)], [(node.updates, step.target)], set())

    def _copy_block(self, step: CopyStep, node: KernelNode) -> Iterator[str]:
        """All that the node does is to move a block from one value to another."""
        store, out = node.stages[0].stores[0], node.outs[0]
        source = store.value.attr.slot, self._whole(store.value.attr.slot, step.source, store.value.args, node)
        target = out, self._whole(out, step.target, store.indices, node)
        if node.updates is not None:
            yield from self._reads([(node.updates, target[1])])
        yield from self._does([source], [target], _at_own_points(self.graph, node))

    def _whole(self, value: int, block: Ref, indices: Sequence[Expr], node: KernelNode) -> Ref:
        """Where ``value`` begins, given where the block that a node walks through does."""
        aval = self.graph.avals[value]
        skipped = contiguous_from(indices, aval.shape, node.grid)
        return Ref(block.base, -1 if skipped is None else block.offset - skipped * aval.itemsize)

    def _control(self, step: ControlStep, node: ControlNode, reads: Placed, writes: Placed) -> Iterator[str]:
        """Turns work in the memory of their results, and in scratch that holds nothing afterwards."""
        yield from self._reads(reads)
        for ref, nbytes in written(step):
            if any(_within(ref, nbytes, r, self.graph.avals[v].nbytes) for v, r in writes):
                continue
            place = place_text(ref, self.names)
            if ref.base != self.plan.arena or ref.offset + nbytes > self.plan.arena_bytes:
                yield f"{self.step} writes {nbytes} bytes to {place}, which are none of its results"
            met = [v for v, r in reads if _meet(ref, nbytes, r, self.graph.avals[v].nbytes)]
            if met:
                yield f"{self.step} works at {place}, where it still reads v{met[0]}"
            self.memory.put(ref, nbytes, SCRATCH, self.step)
        yield from self._does(reads, writes, _carried(node))

    def _does(self, reads: Placed, writes: Placed, shared: Pairs) -> Iterator[str]:
        """What a step reads and writes; pairs of a read and a written value that are ``shared`` may be in one place."""
        yield from self._reads(reads)
        for v, ref in writes:
            size, end = self.memory.sizes[ref.base], ref.offset + self.graph.avals[v].nbytes
            if not 0 <= ref.offset <= end <= size:
                yield f"{self._at('writes', v, ref)}, and {self.names[ref.base]} has {size} bytes"
            if ref.base > self.plan.arena or (ref.base < len(self.plan.inputs) and ref.base not in self.free):
                yield f"{self._at('writes', v, ref)}, which must stay as it is"
            apart = [(w, r) for w, r in reads if r != ref or (w, v) not in shared]
            met = [w for w, r in apart if _meet(ref, end - ref.offset, r, self.graph.avals[w].nbytes)]
            if met:
                yield f"{self._at('writes', v, ref)}, where it still reads v{met[0]}"
            self._put(v, ref)
        yield from self._reads(writes)

    def _reads(self, placed: Placed) -> Iterator[str]:
        """Each value must be where the step looks for it, whole."""
        for v, ref in placed:
            nbytes, value = self.graph.avals[v].nbytes, self.same.get(v, v)
            if nbytes and value != UNSET:
                found = self.memory.at(ref, nbytes)
                there = [(p.start, p.end, self.same.get(p.value, p.value)) for p in found]
                if there != [(ref.offset, ref.offset + nbytes, value)]:
                    names = ", ".join(f"{_named(p.value)} is since {p.since}" for p in found) or "nothing is"
                    yield f"{self._at('looks for', v, ref)}, where {names}"

    def _at(self, does: str, value: int, ref: Ref) -> str:
        aval = self.graph.avals[value].str_short(True)
        return f"{self.step} {does} v{value} ({aval}) at {place_text(ref, self.names)}"

    def _put(self, value: int, ref: Ref) -> None:
        if nbytes := self.graph.avals[value].nbytes:
            self.memory.put(ref, nbytes, value, self.step)


def _meet(a: Ref, size: int, b: Ref, other: int) -> bool:
    """Whether two places share bytes."""
    return a.base == b.base and max(a.offset, b.offset) < min(a.offset + size, b.offset + other)


def _within(a: Ref, size: int, b: Ref, other: int) -> bool:
    return a.base == b.base and b.offset <= a.offset and a.offset + size <= b.offset + other


# --- what the graph says ----------------------------------------------------------------------------------------------

UNSET = -1
"""Stands for a value that no element has been stored of: anything may be there."""
SCRATCH = -2
"""Stands for what a loop or a branch leaves in memory that it alone uses."""


def _same(graph: Graph) -> dict[int, int]:
    """The values that have the contents of others, and of which; nothing is done for them."""
    same: dict[int, int] = {}
    for node in graph.nodes:
        if isinstance(node, KernelNode) and (node.alias is not None or not points(node.grid)):
            source = node.updates if node.alias is None else node.alias
            same[node.outs[0]] = UNSET if source is None else same.get(source, source)
    return same


def _named(value: int) -> str:
    return "scratch" if value == SCRATCH else f"v{value}"


def _placed(values: Sequence[int], refs: Sequence[Ref]) -> Placed:
    return list(zip(values, refs, strict=True))


def _carried(node: ControlNode) -> Pairs:
    """Which arguments of a loop may become which of its results, in one place."""
    carries = [node.inputs[k] for k in node.carried] if isinstance(node, LoopNode) else []
    return {(v, out) for v, out in zip(carries, node.outs, strict=False) if node.inputs.count(v) == 1}


def _inner(step: ControlStep, node: ControlNode) -> Iterator[tuple[Inner, Graph, Sequence[bool]]]:
    """The plans of a step, what they were made of, and which of their inputs they may write to."""
    if isinstance(node, LoopNode) and isinstance(step, LoopStep):
        carried = node.carried.start - node.consts[0], node.carried.stop - node.consts[0]
        yield step.body, node.body, [carried[0] <= k < carried[1] for k in range(len(node.body.inputs))]
        if node.test is not None and step.test is not None:
            yield step.test, node.test, ()
    elif isinstance(node, BranchNode) and isinstance(step, BranchStep):
        yield from ((inner, graph, ()) for inner, graph in zip(step.branches, node.graphs, strict=True))


def _at_own_points(graph: Graph, node: KernelNode) -> Pairs:
    """What a kernel reads, element by element, just before it writes there."""
    if not node.pure or node.folds or node.stacked:
        return set()
    read = [v for v, access in node.reads.items() if access.aligned]
    sizes = [(v, out, graph.avals[v], graph.avals[out]) for v in read for out in node.outs]
    return {(v, out) for v, out, a, b in sizes if a.shape == b.shape and a.itemsize == b.itemsize}
