"""Graphs and plans as text for people: what ``POLYAX_DUMP`` writes. Linear in the size of the graph.

A node is printed with its loops and what it stores; expressions that are used more than once get a name (``t1``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from polyax_kernels.ir.expr import Axis, Expr, postorder
from polyax_kernels.ir.graph import CallNode, ControlNode, Graph, KernelNode, Node
from polyax_kernels.ir.kernel import Stage, Store, store_roots
from polyax_kernels.ir.origin import equations
from polyax_kernels.plan.plan import CallStep, ControlStep, CopyStep, KernelStep, LoopStep, Plan, Ref, Step

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|", "xor": "^",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
LONG = 80
"""Longer expressions are named, so that lines can be read."""


def graph_text(graph: Graph) -> str:
    """The nodes of a graph in order, its inputs before and its results after them."""
    inputs = " ".join(_typed(graph, v) for v in graph.inputs)
    nodes = [line for node in graph.nodes for line in _node(graph, node)]
    outputs = " ".join(_value(graph, v) for v in graph.outputs)
    return "\n".join([f"inputs {inputs}", *nodes, f"results {outputs}", ""])


def _value(graph: Graph, v: int) -> str:
    return repr(graph.literals[v]) if v in graph.literals and not graph.avals[v].shape else f"v{v}"


def _typed(graph: Graph, v: int) -> str:
    return f"v{v}:{graph.avals[v].str_short(True)}"


def _node(graph: Graph, node: Node) -> Iterator[str]:
    outs = " ".join(_typed(graph, v) for v in node.outs)
    numbers = ", ".join(map(str, equations(node.primitives)))
    where = f"  # equations {numbers}" if numbers else ""
    if isinstance(node, ControlNode):
        yield f"{outs} = {node.name}({', '.join(_value(graph, v) for v in node.inputs)}){where}"
        for inner in node.graphs:
            yield from (f"    {line}" for line in graph_text(inner).splitlines())
        return
    if isinstance(node, CallNode):
        yield f"{outs} = call {node.name}({', '.join(_value(graph, v) for v in node.inputs)}){where}"
        return
    yield f"{outs} = kernel {node.name}{_loops(node.grid)}{_special(node)}{where}"
    local = {store.slot: f"local{store.slot}" for store in node.stores if store.slot not in node.outs}
    for stage in node.stages:
        yield from _stage(stage, local)


def _special(node: KernelNode) -> str:
    if node.alias is not None:
        return f" alias of v{node.alias}"
    return f" updates v{node.updates}" if node.updates is not None else ""


def _loops(axes: Iterable[Axis]) -> str:
    return "".join(f" [{a.name}:{a.extent}]" for a in axes)


def _stage(stage: Stage, names: dict[int, str]) -> Iterator[str]:
    pad = "    "
    if stage.axes:
        yield f"{pad}for{_loops(stage.axes)}"
        pad += "    "
    text = _Expressions(names)
    for line in text.named([x for store in stage.stores for x in store_roots(store)]):
        yield pad + line
    for store in stage.stores:
        yield pad + _store(store, text, names)


def _store(store: Store, text: _Expressions, names: dict[int, str]) -> str:
    indices = ", ".join(map(text, store.indices))
    sign = f" {store.combine}=" if store.combine else " ="
    mask = f" where {text(store.mask)}" if store.mask is not None else ""
    return f"{names.get(store.slot, f'v{store.slot}')}[{indices}]{sign} {text(store.value)}{mask}"


class _Expressions:
    """Expressions as text; ``names`` are those of values that are not called by their numbers."""

    def __init__(self, names: dict[int, str]) -> None:
        self.names = names
        self.known: dict[Expr, str] = {}

    def __call__(self, x: Expr) -> str:
        return self.known[x]

    def named(self, roots: list[Expr]) -> Iterator[str]:
        """The lines that give names to what is used more than once, or long."""
        order = postorder(*roots)
        uses = Counter(a for x in order for a in x.args)
        count = 0
        for x in order:
            full = self.form(x)
            if x.args and x.kind != "load" and (uses[x] > 1 or len(full) > LONG):
                count += 1
                self.known[x] = f"t{count}"
                yield f"t{count} = {full}"
            else:
                self.known[x] = full

    def form(self, x: Expr) -> str:
        args = [self.known[a] for a in x.args]
        if x.kind == "load":
            return self.load(x, args)
        if x.kind == "fold":
            half = len(args) // 2
            which = f".{x.attr.which}" if half > 1 else ""
            inits, bodies = ", ".join(args[:half]), ", ".join(args[half:])
            return f"{x.attr.combine}{_loops(x.attr.axes)}({bodies}; from {inits}){which}"
        if x.kind == "op" and x.attr in INFIX and len(args) == 2:
            return f"({args[0]} {INFIX[x.attr]} {args[1]})"
        if x.kind in ("cast", "bitcast"):
            return f"{x.kind}<{x.dtype}>({args[0]})"
        return f"{x.attr}({', '.join(args)})" if x.kind == "op" else f"{'p' if x.kind == 'param' else ''}{x.attr}"

    def load(self, x: Expr, args: list[str]) -> str:
        name = self.names.get(x.attr.slot, f"v{x.attr.slot}")
        if not x.attr.masked:
            return f"{name}[{', '.join(args)}]"
        *indices, mask, other = args
        return f"({name}[{', '.join(indices)}] if {mask} else {other})"


def plan_text(plan: Plan) -> str:
    """Memory and steps; a place is a base and an offset: ``arena+64``."""
    names = base_names(plan)
    inputs = [f"{names[n]}  {a}{' (may be overwritten)' if n in plan.overwritten else ''}"
              for n, a in enumerate(plan.inputs)]  # fmt: skip
    fresh = [f"{names[len(plan.inputs) + n]}  {nbytes} bytes" for n, nbytes in enumerate(plan.fresh)]
    arena = [f"arena  {plan.arena_bytes} bytes"] if plan.arena_bytes else []
    steps = [line for n, step in enumerate(plan.steps) for line in _lines(n, step, names)]
    results = "results  " + " ".join(names[b] for b in plan.outputs)
    return "\n".join([*inputs, *fresh, *arena, *steps, results, ""])


def base_names(plan: Plan) -> list[str]:
    """What the bases are called."""
    inputs = [f"input{n}" for n in range(len(plan.inputs))]
    fresh = [f"result{n}" for n in range(len(plan.fresh))]
    literals = [f"{'constant' if x.shape else 'scalar'}{n}" for n, x in enumerate(plan.literals)]
    return [*inputs, *fresh, "arena", *literals]


def _lines(number: int, step: Step, names: list[str]) -> Iterator[str]:
    if not isinstance(step, ControlStep):
        yield f"{number}  {_step(step, names)}"
        return
    turns = f" {step.length or 'unknown'} turns" if isinstance(step, LoopStep) else ""
    yield f"{number}  {step.primitive.name}{turns}  {_work(step.bytes_moved, step.flops)}"
    copies = [*step.before, *step.ends[0]] if isinstance(step, LoopStep) else []
    yield from (f"    {_step(copy, names)}" for copy in copies)
    for role, inner in step.inners:
        places = ", ".join(_turns(a, b, names) for a, b in zip(inner.even, inner.odd, strict=True) if a is not None)
        yield f"    {role} on {places}"
        yield from (f"        {line}" for line in plan_text(inner.plan).splitlines())


def _turns(even: Ref | None, odd: Ref | None, names: list[str]) -> str:
    """A place that may differ from turn to turn."""
    first, second = (place_text(ref, names) for ref in (even, odd))
    return first if first == second else f"{first}|{second}"


def place_text(ref: Ref | None, names: list[str]) -> str:
    return "none" if ref is None else names[ref.base] + (f"+{ref.offset}" if ref.offset else "")


def _step(step: KernelStep | CallStep | CopyStep, names: list[str]) -> str:
    def place(ref: Ref) -> str:
        return place_text(ref, names)

    if isinstance(step, KernelStep):
        return (
            f"kernel {step.kernel.name}({', '.join(map(place, step.operands))})  {_work(step.bytes_moved, step.flops)}"
        )
    if isinstance(step, CallStep):
        outs = ", ".join(map(place, step.outs))
        args = ", ".join(map(place, step.args))
        return f"call {step.primitive.name}({args}) -> {outs}  {_work(step.bytes_moved, step.flops)}"
    return f"copy {place(step.source)} -> {place(step.target)}  {step.nbytes} bytes"


def _work(nbytes: int, flops: int) -> str:
    return f"{nbytes} bytes, {flops} operations"
