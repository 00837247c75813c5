"""From a jaxpr to a kernel graph: one node per equation, nested programs inlined, equal equations computed once.

Iterative and linear in the size of the program. Decides nothing about fusion or memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from polyax.ir import blame
from polyax.ir.aval import ShapedArray
from polyax.ir.errors import PluginError
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var
from polyax.runtime.contract.listing import Line, Listing
from polyax_kernels.ir.expr import Axis
from polyax_kernels.ir.graph import (
    BranchNode,
    CallNode,
    ControlNode,
    Graph,
    KernelNode,
    LoopNode,
    Node,
    eliminate_dead,
    own_point,
    pure_node,
    update_node,
)
from polyax_kernels.ir.kernel import Stage
from polyax_kernels.ir.origin import Origin
from polyax_kernels.lower.checked import check_built, check_program
from polyax_kernels.lower.choice import SHARED_RULE, Rules, blame_rule, plugin_of
from polyax_kernels.lower.complexes.library import behind, types
from polyax_kernels.lower.control import Branch, Loop
from polyax_kernels.lower.folded import folded_by, readers_of
from polyax_kernels.lower.lowering import Grid, Kernels, LoweringKind, Out, Read, Replace, Update


def build_graph(closed: ClosedJaxpr, rules: Rules, rule: str = SHARED_RULE, *, keep: bool = False) -> Graph:
    """The graph of ``closed``, whose constants are inputs. Call it inside ``with consing():``.

    ``rule``: whose lowering it is part of. ``keep``: the graph has a ``program``, the equations by their numbers.

    Raises:
      NoLowering: a primitive can't run on the backend.
    """
    builder = _Builder(rules)
    builder.lines = [] if keep else None
    jaxpr = closed.jaxpr
    env = {v: builder.value(v.aval) for v in (*jaxpr.constvars, *jaxpr.invars)}
    inputs = tuple(env.values())
    builder.walk(_Frame(jaxpr, env, rule))
    outputs = tuple(builder.materialized(builder.read(env, a)) for a in jaxpr.outvars)
    graph = Graph(builder.avals, inputs, outputs, builder.nodes, builder.literals)
    graph.bytes_unfused = builder.bytes
    if builder.lines is not None:
        graph.program = Listing(inputs, outputs, builder.lines, list(builder.avals), builder.literals)
    return eliminate_dead(graph)


@dataclass(slots=True)
class _Frame:
    """A program that is being walked; ``results``: the equation of the outer one that it stands for, by ``rule``.

    Equal equations are computed once within a ``scope``.
    """

    jaxpr: Jaxpr
    env: dict[Var, int]
    rule: str
    results: Sequence[Var] = ()
    scope: int = 0
    of: Eqn | None = None
    """What a plugin's rule gave it for, in the program ``outer``."""
    outer: _Frame | None = None
    eqns: Iterator[Eqn] = field(init=False)
    known_readers: dict[Var, list[Eqn | None]] | None = None

    def __post_init__(self) -> None:
        self.eqns = iter(self.jaxpr.eqns)

    def readers(self) -> dict[Var, list[Eqn | None]]:
        """The equations that read each variable; None for the end of the program."""
        if self.known_readers is None:
            self.known_readers = readers_of(self.jaxpr)
        return self.known_readers


class _Builder:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.avals: list[ShapedArray] = []
        self.nbytes: list[int] = []
        self.nodes: list[Node] = []
        self.literals: dict[int, Any] = {}
        self.bytes = 0
        self.count = 0
        """Equations met so far."""
        self.lines: list[Line] | None = None
        self.frame: _Frame | None = None
        """Whose equation is lowered."""
        self.known: dict[Any, tuple[int, ...]] = {}
        self.known_literals: dict[Any, int] = {}
        self.axes: dict[tuple[int, int], Axis] = {}
        self.grids: dict[tuple[int, ...], Grid] = {}

    def value(self, aval: ShapedArray) -> int:
        self.avals.append(aval)
        self.nbytes.append(aval.nbytes)
        return len(self.avals) - 1

    def literal(self, value: Any, aval: ShapedArray) -> int:
        """Equal scalars are one value, and so is an array that is met again."""
        array = np.asarray(value, aval.dtype)
        key = aval.dtype, id(value) if aval.shape else array.tobytes()
        if key not in self.known_literals:
            self.known_literals[key] = self.value(aval)
            number = array.item() if isinstance(value, np.generic) else value  # one text for one kernel
            self.literals[self.known_literals[key]] = array if aval.shape else number
        return self.known_literals[key]

    def read(self, env: Mapping[Var, int], atom: Atom) -> int:
        return env[atom] if isinstance(atom, Var) else self.literal(atom.val, atom.aval)

    def materialized(self, value: int) -> int:
        """``value``, computed by a kernel if it is a literal: results live in memory of their own."""
        if value not in self.literals:
            return value
        aval = self.avals[value]
        result, (axes, i) = self.value(aval), self.grid(aval.shape)
        self.nodes.append(pure_node(axes, i, {result: self.operand(value).at(i)}, ("literal",)))
        return result

    def operand(self, value: int) -> Read:
        aval = self.avals[value]
        return Read(value, aval, None if aval.shape else self.literals.get(value))

    def walk(self, frame: _Frame) -> None:
        frames = [frame]
        while frames:
            frame = frames[-1]
            for eqn in frame.eqns:
                try:
                    inner = self.equation(frame, eqn)
                except BaseException as e:
                    blame.about(e, primitives=eqn.primitive.name, source=eqn.source)
                    raise
                if inner is not None:
                    frames.append(inner)
                    break
            else:
                frames.pop()
                if frames:
                    outs = [self.read(frame.env, a) for a in frame.jaxpr.outvars]
                    frames[-1].env.update(zip(frame.results, outs, strict=True))

    def equation(self, frame: _Frame, eqn: Eqn) -> _Frame | None:
        """Adds the nodes of ``eqn``; or the program that takes its place is returned."""
        env = frame.env
        args = [env[a] if type(a) is Var else self.read(env, a) for a in eqn.invars]
        made = behind(eqn)
        rule, lowering = self.rules.choose(made)
        if rule == SHARED_RULE:
            rule = frame.rule
        if isinstance(lowering, Replace):
            return self.replaced(frame, eqn, args, rule, lowering)
        origin = Origin(made.primitive.name, self.count, rule, eqn.source)
        self.count += 1
        found = self.results(frame, eqn, args, lowering, origin)
        if not isinstance(lowering, Loop | Branch):
            self.bytes += sum([self.nbytes[v] for v in (*args, *found)])
        if self.lines is not None:
            self.lines.append(Line(eqn, tuple(args), found))
        for var, value in zip(eqn.outvars, found, strict=True):
            env[var] = value
        return None

    def replaced(self, frame: _Frame, eqn: Eqn, args: list[int], rule: str, lowering: Replace) -> _Frame:
        scope = self.count if lowering.apart else frame.scope
        inner = self.inner(self.program(lowering, eqn, rule), args, eqn.outvars, rule, scope)
        if plugin_of(rule):
            inner.of, inner.outer = eqn, frame
            _check_ends(inner, rule)
        return inner

    def results(
        self, frame: _Frame, eqn: Eqn, args: list[int], lowering: LoweringKind, origin: Origin
    ) -> tuple[int, ...]:
        """What ``eqn`` gives: of an equal equation what that gave, else that of a node that is added."""
        key = None if eqn.effects else _key(eqn, args, frame.scope)
        found = self.known.get(key) if key is not None else None
        if found is not None:
            return found
        self.frame = frame
        try:
            found = self.node(eqn, lowering, args, [v.aval for v in eqn.outvars], origin)
        except BaseException as e:
            blame_rule(e, origin.rule, eqn)
            raise
        if key is not None:
            self.known[key] = found
        return found

    def program(self, lowering: Replace, eqn: Eqn, rule: str) -> ClosedJaxpr:
        avals = [a.aval for a in eqn.invars]
        try:
            made = lowering.program(avals, **eqn.params)
            if plugin_of(rule):
                check_program(made, avals, [v.aval for v in eqn.outvars])
        except BaseException as e:
            blame_rule(e, rule, eqn)
            raise
        return made

    def inner(self, closed: ClosedJaxpr, args: Sequence[int], results: Sequence[Var], rule: str, scope: int) -> _Frame:
        jaxpr = closed.jaxpr
        env = dict(zip(jaxpr.invars, args, strict=True))
        for var, value in zip(jaxpr.constvars, closed.consts, strict=True):
            env[var] = self.literal(value, var.aval)
        return _Frame(jaxpr, env, rule, results, scope)

    def node(
        self, eqn: Eqn, lowering: LoweringKind, args: list[int], out_avals: list[ShapedArray], origin: Origin
    ) -> tuple[int, ...]:
        outs = tuple([self.value(a) for a in out_avals])
        if not isinstance(lowering, Kernels):
            self.nodes.append(self.whole(eqn, lowering, tuple(args), outs, origin))
        elif lowering.each:
            for which, v in enumerate(outs):
                self.nodes += self.kernels(eqn, lowering, args, (v,), origin, which)
        else:
            self.nodes += self.kernels(eqn, lowering, args, outs, origin)
        return outs

    def whole(
        self, eqn: Eqn, lowering: LoweringKind, args: tuple[int, ...], outs: tuple[int, ...], origin: Origin
    ) -> CallNode | ControlNode:
        """The programs of loops and branches become graphs of their own."""
        eqn, seen = behind(eqn), None if behind(eqn) is eqn else types(behind(eqn))
        of = dict[str, Any](
            outs=outs, inputs=args, primitive=eqn.primitive, effects=bool(eqn.effects), primitives=(origin,)
        )
        if isinstance(lowering, Branch):
            return BranchNode(graphs=tuple([self.graph(b, origin.rule) for b in lowering.branches(**eqn.params)]), **of)
        if not isinstance(lowering, Loop):
            return CallNode(lowering=lowering, params=eqn.params, seen=seen, **of)
        parts = lowering.parts(**eqn.params)
        body = self.graph(parts.body, origin.rule, parts.length)
        test = None if parts.test is None else self.graph(parts.test, origin.rule)
        return LoopNode(**parts._asdict() | {"body": body, "test": test}, **of)

    def graph(self, program: ClosedJaxpr, rule: str, turns: int | None = None) -> Graph:
        graph = build_graph(program, self.rules, rule, keep=self.lines is not None)
        self.bytes += graph.bytes_unfused * (turns or 1)
        return graph

    def kernels(
        self, eqn: Eqn, rule: Kernels, args: list[int], outs: tuple[int, ...], origin: Origin, which: int = 0
    ) -> list[KernelNode]:
        assert self.frame is not None
        folded = partial(folded_by, self.frame.readers, eqn.outvars[0])
        out = Out(outs[0], self.avals[outs[0]], self.grid, which, folded)
        names = (origin,)
        result = rule.build(out, *map(self.operand, args), **eqn.params)
        if plugin_of(origin.rule):
            check_built(result, [self.avals[v] for v in outs], len(args))
        if isinstance(result, list):
            return self.parts(outs[0], result, names)
        if isinstance(result, Update):
            updates = None if result.updates is None else self.materialized(args[result.updates])
            return [update_node(outs, result.grid, result.stages, updates, result.ordered, names)]
        bodies = result if isinstance(result, tuple) else (result,)
        alias = args[0] if rule.aliases and args and args[0] not in self.literals else None
        return [pure_node(out.axes, out.i, dict(zip(outs, bodies, strict=True)), names, alias)]

    def parts(self, out: int, updates: list[Update], names: tuple[Origin, ...]) -> list[KernelNode]:
        """Kernels that fill a result one after the other, each updating what the one before it gave."""
        nodes: list[KernelNode] = []
        before: int | None = None
        for n, update in enumerate(updates):
            value = out if n == len(updates) - 1 else self.value(self.avals[out])
            stages = tuple([Stage(s.axes, tuple([replace(x, slot=value) for x in s.stores])) for s in update.stages])
            nodes.append(update_node((value,), update.grid, stages, before, update.ordered, names))
            before = value
        return nodes

    def grid(self, shape: tuple[int, ...]) -> Grid:
        """The axes of a shape, the same ones each time: bodies over equal grids fit together without rewriting."""
        found = self.grids.get(shape)
        if found is None:
            axes = tuple([self.axis(d, n) for d, n in enumerate(shape)])
            found = self.grids[shape] = axes, own_point(axes)
        return found

    def axis(self, position: int, extent: int) -> Axis:
        if (position, extent) not in self.axes:
            self.axes[position, extent] = Axis(extent, f"i{position}")
        return self.axes[position, extent]


def _check_ends(frame: _Frame, rule: str) -> None:
    """Raises if the program that a plugin gives stands in one that it gave for the same equation."""
    kind, outer = _use(frame.of), frame.outer
    while outer is not None:
        if outer.of is not None and outer.rule == rule and _use(outer.of) == kind:
            assert frame.of is not None
            error = PluginError(
                f"program of the lowering of {frame.of.primitive.name} applies {frame.of.primitive.name} to the same "
                "types again, so that it would be replaced for ever; its `why_not` can decline them"
            )
            blame_rule(error, rule, frame.of)
            raise error
        outer = outer.outer


def _use(eqn: Eqn | None) -> Any:
    """What a lowering is told of an equation."""
    return None if eqn is None else (eqn.primitive, [(a.aval.shape, a.aval.dtype) for a in eqn.invars], eqn.params)


def _key(eqn: Eqn, args: Sequence[int], scope: int) -> Any:
    """What equal equations have in common; None if a parameter is not hashable."""
    key = eqn.primitive, tuple(args), tuple(sorted(eqn.params.items())), scope
    try:
        hash(key)
    except TypeError:
        return None
    return key
