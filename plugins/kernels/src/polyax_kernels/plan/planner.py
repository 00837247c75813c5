"""From a kernel graph to a plan: which values share memory, how long each lives, and where it is put.

Order is that of the graph. A value whose kernel updates another one in place shares its
memory if nobody reads the old contents afterwards; else they are copied first.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax_kernels.ir.expr import Axis, Expr, points
from polyax_kernels.ir.graph import BranchNode, CallNode, ControlNode, Graph, KernelNode, LoopNode, Node
from polyax_kernels.ir.strides import contiguous_from
from polyax_kernels.ir.work import bytes_moved, operations
from polyax_kernels.plan.loops import Surroundings
from polyax_kernels.plan.operands import finished
from polyax_kernels.plan.plan import Arena, CallStep, CopyStep, KernelStep, Made, Plan, Ref, Step, literal_key

FOREVER = 1 << 60


def make_plan(graph: Graph, donated: Sequence[bool] = (), carried: bool = False) -> Plan:
    """The plan of ``graph``; ``donated`` says per input whether its memory may be written to. If these inputs are
    ``carried``, it may only become that of the result of the same number among them.

    Call it inside ``with consing():``.
    """
    homes = _Homes(graph, donated, carried)
    places = _Places(graph, homes)
    steps: list[Step] = []
    made: list[Made] = []
    for n, node in enumerate(graph.nodes):
        places.start(n, node)
        steps += _steps(graph, node, homes, places)
        if config.checks:
            made += [places.made(node)] * (len(steps) - len(made))
        places.finish(n)
    return places.plan(steps, made)


class _Homes:
    """Which values live in one place: aliases, and updates in place. The home is named by its first value."""

    def __init__(self, graph: Graph, donated: Sequence[bool], carried: bool) -> None:
        self.graph = graph
        self.donated = dict.fromkeys(v for v, d in zip(graph.inputs, donated, strict=False) if d)
        self.next = dict(zip(self.donated, graph.outputs, strict=False)) if carried else None
        """The results that carries become."""
        self.of: dict[int, int] = {v: v for v in graph.inputs}
        self.copied: set[int] = set()
        """Results of updates whose old contents are copied first."""
        self.moving: set[int] = set()
        """Positions of nodes that only give a value a new shape: they do nothing."""
        self.overwritten: set[int] = set()
        self._aliases()
        self.last = self._last_uses()
        self._updates()
        if self.donated:
            self._reuse_donated()

    def _aliases(self) -> None:
        for n, node in enumerate(self.graph.nodes):
            for v in node.outs:
                self.of[v] = v
            if isinstance(node, KernelNode) and node.alias is not None:
                self.of[node.outs[0]] = self.home(node.alias)
                self.moving.add(n)

    def home(self, value: int) -> int:
        """Updates chain homes together; paths are shortened as they are walked."""
        path: list[int] = []
        while (up := self.of.get(value, value)) != value:
            path.append(value)
            value = up
        for v in path:
            self.of[v] = value
        return value

    def _last_uses(self) -> dict[int, int]:
        last = {self.home(v): n for n, node in enumerate(self.graph.nodes) for v in (*node.inputs, *node.outs)}
        return last | {self.home(v): FOREVER for v in self.graph.outputs}

    def _updates(self) -> None:
        inputs = {v for v in self.graph.inputs if v not in self.donated}
        for n, node in enumerate(self.graph.nodes):
            if isinstance(node, KernelNode):
                if node.updates is not None and not self._takes_over(n, node.updates, node.outs[0], node.reads, inputs):
                    self.copied.add(node.outs[0])
            elif isinstance(node, LoopNode):
                for value, out in zip([node.inputs[k] for k in node.carried], node.outs, strict=False):
                    self._takes_over(n, value, out, others(node.inputs, value), inputs)

    def _takes_over(self, n: int, value: int, out: int, read: Iterable[int], inputs: Collection[int]) -> bool:
        """Puts ``out``, which step ``n`` makes of ``value``, in its place, unless somebody else needs the contents."""
        base = self.home(value)
        if base in inputs or base in self.graph.literals or self.last.get(base, n) > n:
            return False
        if any(self.home(v) == base for v in read):
            return False
        self.last[base] = self.last[out]
        self.of[out] = base
        if base in self.donated:
            self.overwritten.add(base)
        return True

    def _reuse_donated(self) -> None:
        """Results move into donated inputs of their size that nobody reads afterwards."""
        avals = self.graph.avals
        free = [v for v in self.donated if v not in self.overwritten and self.last.get(v) != FOREVER]
        for n, out in [(n, v) for n, node in enumerate(self.graph.nodes) for v in node.outs]:
            if not free or self.home(out) != out or self.last[out] != FOREVER:
                continue
            fitting = [v for v in free if avals[v].nbytes == avals[out].nbytes and self._may_become(v, out, n)]
            if fitting:
                free.remove(fitting[0])
                self.of[out] = fitting[0]
                self.last[fitting[0]] = FOREVER
                self.overwritten.add(fitting[0])

    def _may_become(self, value: int, out: int, n: int) -> bool:
        return (self.next is None or self.home(self.next[value]) == out) and self._is_over(value, out, n)

    def _is_over(self, value: int, out: int, n: int) -> bool:
        """Whether step ``n`` may put ``out`` over ``value``: that is read before, or by the step itself at the same
        points, each of which has one place in both.

        A kernel computes all results of a point before it stores the first.
        """
        last, node = self.last.get(value, -1), self.graph.nodes[n]
        if last != n:
            return last < n
        if not isinstance(node, KernelNode) or not node.pure or node.folds or node.stacked:
            return False
        readers = [v for v in node.reads if self.home(v) == value]
        shape = self.graph.avals[out].shape
        return all(node.reads[v].aligned and self.graph.avals[v].shape == shape for v in readers)


def others(values: Sequence[int], value: int) -> list[int]:
    """The values but for one occurrence of ``value``."""
    n = list(values).index(value)
    return [*values[:n], *values[n + 1 :]]


class _Places:
    """Gives each home a place while the steps go by."""

    def __init__(self, graph: Graph, homes: _Homes) -> None:
        self.graph = graph
        self.homes = homes
        self.arena = Arena()
        self.offsets: dict[int, int] = {}
        """Homes in the arena."""
        self.constants: dict[Any, tuple[int, np.ndarray]] = {}
        """Scalars written in the program, those of loops and branches too."""
        self.scratch: list[tuple[int, int]] = []
        """Offsets in the arena and sizes of what the present step alone uses."""
        self.dying: dict[int, list[int]] = {}
        self.inputs = {v: n for n, v in enumerate(graph.inputs)}
        results = dict.fromkeys(homes.home(v) for v in graph.outputs)
        self.fresh = {h: n for n, h in enumerate(h for h in results if h not in self.inputs)}
        self.first_constant = len(self.inputs) + len(self.fresh) + 1

    def start(self, n: int, node: Node) -> None:
        """Makes room for what ``node`` computes."""
        for v in node.outs:
            home = self.homes.home(v)
            if home in self.inputs or home in self.fresh or home in self.offsets:
                continue
            self.offsets[home] = self.arena.allocate(self.graph.avals[home].nbytes)
            self.dying.setdefault(self.homes.last[home], []).append(home)

    def finish(self, n: int) -> None:
        """Frees what nobody needs after step ``n``."""
        for home in self.dying.pop(n, ()):
            self.arena.free(self.offsets[home], self.graph.avals[home].nbytes)
        self.release()

    def borrow(self, nbytes: int) -> Ref:
        """Scratch memory, until ``release``."""
        start = self.arena.allocate(nbytes)
        self.scratch.append((start, nbytes))
        return Ref(self.first_constant - 1, start)

    def release(self) -> None:
        for start, nbytes in self.scratch:
            self.arena.free(start, nbytes)
        self.scratch.clear()

    def constant(self, value: np.ndarray) -> Ref:
        """Where the plan keeps ``value``; equal scalars are kept once."""
        number, _ = self.constants.setdefault(literal_key(value), (len(self.constants), value))
        return Ref(self.first_constant + number)

    def ref(self, value: int) -> Ref:
        home = self.homes.home(value)
        if value in self.graph.literals:
            return self.constant(np.asarray(self.graph.literals[value], self.graph.avals[value].dtype))
        if home in self.inputs:
            return Ref(self.inputs[home])
        if home in self.fresh:
            return Ref(len(self.inputs) + self.fresh[home])
        return Ref(self.first_constant - 1, self.offsets[home])

    def made(self, node: Node) -> Made:
        return Made(node, tuple(map(self.ref, node.inputs)), tuple(map(self.ref, node.outs)))

    def plan(self, steps: list[Step], made: list[Made]) -> Plan:
        graph, avals = self.graph, self.graph.avals
        return Plan(
            tuple(avals[v] for v in graph.inputs),
            tuple(avals[h].nbytes for h in self.fresh),
            self.arena.size,
            tuple(value for _, value in self.constants.values()),
            steps,
            tuple(self.ref(v).base for v in graph.outputs),
            tuple(avals[v] for v in graph.outputs),
            frozenset(self.inputs[v] for v in self.homes.overwritten),
            graph.decisions,
            graph.bytes_unfused,
            graph.program,
            made,
        )


def _steps(graph: Graph, node: Node, homes: _Homes, places: _Places) -> list[Step]:
    if isinstance(node, CallNode):
        return [_call_step(graph, node, places)]
    if isinstance(node, ControlNode):
        return [_control_step(graph, node, places)]
    if node.alias is not None:
        return []
    steps: list[Step] = []
    out = node.outs[0]
    if out in homes.copied:
        assert node.updates is not None
        nbytes = graph.avals[out].nbytes
        steps.append(CopyStep(places.ref(node.updates), places.ref(out), nbytes, node.primitives))
    if all(graph.avals[v].size == 0 for v in node.outs) or not points(node.grid):
        return steps
    return [*steps, _block_copy(graph, node, places) or _kernel_step(graph, node, places)]


def _block_copy(graph: Graph, node: KernelNode, places: _Places) -> CopyStep | None:
    """A copy of memory that does what ``node`` does, if all that it does is to move one block to another place.

    A program that joins hundreds of arrays then needs no kernel for each.
    """
    store = node.stages[0].stores[0]
    value = store.value
    if value.kind != "load" or value.attr.masked or store.mask is not None or store.combine is not None:
        return None
    if len(node.stores) > 1 or node.stages[0].axes or not all(isinstance(a.extent, int) for a in node.grid):
        return None
    read = _block(graph, places, value.attr.slot, value.args, node.grid)
    written = _block(graph, places, store.slot, store.indices, node.grid)
    if read is None or written is None:
        return None
    return CopyStep(read, written, points(node.grid) * value.dtype.itemsize, node.primitives)


def _block(graph: Graph, places: _Places, value: int, indices: Sequence[Expr], grid: Sequence[Axis]) -> Ref | None:
    """Where the block begins that the points of ``grid`` walk through in ``value``; None if it isn't one."""
    start = contiguous_from(indices, graph.avals[value].shape, grid)
    if start is None:
        return None
    ref = places.ref(value)
    return Ref(ref.base, ref.offset + start * graph.avals[value].itemsize)


def _control_step(graph: Graph, node: ControlNode, places: _Places) -> Step:
    """Inner graphs are planned here, once; their memory lies in the arena while the step runs."""
    surroundings = Surroundings(places.borrow, places.constant)
    args, outs = [places.ref(v) for v in node.inputs], [places.ref(v) for v in node.outs]
    if isinstance(node, BranchNode):
        return surroundings.branches(node, [make_plan(g) for g in node.graphs], args, outs)
    consts, carries, rest = node.consts[1], node.carries, len(node.body.inputs) - node.consts[1] - node.carries
    donated = (*[False] * consts, *[True] * carries, *[False] * rest)
    test = None if node.test is None else make_plan(node.test)
    avals = tuple([graph.avals[v] for v in node.outs])
    return surroundings.loop(node, make_plan(node.body, donated, carried=True), test, args, outs, avals)


def _call_step(graph: Graph, node: CallNode, places: _Places) -> CallStep:
    args, outs = graph.types(node)
    return CallStep(
        node.lowering,
        node.primitive,
        node.params,
        tuple(places.ref(v) for v in node.inputs),
        args,
        tuple(places.ref(v) for v in node.outs),
        outs,
        bytes_moved(graph, node),
        sum(a.size for a in outs) * _terms(node.lowering.sums or node, args),
        node.primitives,
    )


def _terms(node: CallNode, args: Sequence[ShapedArray]) -> int:
    """The operations that one element of a call's results takes, as far as its parameters tell."""
    if node.name != "dot_general":
        return 1
    (contracted, _), _ = node.params["dimension_numbers"]
    return 2 * math.prod(args[0].shape[d] for d in contracted)


def _kernel_step(graph: Graph, node: KernelNode, places: _Places) -> KernelStep:
    kernel, values = finished(graph, node)
    refs = tuple(places.ref(v) for v in values)
    outs = tuple(graph.avals[v] for v in node.outs)
    return KernelStep(kernel, refs, (), bytes_moved(graph, node), operations(kernel), out_avals=outs)
