"""Programs as parameters: tracing users' functions for them, and small edits of their inputs.

What is made here is made once for each program, since caches know programs by their identity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var, eliminate_dead_code, eval_jaxpr, sub_jaxprs
from polyax.ir.primitive import ambient
from polyax.trace.recording import hoist_consts, trace_to_jaxpr
from polyax.transforms.memo import memoize_by_jaxpr


def share_consts(programs: Sequence[ClosedJaxpr]) -> tuple[list[ClosedJaxpr], list[Any]]:
    """Programs that take the constants of all of them as leading inputs, and those constants."""
    consts = {id(c): c for p in programs for c in p.consts}
    if not consts:
        return list(programs), []
    avals = {id(c): v.aval for p in programs for v, c in zip(p.jaxpr.constvars, p.consts, strict=True)}
    return [_taking(p, avals) for p in programs], list(consts.values())


def _taking(program: ClosedJaxpr, avals: dict[int, ShapedArray]) -> ClosedJaxpr:
    own = {id(c): v for v, c in zip(program.jaxpr.constvars, program.consts, strict=True)}
    inputs = [own.get(key) or Var(aval) for key, aval in avals.items()]
    return ClosedJaxpr(_jaxpr(program.jaxpr, [], [*inputs, *program.jaxpr.invars], program.jaxpr.outvars), [])


@memoize_by_jaxpr
def hoisted(program: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """The program with its constants as leading inputs, and their values."""
    return hoist_consts(program)


def rewritten(
    program: ClosedJaxpr, change: Callable[[Eqn], list[Eqn]], inner: Callable[[ClosedJaxpr], ClosedJaxpr]
) -> ClosedJaxpr:
    """``program`` with what ``change`` makes of each equation, whose own programs ``inner`` has changed before."""
    jaxpr = program.jaxpr
    eqns = [new for eqn in jaxpr.eqns for new in change(with_programs(eqn, inner))]
    if len(eqns) == len(jaxpr.eqns) and all(map(is_, eqns, jaxpr.eqns)):
        return program
    changed = Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.outvars, eqns, jaxpr.effects, jaxpr.debug_name)
    return ClosedJaxpr(changed, program.consts)


def with_programs(eqn: Eqn, change: Callable[[ClosedJaxpr], ClosedJaxpr]) -> Eqn:
    """The equation with what ``change`` makes of its programs."""
    programs = {id(p): change(p) for p in sub_jaxprs(eqn)}
    if all(key == id(p) for key, p in programs.items()):
        return eqn
    return eqn.replace(params={name: _exchanged(value, programs) for name, value in eqn.params.items()})


def _exchanged(value: Any, programs: dict[int, ClosedJaxpr]) -> Any:
    """``value``, or what stands for it in ``programs``; in tuples, each element."""
    if type(value) is tuple:
        return tuple(_exchanged(v, programs) for v in value)
    return programs.get(id(value), value)


def with_ends(program: ClosedJaxpr, invars: Sequence[Var], outs: Sequence[Atom] | None = None) -> ClosedJaxpr:
    """The equations of ``program`` with other inputs, and other outputs if they are given."""
    jaxpr = program.jaxpr
    return ClosedJaxpr(_jaxpr(jaxpr, jaxpr.constvars, invars, jaxpr.outvars if outs is None else outs), program.consts)


def _jaxpr(jaxpr: Jaxpr, constvars: Sequence[Var], invars: Sequence[Var], outs: Sequence[Atom]) -> Jaxpr:
    return Jaxpr(constvars, invars, outs, jaxpr.eqns, jaxpr.effects, jaxpr.debug_name)


@memoize_by_jaxpr
def reordered(program: ClosedJaxpr, order: tuple[int, ...], outs: tuple[int, ...] | None = None) -> ClosedJaxpr:
    """The program whose input number ``n`` is input ``order[n]`` of ``program``; of its outputs likewise."""
    jaxpr = program.jaxpr
    return with_ends(
        program, [jaxpr.invars[n] for n in order], None if outs is None else [jaxpr.outvars[n] for n in outs]
    )


@memoize_by_jaxpr
def with_unused_inputs(program: ClosedJaxpr, avals: tuple[ShapedArray, ...]) -> ClosedJaxpr:
    """The program with further inputs that it ignores."""
    return with_ends(program, [*program.jaxpr.invars, *map(Var, avals)])


@memoize_by_jaxpr
def pruned(program: ClosedJaxpr, used: tuple[bool, ...]) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The part of the program that computes the used outputs, with all its inputs, and which of these it reads."""
    jaxpr, used_in = eliminate_dead_code(program.jaxpr, used)
    return ClosedJaxpr(jaxpr, program.consts), tuple(used_in)


def alive(program: ClosedJaxpr) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The program without what is computed for nothing, and which of its inputs it reads."""
    return pruned(program, (True,) * len(program.out_avals))


@memoize_by_jaxpr
def forwarded(program: ClosedJaxpr) -> tuple[int | None, ...]:
    """For each output the number of the input that it is, if it is one."""
    numbers: dict[Any, int] = {v: n for n, v in enumerate(program.jaxpr.invars)}
    return tuple(None if isinstance(o, Literal) else numbers.get(o) for o in program.jaxpr.outvars)


@memoize_by_jaxpr
def without_inputs(program: ClosedJaxpr, needed: tuple[bool, ...]) -> ClosedJaxpr:
    """The program without inputs that it doesn't read."""
    return with_ends(program, [v for v, n in zip(program.jaxpr.invars, needed, strict=True) if n])


def run(program: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """Applies the program's equations in the current trace."""
    return eval_jaxpr(program.jaxpr, program.consts, args)


def derived(program: ClosedJaxpr, fun: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """A program made from ``program`` by running ``fun``, which closes over nothing but programs."""
    return trace_to_jaxpr(fun, avals, name=program.jaxpr.debug_name)


@memoize_by_jaxpr
def inlined(program: ClosedJaxpr) -> ClosedJaxpr:
    """The program with the equations of the jitted functions that it calls, instead of the calls."""
    if not any(e.primitive.name == "jit" for e in program.jaxpr.eqns):
        return program
    return derived(program, lambda *args: _run_inlined(program, args), program.in_avals)


def _run_inlined(program: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    env: dict[Any, Any] = dict(zip(program.jaxpr.invars, args, strict=True))
    env.update(zip(program.jaxpr.constvars, program.consts, strict=True))
    caller = ambient.source
    for eqn in program.jaxpr.eqns:
        values = [a.value if isinstance(a, Literal) else env[a] for a in eqn.invars]
        ambient.source = eqn.source or caller
        outs = _run_inlined(eqn.params["jaxpr"], values) if eqn.primitive.name == "jit" else eqn.apply(values)
        env.update(zip(eqn.outvars, outs, strict=True))
    return [a.value if isinstance(a, Literal) else env[a] for a in program.jaxpr.outvars]
