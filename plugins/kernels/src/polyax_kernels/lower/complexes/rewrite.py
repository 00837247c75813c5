"""The pass: a program of complex numbers becomes one of real ones, with the same inputs and results in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.control.flow.cond import bind_cond, cond_p
from polyax.control.flow.scan import ScanParts, scan_p
from polyax.control.flow.while_loop import while_p
from polyax.control.inner.programs import derived, hoisted
from polyax.ir.config import config
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, sub_jaxprs
from polyax.ir.primitive import ambient
from polyax.trace.recording import hoist_consts
from polyax.transforms.memo import memoize_by_jaxpr
from polyax_kernels.lower.choice import Rules
from polyax_kernels.lower.complexes import (
    folds,  # noqa: F401  # its formulas join the table
    parts,
    updates,
)
from polyax_kernels.lower.complexes.functions import FORMULAS
from polyax_kernels.lower.complexes.library import called
from polyax_kernels.lower.complexes.pair import Pair, as_parts, as_words, is_complex, put_together, taken_apart
from polyax_kernels.lower.lowering import Call, Replace


def as_pairs(program: ClosedJaxpr, rules: Rules) -> ClosedJaxpr:
    """``program`` on words (``pair``), with its constants as leading inputs; itself, if it has no complex numbers."""
    if not has_complex(program):
        return program
    program, _ = hoist_consts(program)
    ins, outs = program.in_avals, program.out_avals

    def fun(*args: Any) -> list[Any]:
        values = [Pair(words=x) if is_complex(a) else x for x, a in zip(args, ins, strict=True)]
        results = _Rewriting(rules).run(program, values)
        return [x.words if is_complex(a) else x for x, a in zip(results, outs, strict=True)]

    with config.override(enable_x64=True):  # constants have the types of the program, wherever it is compiled
        return _with_literals(derived(program, fun, [as_words(a) for a in ins]))


def _with_literals(program: ClosedJaxpr) -> ClosedJaxpr:
    """The program with its constants written in it: nobody passes those of programs within."""
    jaxpr = program.jaxpr
    known: dict[Atom, Literal] = {
        v: Literal(np.asarray(x), v.aval) for v, x in zip(jaxpr.constvars, program.consts, strict=True)
    }
    if not known:
        return program
    eqns = [e.replace(invars=[known.get(a, a) for a in e.invars]) for e in jaxpr.eqns]
    outs = [known.get(a, a) for a in jaxpr.outvars]
    return ClosedJaxpr(Jaxpr([], jaxpr.invars, outs, eqns, jaxpr.effects, jaxpr.debug_name), [])


@memoize_by_jaxpr
def has_complex(program: ClosedJaxpr) -> bool:
    """Whether a value of the program, or of those within it, is complex."""
    jaxpr = program.jaxpr
    ends = *jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars  # results may be numbers that are written there
    return any(is_complex(a.aval) for a in ends) or any(map(_touches, jaxpr.eqns))


def _touches(eqn: Eqn) -> bool:
    return any(is_complex(a.aval) for a in (*eqn.invars, *eqn.outvars)) or any(map(has_complex, sub_jaxprs(eqn)))


class _Rewriting:
    """Equations are applied to tracers of real arrays, and to pairs of them."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def run(self, program: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        env: dict[Any, Any] = dict(zip(program.jaxpr.invars, args, strict=True))
        for v, const in zip(program.jaxpr.constvars, program.consts, strict=True):
            env[v] = Pair.of(const) if is_complex(v.aval) else const

        def read(a: Atom) -> Any:
            if not isinstance(a, Literal):
                return env[a]
            return Pair.of(np.asarray(a.val, a.aval.dtype)) if is_complex(a.aval) else a.val

        for eqn in program.jaxpr.eqns:
            ambient.source = eqn.source
            values = [read(a) for a in eqn.invars]
            outs = self.equation(eqn, values) if _touches(eqn) else eqn.apply(values)
            env.update(zip(eqn.outvars, outs, strict=True))
        return [read(a) for a in program.jaxpr.outvars]

    def equation(self, eqn: Eqn, args: Sequence[Any]) -> Sequence[Any]:
        own = self.rules.own_choice(eqn)
        if isinstance(own, Call):
            return called(eqn, args)
        if eqn.primitive in _CONTROL:
            return _CONTROL[eqn.primitive](self, eqn, args)
        name = eqn.primitive.name
        if own is None and name in FORMULAS:
            result = FORMULAS[name](*[x.parts if isinstance(x, Pair) else x for x in args], **eqn.params)
            return [Pair(result) if is_complex(eqn.outvars[0].aval) else result]
        if own is None and name in RULES:
            return RULES[name](eqn, args)
        _, lowering = self.rules.choose(eqn)
        if isinstance(lowering, Replace):
            return self.run(lowering.program([a.aval for a in eqn.invars], **eqn.params), args)
        return called(eqn, args)

    def apart(self, program: ClosedJaxpr) -> ClosedJaxpr:
        """A program within the program, on parts."""
        ins = program.in_avals
        return derived(program, lambda *xs: taken_apart(self.run(program, put_together(xs, ins))), as_parts(ins))

    def scan(self, eqn: Eqn, args: Sequence[Any]) -> list[Any]:
        loop = ScanParts.of(eqn.params)
        consts, carry, xs = map(taken_apart, loop.cut(args))
        return self.results(eqn, loop.bind(self.apart(loop.jaxpr), consts, carry, xs))

    def while_loop(self, eqn: Eqn, args: Sequence[Any]) -> list[Any]:
        test, body = (self.apart(eqn.params[name]) for name in ("cond_jaxpr", "body_jaxpr"))
        a, b = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
        of_test, of_body, carry = (taken_apart(xs) for xs in (args[:a], args[a : a + b], args[a + b :]))
        (test, known), (body, more) = hoisted(test), hoisted(body)
        of_test, of_body = [*known, *of_test], [*more, *of_body]
        outs = while_p.bind(
            *of_test,
            *of_body,
            *carry,
            cond_jaxpr=test,
            cond_nconsts=len(of_test),
            body_jaxpr=body,
            body_nconsts=len(of_body),
        )
        return self.results(eqn, outs)

    def cond(self, eqn: Eqn, args: Sequence[Any]) -> list[Any]:
        branches = [self.apart(b) for b in eqn.params["branches"]]
        return self.results(eqn, bind_cond(branches, args[0], taken_apart(args[1:])))

    def results(self, eqn: Eqn, parts: Sequence[Any]) -> list[Any]:
        return put_together(parts, [v.aval for v in eqn.outvars])


RULES = {**parts.RULES, **updates.RULES}
_CONTROL = {scan_p: _Rewriting.scan, while_p: _Rewriting.while_loop, cond_p: _Rewriting.cond}
