"""``check_lowering``: a rule of somebody's on every case that the suite has for its primitive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

import polyax
from polyax.backend import ClosedJaxpr, Primitive, walk_eqns
from polyax_conformance.parts.bringing import brought
from polyax_conformance.parts.findings import Findings, Wrong, difference, raised, told
from polyax_conformance.parts.running import kernel_backend
from polyax_conformance.specs.case import Case, as_list, case, stack
from polyax_conformance.specs.primitives.table import CASES
from polyax_kernels.api.lowerings import Lowering

FIRST = 1_000_000
"""The priority by which the rule is asked before all others."""
OWNER = "check_lowering"
RTOL = {"float64": 1e-9, "complex128": 1e-9, "float32": 2e-5, "complex64": 2e-5}

Program = Callable[..., Any]


def check_lowering(
    rule: Any,
    primitive: Primitive,
    *,
    platform: str = "cpu",
    cases: Mapping[str, tuple[Program, Sequence[Any]]] | None = None,
    log: Callable[[], Any] | None = None,
    rtol: float = 0.0,
) -> Findings:
    """Runs a lowering on programs that use its primitive, and compares them with the reference.

    Found are wrong values, shapes and dtypes, inputs that are written to, effects that are dropped, repeated or out of
    order, and what raises. Programs for which the rule declines are counted, with the reasons.

    Args:
      rule: ``Kernels``, ``Replace`` or ``Call`` of ``polyax_kernels.api.lowerings``.
      primitive: what it is for.
      platform: the name of one that is made of kernels.
      cases: functions and arguments, by name; without them the suite's own, as they are and in batches,
        with 32 and 64 bits.
      log: gives what callbacks of the cases noted since it was called last.
      rtol: the relative error that is allowed; without it what others keep.

    Raises:
      TypeError: the platform isn't made of kernels.
      ValueError: there are no cases for the primitive.

    >>> from polyax.lax import logistic_p
    >>> from polyax_kernels.api.lowerings import Kernels, op
    >>> half = Kernels(lambda out, x, **_: op("tanh", x.at(out.i)) * 0.5)
    >>> found = check_lowering(half, logistic_p)
    >>> len(found.wrong) > 0, found.wrong[0].fault.startswith("result 0: it is")
    (True, True)
    """
    kernel_backend(platform)
    found = Findings(f"lowering of {primitive.name} on {platform}")
    programs = known_cases(primitive) if cases is None else {n: case(f, *args) for n, (f, args) in cases.items()}
    if not programs:
        raise ValueError(f"the suite has no case for {primitive.name}; give some: cases={{name: (function, args)}}")
    if not isinstance(rule, Lowering):
        found.wrong.append(Wrong("the rule", f"it is {rule!r}, not Kernels, Replace or Call"))
        return found
    asked: list[str | None] = []
    with brought(platform, OWNER, asked_first(rule, primitive, asked)):
        for (name, one), bits in product(programs.items(), (32, 64)):
            title = f"{name}, {bits} bits"
            asked.clear()
            with polyax.enable_x64(bits == 64):
                _check(title, one, platform, found, log, rtol)
            if not asked or any(asked):
                found.lacking[title] = next(filter(None, asked), "it isn't asked, for types that kernels lack")
    return found


def known_cases(primitive: Primitive) -> dict[str, Case]:
    """The suite's cases whose programs use the primitive, as they are and in batches."""
    found = {name: c for name, c in CASES.items() if uses(c, primitive)}
    batches = {f"{name} in batches": batched(c) for name, c in found.items()}
    return found | {name: c for name, c in batches.items() if c is not None and uses(c, primitive)}


def uses(c: Case, primitive: Primitive) -> bool:
    with polyax.enable_x64(True):
        closed: ClosedJaxpr = polyax.make_jaxpr(c.fun)(*c.args)
    return any(eqn.primitive is primitive for eqn in walk_eqns(closed.jaxpr))


def batched(c: Case) -> Case | None:
    """The case for three examples at once; None if none of its arguments may be mapped."""
    axes = tuple(None if n in c.whole else 0 for n in range(len(c.args)))
    args = [x if axis is None else stack(x, 0) for x, axis in zip(c.args, axes, strict=True)]
    return case(polyax.vmap(c.fun, in_axes=axes), *args) if any(axis == 0 for axis in axes) else None


def asked_first(rule: Lowering, primitive: Primitive, asked: list[str | None]) -> Callable[[Any], Mapping[Any, Any]]:
    """The hook that brings the rule; what it answers about each use is added to ``asked``."""

    def why_not(avals: Any, params: Any) -> str | None:
        asked.append(rule.why_not(avals, params))
        return asked[-1]

    table = {primitive: replace(rule, priority=FIRST, why_not=why_not)}

    def polyax_lowerings(_: Any) -> Mapping[Any, Any]:
        return table

    return polyax_lowerings


def _check(name: str, c: Case, platform: str, found: Findings, log: Callable[[], Any] | None, rtol: float) -> None:
    def program(*args: Any) -> Any:
        """With its inputs, so that they are still wanted after the results."""
        return as_list(c.fun(*args)), args

    args = [np.asarray(polyax.numpy.asarray(x)) for x in c.args]
    take = log or (lambda: None)
    take()
    with polyax.default_device("reference"):
        want, kept = (list(map(np.asarray, x)) for x in polyax.jit(program)(*args))
    noted = take()
    try:
        with polyax.default_device(platform), polyax.config.override(checks=True):
            inputs = [polyax.numpy.array(x) for x in args]
            got, after = (list(map(np.asarray, x)) for x in polyax.jit(program)(*inputs))
    except Exception as e:
        found.wrong.append(Wrong(name, raised(e), told(args), _text(c, args)))
        return
    found.checked += 1
    faults = [
        *_differences("result", got, want, rtol, args),
        *_differences("input", after, kept, 0.0, args),
        *_differences("input, from outside,", [np.asarray(x) for x in inputs], args, 0.0, args),
    ]
    if (seen := take()) != noted:
        faults.append((f"its effects are {seen}, expected {noted}", told(args)))
    found.wrong += [Wrong(name, fault, given, _text(c, args)) for fault, given in faults[:1]]


def _differences(
    what: str, got: Sequence[Any], want: Sequence[Any], rtol: float, args: Sequence[Any]
) -> list[tuple[str, str]]:
    allowed = [rtol or RTOL.get(str(w.dtype), 0.0) for w in want] if what == "result" else [0.0] * len(want)
    if len(got) != len(want):
        return [(f"there are {len(got)} results, expected {len(want)}", told(args))]
    found = [difference(g, w, r, args) for g, w, r in zip(got, want, allowed, strict=True)]
    return [(f"{what} {n}: {f[0]}", f[1]) for n, f in enumerate(found) if f is not None]


def _text(c: Case, args: Sequence[Any]) -> str:
    return str(polyax.make_jaxpr(c.fun)(*args))
