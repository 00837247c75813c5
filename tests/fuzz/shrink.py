"""From a program that fails to a small one that fails alike: fewer results, fewer steps, plainer values.

A step is replaced by values of the same types, so that what is left stays well typed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from fuzz.checks import Check
from fuzz.programs import Case
from fuzz.source import NAMES, Function, Step


def failure(check: Check, case: Case, platform: str) -> str | None:
    """The kind of failure, if the check fails."""
    try:
        check(case, platform)
    except Exception as e:
        return type(e).__name__
    return None


def shrunk(case: Case, check: Check, platform: str, tries: int = 400) -> Case:
    """The smallest program found that fails ``check`` as ``case`` does, after so many tries at most."""
    kind, left = failure(check, case, platform), tries
    while left > 0:
        for candidate in islice(candidates(case), left):
            left -= 1
            if runs(candidate) and failure(check, candidate, platform) == kind:
                case = candidate
                break
        else:
            return case
    return case


def runs(case: Case) -> bool:
    """Whether the text makes sense, which its plain form shows."""
    try:
        case.plain(*map(case.module.numpy.asarray, case.args))
    except Exception:
        return False
    return True


def candidates(case: Case) -> Iterator[Case]:
    """Simpler programs, the boldest first."""
    function = case.function
    for name in returnable(function):
        if function.returned != f"({name},)":
            yield case.with_function(replace(function, returned=f"({name},)").without_dead_steps())
    for simpler in simplified(function, list(function.params), case):
        small = simpler.without_dead_steps()
        if str(small) != case.text:
            yield case.with_function(small)


def returnable(function: Function) -> list[str]:
    """What a program may return alone: what it returns now, and earlier what it computes on the way."""
    now = NAMES.findall(function.returned)
    if len(now) > 1:
        return now
    return [name for step in function.steps for name in sorted(step.made)][: -1 or None]


def simplified(function: Function, scope: list[str], case: Case) -> Iterator[Function]:
    """The function with one step replaced, or one step of the functions within."""
    scope = [*scope, *NAMES.findall(str(function.params))]
    for n, step in enumerate(function.steps):
        for steps in (*replacements(step, scope, case), *deeper(step, scope, case)):
            yield replace(function, steps=(*function.steps[:n], *steps, *function.steps[n + 1 :]))
        scope += sorted(step.made)


def replacements(step: Step, scope: list[str], case: Case) -> Iterator[tuple[Step, ...]]:
    """For the step: other values of the same types, or ones."""
    if step.text in scope or step.text.startswith("jnp.ones("):
        return
    alike = [[v for v in scope if same(case, v, name)][:2] for name in sorted(step.made)]
    if all(alike):
        yield tuple(Step(name, vs[0]) for name, vs in zip(sorted(step.made), alike, strict=True))
    yield tuple(Step(name, ones(case, name)) for name in sorted(step.made))


def same(case: Case, a: str, b: str) -> bool:
    x, y = case.types[a], case.types[b]
    return (x.shape, x.dtype) == (y.shape, y.dtype)


def ones(case: Case, name: str) -> str:
    aval = case.types[name]
    return f"jnp.ones({aval.shape}, {aval.dtype.name!r})"


def deeper(step: Step, scope: list[str], case: Case) -> Iterator[tuple[Step, ...]]:
    scope = [] if step.text.startswith("own_") else scope  # what has its own rule must not close over arguments
    for n, function in enumerate(step.functions):
        for simpler in simplified(function, scope, case):
            yield (replace(step, functions=(*step.functions[:n], simpler, *step.functions[n + 1 :])),)
