"""The compiler as one list: all that happens to a program on its way to a plan, in this order.

A pass maps a program to one of the same or of the next kind: jaxpr, graph of kernels, plan. Each is timed, and, where
somebody looks, what it made is kept as text. What a pass does is in the module that its function comes from.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from polyax.ir import blame
from polyax.ir.check import check_jaxpr
from polyax.ir.config import config
from polyax.ir.errors import InternalError, PluginError
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.runtime.contract.backend import Decision, Meaning
from polyax.runtime.contract.hooks import Chosen
from polyax_kernels.ir.graph import CallNode, Graph, Node
from polyax_kernels.ir.kernel import Kernel
from polyax_kernels.ir.keys import structural_key
from polyax_kernels.ir.limits import Limits
from polyax_kernels.ir.origin import rules
from polyax_kernels.lower.build import build_graph
from polyax_kernels.lower.choice import WITHOUT, Rules, plugin_of
from polyax_kernels.lower.complexes.rewrite import as_pairs
from polyax_kernels.passes.canonical import canonical
from polyax_kernels.passes.check import check_graph, check_lowerings
from polyax_kernels.passes.copies import alias_copies
from polyax_kernels.passes.invariants import hoist_invariants
from polyax_kernels.passes.operands import order_operands
from polyax_kernels.passes.ordering import readers_first
from polyax_kernels.passes.split import split_reductions
from polyax_kernels.passes.sums import sum_calls
from polyax_kernels.passes.transposes import absorb_transposes
from polyax_kernels.passes.unread import leave_out_unread
from polyax_kernels.plan.check import check_plan
from polyax_kernels.plan.journal import Journal
from polyax_kernels.plan.plan import ControlStep, KernelStep, Plan, Step
from polyax_kernels.plan.planner import make_plan
from polyax_kernels.plan.text import graph_text, plan_text
from polyax_kernels.run.meaning import as_type, meaning


@dataclass(frozen=True)
class Compilation:
    """What passes may ask of the compilation that they are part of."""

    rules: Rules
    limits: Limits
    fusers: Sequence[Chosen] = ()
    donated: tuple[bool, ...] = ()
    """Per constant and input: whether its memory may be written to."""
    members: int = 1
    """How many devices run it together."""
    eager: bool = False
    """The kernels are to serve all sizes of arrays."""
    journal: Journal = field(default_factory=Journal)


@dataclass(frozen=True)
class Pass:
    """``run(program, compilation)`` gives the program that the next pass gets."""

    name: str
    run: Callable[[Any, Compilation], Any]
    whose: str = ""
    """The plugin that brings it; none, if it is the compiler's own."""

    @property
    def title(self) -> str:
        return f"fuser {self.name!r} of {self.whose}" if self.whose else f"pass {self.name!r}"

    @property
    def remedy(self) -> str:
        """What the user can do if it is wrong."""
        if self.whose:
            return "POLYAX_FUSERS can leave it out"
        return WITHOUT if self.name == "lower" else ""


def on_graphs(change: Callable[[Graph, Compilation], Graph]) -> Callable[[Graph, Compilation], Graph]:
    """``change``, made to the graphs of loops and branches first."""
    return functools.partial(_inner_first, change)


def _inner_first(change: Callable[[Graph, Compilation], Graph], graph: Graph, c: Compilation) -> Graph:
    return change(graph.with_inner(lambda inner: _inner_first(change, inner, c)), c)


def fusing(chosen: Chosen) -> Pass:
    """One kernel alone is left as it is."""
    whose, fuser = chosen

    def fused(graph: Graph, c: Compilation) -> Graph:
        if len(graph.nodes) < 2:
            return graph
        nodes = list(graph.nodes)
        made = fuser.run(graph, c.limits)
        if graph.nodes != nodes:
            fault = "the graph that it was given, changed; graph.with_nodes gives another one"
        else:
            fault = None if made is graph else _why_no_graph(made, graph)
        if fault:
            raise PluginError(f"fuser {fuser.name!r} of {whose} gave {fault}; POLYAX_FUSERS can leave it out")
        return made

    return Pass(fuser.name, on_graphs(fused), whose)


def _why_no_graph(made: Any, before: Graph) -> str | None:
    """What is wrong at first sight with what a fuser gave; ``check_graph`` looks closer."""
    if not isinstance(made, Graph):
        return f"{made!r}, not a Graph"
    for what, found, kind in (("nodes", made.nodes, Node), ("decisions", made.decisions, Decision)):
        if not _is_list(found, kind):
            return f"a graph whose {what} are {found!r}, not a list of them"
    if (made.inputs, made.outputs) != (before.inputs, before.outputs):
        return "a graph of other inputs or results"
    there = {*made.inputs, *made.literals, *(v for node in made.nodes for v in node.outs)}
    lost = {*made.outputs, *(v for node in made.nodes for v in node.inputs)} - there
    return f"a graph in which nobody computes {', '.join(f'v{v}' for v in sorted(lost))}" if lost else None


def _is_list(found: Any, kind: Any) -> bool:
    return isinstance(found, list) and all(isinstance(x, kind) for x in found)


OWN = "polyax-kernels"
"""Who brings the passes, and the rules that backends share."""
TO_GRAPH = (
    Pass("hoist invariants", lambda jaxpr, _: hoist_invariants(jaxpr)),
    Pass("complex as pairs", lambda jaxpr, c: as_pairs(jaxpr, c.rules)),
    Pass("lower", lambda jaxpr, c: build_graph(jaxpr, c.rules, keep=c.journal.keep)),
    Pass("leave out unread", on_graphs(lambda graph, _: leave_out_unread(graph))),
    Pass("absorb transposes", on_graphs(lambda graph, _: absorb_transposes(graph))),
    Pass("order operands", on_graphs(lambda graph, c: order_operands(graph, c.limits))),
)
"""Then the fusers that the backend or the user chose."""
AFTER_FUSERS = (
    Pass("sum calls", on_graphs(lambda graph, c: sum_calls(graph) if c.members > 1 else graph)),
    Pass("split reductions", on_graphs(lambda graph, c: split_reductions(graph, c.limits))),
    Pass("alias copies", on_graphs(lambda graph, _: alias_copies(graph))),
    Pass("readers first", on_graphs(lambda graph, _: readers_first(graph))),
)
TO_PLAN = (
    Pass("plan", lambda graph, c: make_plan(graph, c.donated)),
    Pass("canonical kernels", lambda plan, c: _canonical_kernels(plan, c)),
)


def plan_of(jaxpr: ClosedJaxpr, c: Compilation) -> Plan:
    """The plan of a program, its kernels in canonical form. Call it inside ``with consing():``."""
    return run((*TO_GRAPH, *map(fusing, c.fusers), *AFTER_FUSERS, *TO_PLAN), jaxpr, c)


def graph_of(jaxpr: ClosedJaxpr, c: Compilation) -> Graph:
    """The graph of a program, fused, before it is planned."""
    return run((*TO_GRAPH, *map(fusing, c.fusers), *AFTER_FUSERS), jaxpr, c)


def meanings(jaxpr: ClosedJaxpr, c: Compilation, inputs: Sequence[Any]) -> Iterator[Meaning]:
    """What a program computes for ``inputs`` after each pass that changes its graph. Call it inside ``consing()``."""
    program: Any = jaxpr
    for step in (*TO_GRAPH, *map(fusing, c.fusers), *AFTER_FUSERS):
        before, program = program, run((step,), program, c)
        if program is before or not isinstance(program, Graph):
            continue
        try:
            found = [as_type(x, a) for x, a in zip(meaning(program, inputs), jaxpr.out_avals, strict=True)]
        except Exception as e:
            found = e
        if step.name == "lower":
            whose, names = _lowered(jaxpr, program, c, found)
            yield Meaning(whose, f"its lowering of {names}", found, step.remedy)
            if all(isinstance(node, CallNode) for node in program.nodes):
                yield Meaning(whose, f"its lowering of {names}", None, step.remedy)
        else:
            part = f"its fuser {step.name!r}" if step.whose else f"its {step.title}"
            yield Meaning(step.whose or OWN, part, found, step.remedy)


def _lowered(jaxpr: ClosedJaxpr, graph: Graph, c: Compilation, found: Any) -> tuple[str, str]:
    """Whose rules made a graph, if they are of one plugin, and for which primitives."""
    origins = [p for node in graph.nodes for p in node.primitives]
    whose, names = set(map(plugin_of, rules(origins))), dict.fromkeys(map(str, origins))
    if len(jaxpr.jaxpr.eqns) == 1:  # by whatever it is replaced
        (eqn,) = jaxpr.jaxpr.eqns
        whose, names = {plugin_of(c.rules.choose(eqn)[0])}, {eqn.primitive.name: None}
    if isinstance(found, Exception) and "plugin" in blame.facts(found):
        whose = {blame.facts(found)["plugin"]}
    return (whose.pop() if len(whose) == 1 else "") or OWN, ", ".join(names)


def run(passes: Sequence[Pass], program: Any, c: Compilation) -> Any:
    """``program`` after all passes, with an entry in the journal for each."""
    for step in passes:
        before = program
        with c.journal.phase(step.name):
            program = _blamed(step, before, c)
        if program is not before:
            c.journal.note(step.name, _TEXTS[type(program)], program)
    return program


def _blamed(step: Pass, program: Any, c: Compilation) -> Any:
    """The program after ``step``, which is to blame for what it raises and for what ``config.checks`` find."""
    try:
        made = step.run(program, c)
        if made is not program and config.checks:
            check(step, program, made, c)
        return made
    except BaseException as e:
        own = OWN if isinstance(e, InternalError) else ""
        blame.about(e, plugin=step.whose or own, hint=step.whose and f"{step.title}; {step.remedy}")
        raise


def check(step: Pass, before: Any, program: Any, c: Compilation) -> None:
    """Raises if a pass has made a wrong program; canonical kernels are in the places that have been checked."""
    if isinstance(program, ClosedJaxpr):
        check_jaxpr(program.jaxpr)
    elif isinstance(program, Graph):
        if isinstance(before, ClosedJaxpr):
            check_lowerings(program)
        limits = c.limits if step.whose else None
        check_graph(program, step.title, before if isinstance(before, Graph) else None, limits)
    elif isinstance(before, Graph):
        check_plan(program, before, c.donated, c.limits)


_TEXTS: dict[type, Callable[[Any], str]] = {ClosedJaxpr: str, Graph: graph_text, Plan: plan_text}


def _canonical_kernels(plan: Plan, c: Compilation) -> Plan:
    """Loops are compiled for their own sizes alone. What is equal already is worked out once."""
    for_all_sizes = c.eager and not any(isinstance(step, ControlStep) for step in plan.steps)
    known: dict[str, tuple[Kernel, tuple[int, ...]]] = {}

    def change(step: Step) -> Step:
        if not isinstance(step, KernelStep):
            return step
        key = structural_key(step.kernel)
        if key not in known:
            known[key] = canonical(step.kernel, for_all_sizes, alone=c.limits.group == 1)
        kernel, scalars = known[key]
        if (kernel.name, kernel.primitives) != (step.kernel.name, step.kernel.primitives):
            kernel = replace(kernel, name=step.kernel.name, primitives=step.kernel.primitives)
        return replace(step, kernel=kernel, scalars=scalars)

    return plan.with_steps(change)
