"""Control flow: Python's own, over interpreted programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.control.calls.rematopt import remat_opt_p
from polyax.control.flow.cond import cond_p
from polyax.control.flow.scan import scan_p
from polyax.control.flow.while_loop import while_p
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ops.naming import name_p
from polyax.reference.interpreter import evaluate
from polyax.reference.table import rule, rules
from polyax.runtime.contract.queue import check_wanted


def _run(program: ClosedJaxpr, args: Any) -> list[np.ndarray]:
    check_wanted()  # loops may be long
    return evaluate(program.jaxpr, [*program.consts, *args])


@rules(cond_p)
def _cond(index: np.ndarray, *operands: np.ndarray, branches: tuple[ClosedJaxpr, ...]) -> list[np.ndarray]:
    return _run(branches[int(index)], operands)


@rules(while_p)
def _while(
    *args: np.ndarray, cond_jaxpr: ClosedJaxpr, cond_nconsts: int, body_jaxpr: ClosedJaxpr, body_nconsts: int
) -> list[np.ndarray]:
    of_cond, of_body = args[:cond_nconsts], args[cond_nconsts : cond_nconsts + body_nconsts]
    carry = list(args[cond_nconsts + body_nconsts :])
    while _run(cond_jaxpr, [*of_cond, *carry])[0]:
        carry = _run(body_jaxpr, [*of_body, *carry])
    return carry


@rules(scan_p)
def _scan(
    *args: np.ndarray, jaxpr: ClosedJaxpr, length: int, num_carry: int, num_consts: int, reverse: bool, **_: Any
) -> list[np.ndarray]:
    consts, carry = args[:num_consts], list(args[num_consts : num_consts + num_carry])
    xs = args[num_consts + num_carry :]
    ys = [np.empty((length, *a.shape), a.dtype) for a in jaxpr.out_avals[num_carry:]]
    for n in reversed(range(length)) if reverse else range(length):
        outs = _run(jaxpr, [*consts, *carry, *(x[n] for x in xs)])
        carry = outs[:num_carry]
        for y, value in zip(ys, outs[num_carry:], strict=True):
            y[n] = value
    return [*carry, *ys]


rule(name_p)(lambda x, **_: x)
rules(remat_opt_p)(lambda *args, forward, **_: _run(forward, args))
