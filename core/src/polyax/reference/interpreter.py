"""Runs jaxprs equation by equation with the NumPy rules of ``RULES``, programs within programs included."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.ir import blame, dtypes
from polyax.ir.aval import ShapedArray
from polyax.ir.errors import NoLowering
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var, last_uses, sub_jaxprs
from polyax.ir.primitive import Primitive
from polyax.reference.table import RULES
from polyax.runtime.contract.probes import Telling, declare

Rule = Callable[..., list[np.ndarray]]


def run_on_host(primitive: Primitive, arrays: Sequence[np.ndarray], params: dict[str, Any]) -> list[np.ndarray]:
    """The results of one primitive: what other backends fall back to.

    Raises:
      NoLowering: there is no NumPy rule for it.
    """
    avals = [ShapedArray(x.shape, x.dtype) for x in arrays]
    eqn = Eqn(primitive, [Var(a) for a in avals], [], params)
    return [np.asarray(x, order="C") for x in rule_of(eqn)(*arrays, **params)]


def evaluate(jaxpr: Jaxpr, args: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of ``jaxpr`` for its constants and inputs. Values are dropped after their last use."""
    env: dict[Var, np.ndarray] = dict(zip((*jaxpr.constvars, *jaxpr.invars), args, strict=True))
    last = last_uses(jaxpr)

    def read(atom: Atom) -> np.ndarray:
        return np.asarray(atom.val, atom.aval.dtype) if isinstance(atom, Literal) else env[atom]

    for i, eqn in enumerate(jaxpr.eqns):
        results = _apply(eqn, [read(v) for v in eqn.invars])
        for var, value in zip(eqn.outvars, results, strict=True):
            env[var] = _checked(value, var.aval, eqn)
        for var in last.get(i, ()):
            env.pop(var, None)
    return [read(v) for v in jaxpr.outvars]


def _apply(eqn: Eqn, args: Sequence[np.ndarray]) -> list[np.ndarray]:
    try:
        return rule_of(eqn)(*args, **eqn.params)
    except Exception as e:
        blame.about(e, primitives=eqn.primitive.name, source=eqn.source)
        raise


def _told(before: Callable[..., list[np.ndarray]], telling: Telling) -> Callable[..., list[np.ndarray]]:
    """``_apply``, which tells traces of each equation."""

    def apply(eqn: Eqn, args: Sequence[np.ndarray]) -> list[np.ndarray]:
        start = time.perf_counter_ns()
        try:
            return before(eqn, args)
        finally:
            telling.add("call", eqn.primitive.name, start, {"lines": eqn.source.by_line} if eqn.source else {})

    return apply


declare(sys.modules[__name__], "_apply", _told)


def _checked(value: Any, aval: ShapedArray, eqn: Eqn) -> np.ndarray:
    """``value``, which must have the type that the program says; this backend is what the others are judged by."""
    value = np.asarray(value)
    if not dtypes.is_extended(aval.dtype) and (value.shape != aval.shape or value.dtype != aval.dtype):
        found = ShapedArray(value.shape, value.dtype)
        raise TypeError(f"the NumPy rule of {eqn.primitive} gave {found}, its type is {aval}; in {eqn}")
    return value


def rule_of(eqn: Eqn) -> Rule:
    """The NumPy rule of an equation's primitive; a program in its parameters that takes its inputs is a call.

    Raises:
      NoLowering: there is none.
    """
    rule = RULES.get(eqn.primitive)
    if rule is not None:
        return rule
    inner = called(eqn)
    if inner is not None:
        return lambda *args, **_: evaluate(inner.jaxpr, [*inner.consts, *args])
    raise NoLowering(
        f"the reference backend has no NumPy rule for {eqn.primitive.name!r}, needed by {eqn}.{eqn.primitive.remedy}"
    )


def called(eqn: Eqn) -> ClosedJaxpr | None:
    """The program that takes the equation's inputs, if running it is all that the equation does."""
    inner = [] if eqn.primitive in RULES or eqn.primitive.decompose is not None else sub_jaxprs(eqn)
    return inner[0] if len(inner) == 1 and len(inner[0].jaxpr.invars) == len(eqn.invars) else None
