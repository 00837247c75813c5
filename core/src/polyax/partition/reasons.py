"""Why devices exchange something, in words. Made when an exchange is noted, not before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyax.ir.jaxpr import Eqn
from polyax.meshes.spec import Cuts, spec_of
from polyax.ops.constraint import sharding_constraint_p
from polyax.partition.shares import Rule, Shares

Why = Callable[[Cuts, Cuts], str]


def of_operands(eqn: Eqn, rule: Rule, shares: Shares) -> Callable[[int], Why]:
    """For each operand the reason to bring it to where an equation needs it."""

    def of(n: int) -> Why:
        return lambda before, after: (
            f"{eqn.primitive} needs its operand {n}, {spec_of(before)}, as {spec_of(after)}, since "
            f"{_since(eqn, rule, shares, n, before, after)}"
        )

    return of


def _since(eqn: Eqn, rule: Rule, shares: Shares, n: int, before: Cuts, after: Cuts) -> str:
    for d, (own, wanted) in enumerate(zip(before, after, strict=True)):
        if own == wanted or not own:
            continue
        dim = rule.dims[n][d]
        if not dim:
            return f"its dimension {d} can't be cut"
        if rule.whole.intersection(dim):
            return f"each device must have all of its dimension {d}"
        if any(f in rule.found.reduced for f in dim) and not wanted:
            return f"its dimension {d} is summed up or contracted, and to put parts together would move more"
        lost = [a for a in own if a not in wanted]
        taken = [a for a in lost if any(a in names for names in shares.values())]
        if taken:
            return f"axis {', '.join(map(repr, taken))} cuts other dimensions of this equation, which moves less"
        return f"its dimension {d} isn't cut so in the other operands and results, and this moves least"
    return "it is cut further"


def of_result(eqn: Eqn, n: int, parts: tuple[tuple[str, tuple[Any, ...]], ...]) -> Why:
    """Why a result goes to where it is wanted."""

    def why(before: Cuts, after: Cuts) -> str:
        if parts:
            axes = ", ".join(repr(a) for _, names in parts for a in names)
            return f"each device has a part of what {eqn.primitive} gives ({parts[0][0]} along {axes})"
        if eqn.primitive is sharding_constraint_p:
            return f"a constraint says {spec_of(after)}; the value is {spec_of(before)}"
        return f"{eqn.primitive} gives {spec_of(before)}, and its result {n} is used as {spec_of(after)}"

    return why


def unruled(eqn: Eqn, n: int) -> Why:
    return lambda before, _: (
        f"{eqn.primitive} needs all of its operand {n}, {spec_of(before)}: no rule says how its work can be shared"
    )


def outside(eqn: Eqn, n: int) -> Why:
    return lambda before, _: f"{eqn.primitive} runs once, on whole operands; operand {n} is {spec_of(before)}"


def told(eqn: Eqn) -> str:
    return f"the first device, where {eqn.primitive} runs, tells the others its results"


def of_ends(what: str) -> Why:
    """Of results of a program that is to be cut as something around it says."""
    return lambda before, after: f"{what} {spec_of(after)}; it is {spec_of(before)}"


def of_inner(eqn: Eqn, n: int) -> Why:
    return lambda before, after: (
        f"the program in {eqn.primitive} has its operand {n} as {spec_of(after)}; it is {spec_of(before)}"
    )


def gathered(before: Cuts, after: Cuts) -> str:
    return (
        f"to have an argument, {spec_of(before)}, as {spec_of(after)} from the start and to share less of the work "
        "costs less than what the program would exchange"
    )
