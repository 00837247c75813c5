"""Where a NaN or an infinity comes from: a program that gave one is run again, equation by equation.

Loops are walked step by step, so that the error can say in which iteration it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.control.flow.cond import cond_p
from polyax.control.flow.scan import ScanParts, scan_p
from polyax.control.flow.while_loop import while_p
from polyax.control.inner.lists import cut
from polyax.control.spmd import shard_map_p
from polyax.ir import dtypes
from polyax.ir.config import config
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Literal, Var, sub_jaxprs
from polyax.ir.source import Source, user_source
from polyax.ops.joining import stack
from polyax.ops.slicing import index_in_dim


def check(results: Sequence[Any], closed: ClosedJaxpr, args: Sequence[Any], name: str) -> None:
    """Raises FloatingPointError, naming the equation, if there are NaNs (``debug_nans``) or infinities
    (``debug_infs``) in the results of a program. ``args`` end with its inputs."""
    search = _Search(config.debug_nans, config.debug_infs)
    what = search.found(results)
    if what is None:
        return
    with config.override(debug_nans=False, debug_infs=False):  # equations are run as programs of their own
        inputs = args[len(args) - len(closed.in_avals) :]
        place = search.place(closed, inputs) if _worth_searching(closed) else None
    types = ", ".join(str(x.aval) for x in results if hasattr(x, "aval"))
    if place is not None:
        raise FloatingPointError(f"{place}; this is the first that leads to a result of {name}, of type {types}")
    asked = f"asked for at {user_source()}"
    raise FloatingPointError(f"invalid value ({what}) encountered in {name}, in a result of type {types}, {asked}")


def check_data(x: Any, name: str) -> None:
    """Raises FloatingPointError if data that ``name`` was given hold what is looked for."""
    what = _Search(config.debug_nans, config.debug_infs).found([x])
    if what is not None:
        raise FloatingPointError(f"invalid value ({what}) encountered in {name}, in data of type {x.aval}")


def _worth_searching(closed: ClosedJaxpr) -> bool:
    """Whether it computes something, and isn't a single operation that somebody applied outside of programs."""
    if not closed.eqns:
        return False
    first, *others = closed.eqns
    return bool(others) or first.source is not None or first.primitive.higher_order


class _Found(Exception):
    """The first equation that gave what is looked for."""


class _Search:
    def __init__(self, nans: bool, infs: bool) -> None:
        self.asked: Source | None = None
        self.tests = [(what, test) for on, what, test in ((nans, "nan", np.isnan), (infs, "inf", np.isinf)) if on]

    def found(self, values: Sequence[Any]) -> str | None:
        for x in values:
            if dtypes.is_inexact(x.dtype):
                for what, test in self.tests:
                    if test(np.asarray(x)).any():
                        return what
        return None

    def place(self, program: ClosedJaxpr, args: Sequence[Any]) -> str | None:
        try:
            self.run(program, args, "")
        except _Found as e:
            return str(e)
        return None

    def run(self, program: ClosedJaxpr, args: Sequence[Any], where: str) -> list[Any]:
        """The program's outputs, computed equation by equation; ``where`` says in which loops."""
        jaxpr = program.jaxpr
        env: dict[Var, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*program.consts, *args), strict=True))

        def read(atom: Atom) -> Any:
            return np.asarray(atom.val, atom.aval.dtype) if isinstance(atom, Literal) else env[atom]

        for eqn in jaxpr.eqns:
            values = [read(a) for a in eqn.invars]
            outs = self.step(eqn, values, where)
            env.update(zip(eqn.outvars, outs, strict=True))
        return [read(a) for a in jaxpr.outvars]

    def step(self, eqn: Eqn, args: list[Any], where: str) -> list[Any]:
        caller = self.asked
        self.asked = eqn.source or caller
        try:
            return self.results(eqn, args, where)
        finally:
            self.asked = caller

    def results(self, eqn: Eqn, args: list[Any], where: str) -> list[Any]:
        if eqn.primitive is scan_p:
            return self.scan(eqn, args, where)
        if eqn.primitive is while_p:
            return self.loop(eqn, args, where)
        if eqn.primitive is cond_p:
            return self.checked(eqn, self.run(eqn.params["branches"][int(args[0])], args[1:], where), where)
        inner = sub_jaxprs(eqn)
        if len(inner) == 1 and len(inner[0].jaxpr.invars) == len(args) and eqn.primitive is not shard_map_p:
            return self.run(inner[0], args, where)
        return self.checked(eqn, eqn.apply(args), where)

    def checked(self, eqn: Eqn, outs: list[Any], where: str) -> list[Any]:
        if (what := self.found(outs)) is not None:
            line = f", asked for at {self.asked}" if self.asked is not None else ""
            raise _Found(f"invalid value ({what}) encountered in {eqn.primitive}{line}{where}")
        return outs

    def scan(self, eqn: Eqn, args: list[Any], where: str) -> list[Any]:
        loop = ScanParts.of(eqn.params)
        consts, carry, xs = loop.cut(args)
        order = range(loop.length)
        rows: dict[int, list[Any]] = {}
        for n in reversed(order) if loop.reverse else order:
            slices = [index_in_dim(x, n, keepdims=False) for x in xs]
            outs = self.run(loop.jaxpr, [*consts, *carry, *slices], f"{where}, in iteration {n} of scan")
            carry, rows[n] = loop.cut_outs(outs)
        if not rows:
            return eqn.apply(args)
        return [*carry, *(stack(ys) for ys in zip(*(rows[n] for n in order), strict=True))]

    def loop(self, eqn: Eqn, args: list[Any], where: str) -> list[Any]:
        params = eqn.params
        of_cond, of_body, carry = cut(args, params["cond_nconsts"], params["body_nconsts"])
        n = 0
        while np.asarray(self.run(params["cond_jaxpr"], [*of_cond, *carry], where)[0]):
            inside = f"{where}, in iteration {n} of while"
            carry = self.run(params["body_jaxpr"], [*of_body, *carry], inside)
            n += 1
        return carry
