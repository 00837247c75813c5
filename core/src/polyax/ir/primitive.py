"""Primitives: a name and its rules. The ambient trace decides what applying one means.

The four rules that every transformation needs are slots here (the closed axis); how a primitive runs on a device is
looked up in tables that plugins bring (the open axis).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

RULES = ("abstract_eval", "jvp", "transpose", "batch")
FIRST_ORDER_RULES = ("factors",)
HIGHER_ORDER_RULES = ("partial_eval", "dce", "sub_jaxprs")


class Ambient(threading.local):
    """The current trace of a thread and its named axes, which ``polyax.trace.context`` owns; and the user's line that
    equations come from while they are derived from others, as those of the backward pass are; and the names around it
    (``named_scope``)."""

    trace: Any = None
    source: Any = None
    asker: Any = None
    """The line that asked for a program which isn't the user's function, and which others may come to share: no
    equation of it comes from there, but from the line that calls the program."""
    scope: str = ""
    axis_env: Mapping[Any, int] = MappingProxyType({})
    recorded: bool = False
    """Whether what runs are equations of a program, of which the user was told already what is wrong with them."""
    applied: list[Any] | None = None
    """What is applied while an eager call is noted, to be repeated: see ``runtime.running.repeated``."""
    varying: frozenset[Any] = frozenset()
    """Mesh axes of which types say whether values vary along them: see ``trace.varying``."""


ambient = Ambient()


def note(program: Any, args: Sequence[Any], made: Sequence[Any]) -> None:
    """If an eager call is being noted: it ran a program. What it makes without one (None) is always the same."""
    if ambient.applied is not None:
        ambient.applied.append((program, args, made))


def not_repeatable() -> None:
    """If an eager call is being noted: it does more than run programs. It reads a value, or warns."""
    if ambient.applied is not None:
        ambient.applied.append(None)


eval_trace: list[Any] = []  # holds one trace once the runtime has installed it


_IN_WORDS = {
    "abstract_eval": "Abstract evaluation",
    "jvp": "Differentiation rule",
    "transpose": "Transpose rule (for reverse-mode differentiation)",
    "batch": "Batching rule",
}


class Primitive:
    """An operation that traces record and transformations know.

    Rules (arrays are positional, parameters are keywords and hashable, results are lists):

    =================  ============================================================================================
    ``abstract_eval``  ``(*avals, **params) -> list[ShapedArray]``, or ``(list, effects)``; raises the user's errors
    ``jvp``            ``(primals, tangents, **params) -> (list, list)``; tangents are arrays or ``Zero``
    ``transpose``      ``(cts, *args, **params) -> list``; linear inputs come as ``UndefPrimal``, results are
                       cotangents, ``Zero`` or ``None`` for inputs that are not linear
    ``batch``          ``(axis, args, dims, **params) -> (list, dims)``; a dim is an int or ``None``
    ``partial_eval``   higher-order: ``(trace, unknown, args, params) -> outs``; see ``transforms.linearize``
    ``dce``            higher-order: ``(used, eqn) -> (used_inputs, eqn | None)``
    ``record``         ``(trace, args, params) -> outs``: for functions in ``params``, which become programs before
                       ``trace.record`` appends the equation
    ``sub_jaxprs``     higher-order: ``(params) -> list[ClosedJaxpr]``
    ``typecheck``      higher-order: ``(*in_avals, **params) -> None``: raises ``JaxprTypeError`` where the parameters
                       don't fit each other or the operands, for ``check_jaxpr``
    ``pretty``         ``(params) -> params`` to print instead
    ``impl``           ``(*args, **params) -> list``: how an eager call runs, if not through a backend
    ``decompose``      ``(*args, **params) -> list``: the same in terms of other primitives, which is what is compiled
    ``axes``           collectives: ``(params) -> names`` of the axes that they work along
    ``varies``         ``(vmas, **params) -> (wanted, results)``: along which mesh axes operands have to vary, given
                       those along which they do, and results do (None: as its programs say); see ``trace.varying``
    ``explicit``       ``(in_avals, out_avals, **params) -> out_avals``: how results are cut where types tell it of
                       operands, and ``factors`` don't say it; see ``meshes.consensus``
    ``discharge``      higher-order: ``(*args, **params) -> list``: the same where arguments are references, by a
                       program that gives what they hold afterwards; see ``control.refs``
    ``backward``       ``(ct_refs, cts, eqn, primals) -> cts``: transposition where cotangents of operands are added to
                       references, those of references always; see ``control.refs``
    ``text``           of references: ``(outs, ins, shape, **params) -> text`` of an equation
    ``factors``        ``(*in_avals, **params) -> Factors``: which dimensions of operands and results are cut together
                       when devices share a program (``meshes.factors``); without it, each device computes all
    =================  ============================================================================================

    A rule that can't exist is declared: ``p.never("transpose", "sin is not linear")``.
    """

    multiple_results = False
    """Whether ``bind`` gives a list. The slots of rules have lists as results in any case."""
    call_primitive = map_primitive = False
    """Programs written for JAX look for these; here ``sub_jaxprs`` tells of the programs inside."""
    unset: frozenset[str]
    """Parameters that JAX has and this doesn't: ``bind`` takes None for them, by which JAX's programs say nothing."""
    elementwise = False
    """Whether each element of the results depends on those at its place in the operands alone."""
    remedy = ""
    """What to do if a device can't run it, for error texts."""
    only_transposed = False
    """Whether it can't run, but only be transposed: it stays in linear programs, also on known values."""
    takes_refs = False
    """Whether operands may be references to arrays that change (``ir.refs``)."""
    makes_refs = False
    """Whether its result is one: never known to be constant, since what is written to it may not be."""
    writes_refs = False
    """Whether it changes what one holds."""

    def __init__(
        self, name: str, *, higher_order: bool = False, multiple_results: bool = False, unset: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.unset = frozenset(unset)
        self.higher_order = higher_order
        if multiple_results or higher_order:
            self.multiple_results = True
        self.absent: dict[str, str] = {}
        self.linear_in: tuple[int, ...] = ()
        self.abstract_eval: Callable[..., Any] | None = None
        self.jvp: Callable[..., Any] | None = None
        self.transpose: Callable[..., Any] | None = None
        self.batch: Callable[..., Any] | None = None
        self.partial_eval: Callable[..., Any] | None = None
        self.dce: Callable[..., Any] | None = None
        self.record: Callable[..., Any] | None = None
        self.sub_jaxprs: Callable[..., Any] | None = None
        self.typecheck: Callable[..., None] | None = None
        self.pretty: Callable[..., Any] | None = None
        self.impl: Callable[..., Any] | None = None
        self.decompose: Callable[..., Any] | None = None
        self.axes: Callable[..., Any] | None = None
        self.varies: Callable[..., Any] | None = None
        self.explicit: Callable[..., Any] | None = None
        self.factors: Callable[..., Any] | None = None
        self.discharge: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self.text: Callable[..., str] | None = None
        PRIMITIVES.append(self)

    def never(self, rule: str, reason: str) -> None:
        """Declares that ``rule`` can't exist, and why."""
        self.absent[rule] = reason

    def rule(self, name: str) -> Callable[..., Any]:
        """The rule, or ``NotImplementedError`` with the declared reason."""
        found = getattr(self, name)
        if found is None:
            raise NotImplementedError(self._lack(name))
        return found

    def _lack(self, name: str) -> str:
        what = _IN_WORDS.get(name, "{} rule").format(name)
        return f"{what} for '{self.name}' not implemented: {self.absent.get(name, 'no such rule was registered')}"

    def bind(self, *args: Any, **params: Any) -> Any:
        """Applies the primitive in the current trace: its result, or their list if ``multiple_results`` is set."""
        params = self.known_params(params)
        outs = (ambient.trace or eval_trace[0]).process(self, args, params)
        return outs if self.multiple_results else outs[0]

    def bind_all(self, *args: Any, **params: Any) -> list[Any]:
        """``bind`` for any primitive: the list of its results."""
        return (ambient.trace or eval_trace[0]).process(self, args, params)

    def bind1(self, *args: Any, **params: Any) -> Any:
        """``bind`` for primitives with one result."""
        return (ambient.trace or eval_trace[0]).process(self, args, params)[0]

    def known_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Parameters as programs written for JAX give them, without those that say nothing."""
        if self.unset.isdisjoint(params):
            return params
        return {name: x for name, x in params.items() if x is not None or name not in self.unset}

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """An equation's parameters as ``bind`` takes them, which is as they are."""
        return params

    def __repr__(self) -> str:
        return self.name


PRIMITIVES: list[Primitive] = []
"""Every primitive of the process, for completeness tests and lowering reports."""


def def_rule(primitive: Primitive, rule: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: ``@def_rule(sin_p, "jvp")``."""

    def register(fun: Callable[..., Any]) -> Callable[..., Any]:
        setattr(primitive, rule, fun)
        return fun

    return register
