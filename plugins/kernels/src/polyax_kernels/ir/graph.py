"""The kernel graph: values, and the nodes that compute them. Fusers map graphs to graphs; plans are made of them.

Values are numbered; the loads and stores of a node's expressions name values instead of operands. Knows neither
primitives nor memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from polyax.ir.aval import ShapedArray
from polyax.runtime.contract.backend import Decision
from polyax.runtime.contract.listing import Listing
from polyax_kernels.ir.dependences import goes_on
from polyax_kernels.ir.expr import Axis, Expr, free_axes, index, points, postorder
from polyax_kernels.ir.kernel import Stage, Store, with_stores

Place = tuple[tuple[Expr, ...], Expr | None]
"""Where a value is read: the indices, and the mask if the load has one."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a kernel reads a value: at ``places``, each at most ``times`` times during the kernel."""

    places: tuple[Place, ...]
    times: int
    aligned: bool
    """Only at the kernel's own grid point, once."""


@dataclass(frozen=True, slots=True)
class KernelNode:
    """Loops that compute ``outs``, as a ``Kernel`` does.

    A ``pure`` node stores each result once: at the grid point, or, if it is ``stacked``, in stages at the points of the
    grid and of their axes. What else it stores are values that live in it alone.
    """

    outs: tuple[int, ...]
    grid: tuple[Axis, ...]
    stages: tuple[Stage, ...]
    reads: Mapping[int, Access]
    weight: int
    """Scalar operations of one point, each fold's body counted once."""
    folds: bool
    primitives: tuple[str, ...]
    """Mostly ``Origin``; fusers join them."""
    pure: bool = True
    updates: int | None = None
    """The value whose memory the first result takes over."""
    ordered: bool = False
    alias: int | None = None
    """The value whose elements the result has, in the same order."""
    locals: tuple[int, ...] = ()
    """Values that stages leave to later ones, each in scratch of one grid point; nobody else can read them."""

    @property
    def stacked(self) -> bool:
        """Whether its grid are rows, which stages compute: its results can't be had one element at a time."""
        return self.pure and not _plain(self.grid, self.stages)

    @property
    def in_turn(self) -> bool:
        """Whether elements that lie side by side are computed one after the other, as running sums along rows."""
        return self.ordered or any(goes_on(stage) and _along_rows(stage) for stage in self.stages if stage.axes)

    @property
    def inputs(self) -> tuple[int, ...]:
        """The values that must be in memory before it runs."""
        if self.updates is None or self.updates in self.reads:
            return tuple(self.reads)
        return (*self.reads, self.updates)

    @property
    def name(self) -> str:
        whole = self.primitives[0] if len(self.primitives) == 1 else "_".join(dict.fromkeys(self.primitives))
        return whole[:48].rstrip("_") or "kernel"

    @property
    def stores(self) -> tuple[Store, ...]:
        return tuple(s for stage in self.stages for s in stage.stores)

    def body(self, value: int) -> Expr:
        """What a pure node that isn't stacked computes for ``value`` at the grid point."""
        return next(s.value for s in self.stages[0].stores if s.slot == value)


def _along_rows(stage: Stage) -> bool:
    """Whether the innermost axis of the stage is that of neighbours in memory."""
    inner = index(stage.axes[-1])
    return any(store.indices and inner in postorder(store.indices[-1]) for store in stage.stores)


Avals = tuple[ShapedArray, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeNode:
    """Runs the equation of ``primitive`` as it is: nothing of it can become part of a kernel."""

    kind: ClassVar[str]

    outs: tuple[int, ...]
    inputs: tuple[int, ...]
    primitive: Any
    effects: bool = False
    primitives: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.primitive.name


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNode(WholeNode):
    """A library call; ``lowering`` is a ``Call``."""

    kind = "library call"

    lowering: Any
    params: dict[str, Any]
    seen: tuple[Avals, Avals] | None = None
    """What the call takes its operands and results for, if not for what they are: complex numbers are pairs to all
    others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopNode(WholeNode):
    """Runs ``body`` again and again. ``inputs``: the constants of ``test``, those of ``body``, the carries before the
    first turn, and arrays of which each turn gets a row. ``outs``: the last carries, and arrays of a row per turn."""

    kind = "loop"

    body: Graph
    test: Graph | None
    """Says whether there is another turn; None if ``length`` does."""
    consts: tuple[int, int]
    """How many constants ``test`` and ``body`` have."""
    carries: int
    length: int | None
    reverse: bool

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return (self.body,) if self.test is None else (self.body, self.test)

    def with_graphs(self, graphs: Sequence[Graph]) -> LoopNode:
        return replace(self, body=graphs[0], test=graphs[1] if len(graphs) > 1 else None)

    @property
    def carried(self) -> range:
        """Positions of the carries among ``inputs``."""
        return range(sum(self.consts), sum(self.consts) + self.carries)


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchNode(WholeNode):
    """Runs one of ``graphs`` on all inputs but the first, which is its number."""

    kind = "branch"

    graphs: tuple[Graph, ...]

    def with_graphs(self, graphs: Sequence[Graph]) -> BranchNode:
        return replace(self, graphs=tuple(graphs))


ControlNode = LoopNode | BranchNode
Node = KernelNode | CallNode | LoopNode | BranchNode


@dataclass
class Graph:
    """A program: nodes in an order in which they can run."""

    avals: list[ShapedArray]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    nodes: list[Node]
    literals: dict[int, Any] = field(default_factory=dict)
    """Scalars and arrays written in the program: kernels have scalars in their expressions, else memory is read."""
    decisions: list[Decision] = field(default_factory=list)
    bytes_unfused: int = 0
    program: Listing | None = None
    """The equations that nodes compute, if somebody wants to see them."""

    def types(self, node: Node) -> tuple[Avals, Avals]:
        """Of the operands and the results of a node."""
        seen = node.seen if isinstance(node, CallNode) else None
        return seen or (tuple([self.avals[v] for v in node.inputs]), tuple([self.avals[v] for v in node.outs]))

    def producers(self) -> dict[int, Node]:
        return {v: node for node in self.nodes for v in node.outs}

    def consumers(self) -> dict[int, list[int]]:
        """Value -> positions of the nodes that use it."""
        uses: dict[int, list[int]] = {}
        for n, node in enumerate(self.nodes):
            for v in node.inputs:
                uses.setdefault(v, []).append(n)
        return uses

    def with_inner(self, change: Callable[[Graph], Graph]) -> Graph:
        """``change`` made to the programs of loops and branches."""
        if not any(isinstance(n, ControlNode) for n in self.nodes):
            return self
        nodes = [n.with_graphs([*map(change, n.graphs)]) if isinstance(n, ControlNode) else n for n in self.nodes]
        return self.with_nodes(nodes)

    def with_nodes(self, nodes: Iterable[Node], decisions: Sequence[Decision] = ()) -> Graph:
        return replace(self, nodes=list(nodes), decisions=[*self.decisions, *decisions])


@dataclass(frozen=True)
class Fuser:
    """A fusion pass; ``run(graph, limits)`` gives the graph with fewer kernels and the decisions that led to it."""

    name: str
    run: Callable[[Graph, Any], Graph]


def own_point(grid: tuple[Axis, ...]) -> tuple[Expr, ...]:
    """The indices of the point of the grid itself."""
    return tuple(map(index, grid))


def axes_of(place: Place) -> set[Axis]:
    """The loops that a place depends on."""
    indices, mask = place
    return set().union(*map(free_axes, indices if mask is None else (*indices, mask)))


def pure_node(
    grid: tuple[Axis, ...],
    i: tuple[Expr, ...],
    bodies: Mapping[int, Expr],
    primitives: tuple[str, ...],
    alias: int | None = None,
) -> KernelNode:
    """The node that stores ``bodies`` at the point ``i`` of ``grid``."""
    stage = Stage((), tuple([Store(v, i, x) for v, x in bodies.items()]))
    reads, weight, folds = examine(grid, (stage,), i)
    return KernelNode(tuple(bodies), grid, (stage,), reads, weight, folds, primitives, alias=alias)


def row_node(
    grid: tuple[Axis, ...], stages: Sequence[Stage], outs: tuple[int, ...], primitives: tuple[str, ...]
) -> KernelNode:
    """The pure node whose stages compute ``outs``; what they store beside them and read again is local."""
    kept = needed(stages, outs)
    reads, weight, folds = examine(grid, kept, own_point(grid) if _plain(grid, kept) else None)
    inside = [s.slot for stage in kept for s in stage.stores]
    outside = {v: access for v, access in reads.items() if v not in inside}
    scratch = tuple([v for v in inside if v not in outs])
    return KernelNode(outs, grid, kept, outside, weight, folds, primitives, locals=scratch)


def needed(stages: Sequence[Stage], outs: Iterable[int]) -> tuple[Stage, ...]:
    """The stages without the stores that neither are ``outs`` nor are read later."""
    live, kept = set(outs), list[Stage]()
    for stage in reversed(stages):
        stores = tuple([s for s in stage.stores if s.slot in live])
        if stores:
            kept.append(with_stores(stage, stores))
            live.update(kept[-1].reads)
    return tuple(reversed(kept))


def _plain(grid: tuple[Axis, ...], stages: Sequence[Stage]) -> bool:
    """Whether all is stored at the grid point, which says everything of where it is computed."""
    if len(stages) != 1 or stages[0].axes:
        return False
    i = own_point(grid)
    return all(s.indices == i for s in stages[0].stores)


def update_node(
    outs: tuple[int, ...],
    grid: tuple[Axis, ...],
    stages: tuple[Stage, ...],
    updates: int | None,
    ordered: bool,
    primitives: tuple[str, ...],
) -> KernelNode:
    """A node with stores of its own, which may read what it writes."""
    reads, weight, folds = examine(grid, stages, own_point(grid))
    kept = {v: access for v, access in reads.items() if v not in outs}
    return KernelNode(outs, grid, stages, kept, weight, folds, primitives, False, updates, ordered)


def rebuilt(node: KernelNode, stages: tuple[Stage, ...], primitives: tuple[str, ...]) -> KernelNode:
    """``node`` with other expressions."""
    if node.stacked:
        return row_node(node.grid, stages, node.outs, primitives)
    if node.pure:
        bodies = {s.slot: s.value for s in stages[0].stores}
        return pure_node(node.grid, own_point(node.grid), bodies, primitives)
    return update_node(node.outs, node.grid, stages, node.updates, node.ordered, primitives)


def examine(
    grid: tuple[Axis, ...], stages: Sequence[Stage], i: tuple[Expr, ...] | None
) -> tuple[dict[int, Access], int, bool]:
    """The accesses of the stages' expressions, the scalar operations, and whether anything is folded.

    ``i`` is the point at which all is stored, if there is one.
    """
    size = points(grid)
    found: dict[int, dict[Expr, int]] = {}
    costs: dict[Expr, int] = {}
    for stage in stages:
        costs |= stage.census.costs
        for x, times in stage.census.loads.items():
            at = found.setdefault(x.attr.slot, {})
            at[x] = max(times * size, at.get(x, 0))
    folds = any(stage.census.folds for stage in stages)
    return {v: _access(at, i, size) for v, at in found.items()}, sum(costs.values()), folds


def _access(found: Mapping[Expr, int], i: tuple[Expr, ...] | None, size: int) -> Access:
    places = tuple([(x.args[:-2], x.args[-2]) if x.attr.masked else (x.args, None) for x in found])
    times = max(found.values())
    return Access(places, times, times == size and len(places) == 1 and places[0] == (i, None))


def _computing(node: KernelNode, outs: tuple[int, ...]) -> KernelNode:
    """The pure ``node`` with some of its results alone, and with those that later stages read."""
    if node.stacked:
        inside = set().union(*[stage.reads for stage in node.stages])
        kept = tuple([v for v in node.outs if v in outs or v in inside])
        return row_node(node.grid, node.stages, kept, node.primitives)
    bodies = {v: node.body(v) for v in outs}
    return pure_node(node.grid, own_point(node.grid), bodies, node.primitives, node.alias)


def eliminate_dead(graph: Graph) -> Graph:
    """Without nodes whose results nobody needs; of pure nodes only the needed results stay."""
    live = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        used = [v for v in node.outs if v in live]
        if not used and (isinstance(node, KernelNode) or not node.effects):
            continue
        if isinstance(node, KernelNode) and node.pure and len(used) < len(node.outs):
            node = _computing(node, tuple(used))
        kept.append(node)
        live.update(node.inputs)
    return graph.with_nodes(reversed(kept))
