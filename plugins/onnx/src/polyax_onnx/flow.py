"""Loops and branches: Python turns them, over programs that are made to run as all others are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax.backend import ClosedJaxpr, Eqn

Run = Callable[[Sequence[np.ndarray]], list[np.ndarray]]
Make = Callable[[ClosedJaxpr], Run]


def _made(closed: ClosedJaxpr, make: Make) -> Run:
    run, consts = make(closed), [np.asarray(c) for c in closed.consts]
    return lambda arrays: run([*consts, *arrays])


def _cond(eqn: Eqn, make: Make) -> Run:
    branches = [_made(b, make) for b in eqn.params["branches"]]
    return lambda args: branches[int(args[0])](args[1:])


def _while(eqn: Eqn, make: Make) -> Run:
    test, body = (_made(eqn.params[p], make) for p in ("cond_jaxpr", "body_jaxpr"))
    n = eqn.params["cond_nconsts"]
    m = n + eqn.params["body_nconsts"]

    def run(args: Sequence[np.ndarray]) -> list[np.ndarray]:
        carry = list(args[m:])
        while test([*args[:n], *carry])[0]:
            carry = body([*args[n:m], *carry])
        return carry

    return run


def _scan(eqn: Eqn, make: Make) -> Run:
    p: dict[str, Any] = eqn.params
    body, n, m = _made(p["jaxpr"], make), p["num_consts"], p["num_consts"] + p["num_carry"]
    avals = p["jaxpr"].out_avals[p["num_carry"] :]

    def run(args: Sequence[np.ndarray]) -> list[np.ndarray]:
        carry = list(args[n:m])
        ys = [np.empty((p["length"], *a.shape), a.dtype) for a in avals]
        for t in reversed(range(p["length"])) if p["reverse"] else range(p["length"]):
            outs = body([*args[:n], *carry, *(np.asarray(x[t]) for x in args[m:])])
            carry = outs[: p["num_carry"]]
            for y, value in zip(ys, outs[p["num_carry"] :], strict=True):
                y[t] = value
        return [*carry, *ys]

    return run


FLOW: dict[str, Callable[[Eqn, Make], Run]] = {"cond": _cond, "while": _while, "scan": _scan}
