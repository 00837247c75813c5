"""From Python functions to jaxprs: a trace that records every primitive as an equation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.check import check_jaxpr
from polyax.ir.config import config
from polyax.ir.dims import SymbolicDim
from polyax.ir.effects import NO_EFFECTS
from polyax.ir.errors import ShardingTypeError
from polyax.ir.garbage import collection_paused
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var, is_literal_value, make_literal
from polyax.ir.primitive import Primitive, ambient
from polyax.ir.refs import met, refuse_refs
from polyax.ir.source import FunctionName, Source, code_of, is_internal, user_source
from polyax.meshes import consensus, sums
from polyax.meshes.explicit import seen
from polyax.meshes.resharding import untyped
from polyax.trace.context import set_trace
from polyax.trace.leaks import check_leaks
from polyax.trace.paths import Described
from polyax.trace.tracer import Trace, Tracer, check_alive
from polyax.trace.tree import PyTreeDef
from polyax.trace.varying import aligned, typed

SHOWN_LINES = 5
"""So many lines error texts tell of, at most."""


class DynamicJaxprTracer(Tracer):
    """A value of a program that is being recorded; ``atom`` is its variable there."""

    __slots__ = ("atom",)

    def __init__(self, trace: DynamicJaxprTrace, atom: Atom) -> None:
        self._trace = trace
        self.aval = atom.aval
        self.atom = atom

    def origin(self) -> str:
        what = self._program().describe(self.atom)
        return f"\n{what}" if what else ""

    def made_at(self) -> str:
        made = self._program().maker(self.atom)
        return f"{made.source}" if made else ""

    def to_static(self) -> str:
        trace = self._program()
        rematerialised = trace.origin is not None and trace.origin.traced_for.startswith("checkpoint")
        if not (rematerialised or trace.names_behind(self.atom)):
            return ""
        return " Or make the argument static (static_argnums, static_argnames)."

    def recorded(self) -> ClosedJaxpr:
        """The program that computes it."""
        trace = self._program()
        behind = trace.arguments_behind(self.atom)
        eqns = [e for e in trace.eqns if not behind.isdisjoint(e.outvars)]
        jaxpr = Jaxpr(list(trace.constvars.values()), trace.invars, [self.atom], eqns, debug_name=trace.name)
        return ClosedJaxpr(jaxpr, list(trace.consts))

    def known(self) -> Any:
        if type(self.atom) is Literal:
            return self.atom.val
        onlooker = self._onlooker()
        return None if onlooker is None else onlooker.value(self)

    def _program(self) -> DynamicJaxprTrace:
        assert isinstance(self._trace, DynamicJaxprTrace)
        return self._trace

    def _onlooker(self) -> Any:
        trace = self._program()
        return trace.onlooker if trace.alive else None

    def __repr__(self) -> str:
        onlooker = self._onlooker()
        return super().__repr__() if onlooker is None else onlooker.text(self)


@dataclass(frozen=True)
class SourceOf:
    """What error texts tell of the function that is traced; found out when one is written."""

    fun: Callable[..., Any]
    arg_names: Callable[[], Sequence[str]]
    traced_for: str = "jit"
    in_tree: PyTreeDef | None = None
    """The structure of its arguments, positional ones and those given by name, if that is known."""

    def name_in(self, jaxpr: Jaxpr, out_tree: PyTreeDef | None) -> FunctionName:
        """The function's name for its program, which doesn't keep the function alive."""
        name = jaxpr.debug_name
        trees = self.in_tree, out_tree
        described = Described(*code_of(self.fun), self.traced_for, *trees, jaxpr.invars, jaxpr.outvars, name)
        return FunctionName(name, described)

    def __str__(self) -> str:
        fun = inspect.unwrap(self.fun)
        code = getattr(fun, "__code__", None)
        name = getattr(fun, "__name__", repr(fun))
        return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code else name

    def name(self, position: int) -> str:
        names = self.arg_names()
        return names[position] if position < len(names) else f"number {position}"

    def is_internal(self) -> bool:
        """Whether the function is one of polyax's own."""
        code = getattr(inspect.unwrap(self.fun), "__code__", None)
        return code is not None and is_internal(code.co_filename)


class DynamicJaxprTrace(Trace):
    """Records equations. Arrays and foreign tracers that it meets become constants.

    ``onlooker`` can tell values, where those of all arguments are known.
    """

    __slots__ = ("consts", "constvars", "eqns", "invars", "onlooker", "origin")

    def __init__(self, name: str = "", origin: SourceOf | None = None) -> None:
        super().__init__(name)
        self.origin = origin
        self.onlooker: Any = None
        self.invars: list[Var] = []
        self.constvars: dict[int, Var] = {}  # id of the constant -> variable
        self.consts: list[Any] = []  # keeps the ids above valid
        self.eqns: list[Eqn] = []

    def new_arg(self, aval: ShapedArray) -> DynamicJaxprTracer:
        var = Var(aval)
        self.invars.append(var)
        return DynamicJaxprTracer(self, var)

    def atom(self, x: Any) -> Atom:
        """The variable or literal that stands for ``x`` in this program."""
        if type(x) is DynamicJaxprTracer and x._trace is self:
            return x.atom
        if is_literal_value(x):
            return make_literal(x)
        return self._constant(x)

    def literal(self, x: Any, aval: ShapedArray | None = None) -> DynamicJaxprTracer:
        """A scalar of the host as a value of this program, in which it is written where it is used."""
        return DynamicJaxprTracer(self, make_literal(x, aval))

    def _constant(self, x: Any) -> Atom:
        if isinstance(x, SymbolicDim):
            return self.atom(x.__jax_array__())
        var = self.constvars.get(id(x))
        if var is None:
            if isinstance(x, Tracer):
                check_alive(x)
            var = self.constvars[id(x)] = Var(aval_of(x))
            self.consts.append(x)
        return var

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> list[Any]:
        if primitive.record is not None:
            return primitive.record(self, args, params)
        return self.record(primitive, args, params)

    def record(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Appends an equation."""
        if ambient.varying:
            args = aligned(self.record, primitive, args, params)
        inputs = [self.atom(x) for x in args]
        if met.any:
            refuse_refs(primitive, [a.aval for a in inputs])
        abstract_eval = primitive.abstract_eval or primitive.rule("abstract_eval")
        avals = abstract_eval(*[a.aval for a in inputs], **params)
        effects = NO_EFFECTS
        if type(avals) is tuple:
            avals, effects = avals
        if seen.any:
            try:
                avals = consensus.results(primitive, [a.aval for a in inputs], params, avals)
            except ShardingTypeError:
                if not consensus.is_lenient():
                    raise
                return self.record(primitive, [untyped(x) for x in args], params)
        if ambient.varying:
            ins = [a.aval for a in inputs]
            avals = sums.left(primitive, ins, params, typed(primitive, [a.vma for a in ins], params, avals))
        outs = [Var(aval) for aval in avals]
        source = ambient.source or _own_line()
        self.eqns.append(Eqn(primitive, inputs, outs, params, effects, source))
        return [DynamicJaxprTracer(self, v) for v in outs]

    def to_jaxpr(self, outs: Sequence[Any]) -> ClosedJaxpr:
        atoms = [self.atom(x) for x in outs]
        jaxpr = Jaxpr(list(self.constvars.values()), self.invars, atoms, self.eqns, debug_name=self.name)
        if config.checks:
            check_jaxpr(jaxpr)
        return ClosedJaxpr(jaxpr, self.consts)

    def describe(self, atom: Atom) -> str:
        """Says of a variable on which arguments of the user's function it depends, and which line made it."""
        if isinstance(atom, Literal) or self.origin is None:
            return ""
        text = f"The error occurred while tracing the function {self.origin} for {self.origin.traced_for}."
        names = self.names_behind(atom)
        if not names:
            return f"{text} {self._lines_behind(atom)}"
        which = f"value of the argument {names[0]}" if len(names) == 1 else f"values of the arguments {_listed(names)}"
        text += f" This concrete value was not available in Python because it depends on the {which}."
        made = self.maker(atom)
        return text + (f" It was computed by {made.primitive} at {made.source}." if made else "")

    def maker(self, atom: Atom) -> Eqn | None:
        """The equation that ``atom`` is a result of."""
        return next((e for e in reversed(self.eqns) if any(v is atom for v in e.outvars)), None)

    def names_behind(self, atom: Atom) -> list[str]:
        """The user's arguments that ``atom`` was computed from."""
        if self.origin is None:
            return []
        behind = self.arguments_behind(atom)
        return [self.origin.name(i) for i, v in enumerate(self.invars) if v in behind]

    def _lines_behind(self, atom: Atom) -> str:
        """Says of what depends on no argument by which operations it came to be traced."""
        behind = self.arguments_behind(atom)
        lines = [f"\n  {e.primitive} at {e.source}" for e in self.eqns if not behind.isdisjoint(e.outvars)]
        more = "\n(Additional originating lines are not shown.)" if len(lines) > SHOWN_LINES else ""
        return f"This value became a tracer due to operations on these lines:{''.join(lines[:SHOWN_LINES])}{more}"

    def arguments_behind(self, atom: Atom) -> set[Atom]:
        """The variables that ``atom`` was computed from, itself included."""
        behind = {atom}
        for eqn in reversed(self.eqns):
            if not behind.isdisjoint(eqn.outvars):
                behind.update(v for v in eqn.invars if isinstance(v, Var))
        return behind


def recorder() -> DynamicJaxprTrace | None:
    """The innermost program that is being recorded here, also under ``jvp`` and ``vmap``; None if equations are run."""
    trace = ambient.trace
    while trace is not None and not isinstance(trace, DynamicJaxprTrace):
        trace = getattr(trace, "parent", None) or getattr(trace, "known", None)
    return trace


def _listed(names: Sequence[str]) -> str:
    """``x and y``, ``x, y, and z``."""
    *others, last = names
    return f"{', '.join(others)}{',' if len(others) > 1 else ''} and {last}"


def _own_line() -> Source | None:
    """The user's line that runs now, if it is part of what is traced."""
    line = user_source(ambient.scope)
    return None if line is not None and line.same_place(ambient.asker) else line


def trace_to_jaxpr(
    fun: Callable[..., Sequence[Any]],
    in_avals: Sequence[ShapedArray],
    *,
    name: str = "",
    origin: SourceOf | None = None,
    onlooker: Any = None,
) -> ClosedJaxpr:
    """Runs ``fun`` (flat arguments to a flat sequence) on tracers; closed-over arrays and tracers become constants."""
    trace = DynamicJaxprTrace(name, origin)
    trace.onlooker = onlooker
    args = [trace.new_arg(a) for a in in_avals]
    before = ambient.source, ambient.asker, ambient.recorded, ambient.scope
    ambient.asker = user_source() if origin is None or origin.is_internal() else None
    ambient.source, ambient.recorded, ambient.scope = None, False, ""
    try:
        with collection_paused(), set_trace(trace):
            closed = trace.to_jaxpr(fun(*args))
        if origin is not None:
            closed.jaxpr.debug_name = origin.name_in(closed.jaxpr, getattr(fun, "out_tree", None))
    finally:
        ambient.source, ambient.asker, ambient.recorded, ambient.scope = before
        trace.invalidate()
    del args
    check_leaks(trace, origin or name)
    return closed


def hoist_consts(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Constants as leading arguments: a program without constants, and the values to pass first."""
    jaxpr = closed.jaxpr
    if not jaxpr.constvars:
        return closed, []
    hoisted = Jaxpr([], [*jaxpr.constvars, *jaxpr.invars], jaxpr.outvars, jaxpr.eqns, jaxpr.effects, jaxpr.debug_name)
    return ClosedJaxpr(hoisted, []), closed.consts
