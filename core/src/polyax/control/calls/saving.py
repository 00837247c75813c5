"""What a policy of ``checkpoint`` saves of a program, in the bodies of its loops and branches too.

There are then two programs: the one that is run first gives what is saved, and the one that computes the rest again
takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from polyax.control.flow.cond import cond_p, from_slots, into_slots, share_slots
from polyax.control.flow.scan import ScanParts, constant_vars, scan_p, stacked
from polyax.control.inner.answers import Offloadable
from polyax.control.inner.policies import Policy, answer_of
from polyax.control.inner.programs import inlined
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var, sub_jaxprs
from polyax.ir.primitive import Primitive

Answers = dict[Var, Offloadable | bool]


class Saving(NamedTuple):
    """The equations of a program that give what is saved, those that read it, and these variables with the policy's
    answers."""

    storing: list[Eqn]
    reading: list[Eqn]
    answers: Answers


def saving(jaxpr: Jaxpr, policy: Policy | None) -> Saving:
    """What ``policy`` saves of a program, where None saves nothing."""
    found = Saving([], [], {})
    for eqn in jaxpr.eqns:
        inner = Saving([eqn], [eqn], {}) if policy is None else _of(eqn, policy)
        found.storing.extend(inner.storing)
        found.reading.extend(inner.reading)
        found.answers.update(inner.answers)
    again = [_without(e, found.answers) for e in found.reading if _comes_again(e, found.answers, policy)]
    return found._replace(reading=again)


def _of(eqn: Eqn, policy: Policy) -> Saving:
    """Of one equation. That whose results are all saved isn't computed again, so that nothing in it need be."""
    answers = {v: a for n, v in enumerate(eqn.outvars) if (a := _answer(eqn, n, policy))}
    within = _BODIES.get(eqn.primitive)
    if within is None or len(answers) == len(eqn.outvars):
        return Saving([eqn], [eqn], answers)
    found = within(eqn, policy)
    return found._replace(answers=answers | found.answers)


def _answer(eqn: Eqn, position: int, policy: Policy) -> Offloadable | bool:
    """Of loops and branches, the equations in their programs that make the result decide, if there are any."""
    programs = [p.jaxpr for p in sub_jaxprs(eqn) if len(p.jaxpr.outvars) == len(eqn.outvars)]
    made = [(p.outvars[position], [e for e in p.eqns if p.outvars[position] in e.outvars]) for p in programs]
    if eqn.primitive.name == "remat2" or not any(makers for _, makers in made):
        return answer_of(policy, eqn.primitive, [a.aval for a in eqn.invars], eqn.params)
    answers = [_answer(e, e.outvars.index(v), policy) for v, makers in made for e in makers]
    return all(answers) and answers[0]


def _comes_again(eqn: Eqn, saved: Mapping[Var, object], policy: Policy | None) -> bool:
    """Unless its results are saved. What is printed, is again if the policy doesn't save prints, or nothing of it."""
    if eqn.outvars or not any(e.of_debugging for e in eqn.effects):
        return not all(v in saved for v in eqn.outvars)
    if policy is None or not any(v in saved for v in eqn.invars):
        return True
    return not answer_of(policy, eqn.primitive, [a.aval for a in eqn.invars], eqn.params)


def _without(eqn: Eqn, saved: Mapping[Var, object]) -> Eqn:
    """The equation with other names for results that are saved, as these aren't what is read later."""
    if not any(v in saved for v in eqn.outvars):
        return eqn
    return eqn.replace(outvars=[Var(v.aval) if v in saved else v for v in eqn.outvars])


# --- loops and branches -------------------------------------------------------------------------------------------


def _of_scan(eqn: Eqn, policy: Policy) -> Saving:
    """What changes from turn to turn is stacked; the rest is computed once, before the loop."""
    loop = ScanParts.of(eqn.params)
    body = inlined(loop.jaxpr).jaxpr
    inner = saving(body, policy)
    ys: dict[Atom, Var] = dict(zip(body.outvars[loop.num_carry :], eqn.outvars[loop.num_carry :], strict=True))
    storing = Jaxpr([], body.invars, body.outvars, inner.storing)
    constant = constant_vars(storing, body.invars[: loop.num_consts])
    before, once = _before(storing, [v for v in inner.answers if v in constant and v not in ys], eqn)
    stacks = {v: ys.get(v) or Var(stacked(v.aval, loop.length)) for v in inner.answers if v not in once}
    more = [v for v in stacks if v not in ys]
    outer = once | stacks

    def loop_of(eqns: list[Eqn], given: Sequence[Var], results: Sequence[Var]) -> Eqn:
        consts, carry, xs = loop.cut(body.invars)
        jaxpr = Jaxpr([], [*consts, *once, *carry, *xs, *given], [*body.outvars, *results], eqns, None, body.debug_name)
        consts, carry, xs = loop.cut(eqn.invars)
        invars = [*consts, *once.values(), *carry, *xs, *(stacks[v] for v in given)]
        params = {"jaxpr": ClosedJaxpr(jaxpr, []), "num_consts": loop.num_consts + len(once)}
        outvars = [*eqn.outvars, *(stacks[v] for v in results)]
        return eqn.replace(invars=invars, outvars=outvars, params=eqn.params | params, effects=jaxpr.effects)

    first = loop_of([_without(e, once) for e in inner.storing], [], more)
    again = loop_of(inner.reading, list(stacks), [])
    return Saving([*before, first], [again], {outer[v]: a for v, a in inner.answers.items()})


def _before(body: Jaxpr, wanted: Sequence[Var], eqn: Eqn) -> tuple[list[Eqn], dict[Var, Var]]:
    """Equations that compute in front of the loop what is ``wanted`` of its body, and what they call that."""
    atoms: dict[Atom, Atom] = dict(zip(body.invars, eqn.invars, strict=True))
    behind = set(wanted)
    needed: list[Eqn] = []
    for e in reversed(body.eqns):
        if not behind.isdisjoint(e.outvars):
            behind.update(a for a in e.invars if isinstance(a, Var))
            needed.append(e)
    copies: list[Eqn] = []
    names: dict[Var, Var] = {}
    for e in reversed(needed):
        invars = [a if isinstance(a, Literal) else names.get(a) or atoms[a] for a in e.invars]
        outvars = [Var(v.aval) for v in e.outvars]
        names.update(zip(e.outvars, outvars, strict=True))
        copies.append(e.replace(invars=invars, outvars=outvars))
    return copies, {v: names[v] for v in wanted}


def _of_cond(eqn: Eqn, policy: Policy) -> Saving:
    """The branches have slots for what any of them saves."""
    branches = [inlined(b).jaxpr for b in eqn.params["branches"]]
    inner = [saving(b, policy) for b in branches]
    slots, places = share_slots([[v.aval for v in s.answers] for s in inner])
    first: list[ClosedJaxpr] = []
    again: list[ClosedJaxpr] = []
    found: dict[int, Offloadable | bool] = {}
    for b, s, taken in zip(branches, inner, map(tuple, places), strict=True):
        stores = Jaxpr([], b.invars, [*b.outvars, *s.answers], s.storing, None, b.debug_name)
        reads = Jaxpr([], [*s.answers, *b.invars], b.outvars, s.reading, None, b.debug_name)
        first.append(into_slots(ClosedJaxpr(stores, []), slots, taken))
        again.append(from_slots(ClosedJaxpr(reads, []), slots, taken))
        found.update(zip(taken, s.answers.values(), strict=True))
    index, *operands = eqn.invars
    variables = [Var(aval) for aval in slots]
    storing = eqn.replace(outvars=[*eqn.outvars, *variables], params={"branches": tuple(first)})
    reading = eqn.replace(invars=[index, *variables, *operands], params={"branches": tuple(again)})
    return Saving([storing], [reading], {variables[k]: a for k, a in found.items()})


_BODIES: dict[Primitive, Callable[[Eqn, Policy], Saving]] = {scan_p: _of_scan, cond_p: _of_cond}
