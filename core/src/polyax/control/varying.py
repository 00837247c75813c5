"""Along which mesh axes operands of primitives that call a program have to vary: as its inputs do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.control.calls.custom_jvp import custom_jvp_call_p
from polyax.control.calls.custom_lin import custom_lin_p
from polyax.control.calls.custom_vjp import custom_vjp_call_p
from polyax.control.calls.jit import pjit_p
from polyax.control.calls.remat import remat_p
from polyax.control.flow.cond import cond_p
from polyax.control.flow.scan import scan_p
from polyax.control.flow.while_loop import while_p
from polyax.ir.primitive import Primitive
from polyax.trace.varying import Vma


def _by_last_program(p: Primitive) -> None:
    """The last operands are the inputs of the last program: of a loop its body, of ``cond`` any branch."""

    def varies(vmas: Sequence[Vma], **params: Any) -> tuple[list[Vma], None]:
        programs = p.rule("sub_jaxprs")(**params)
        inputs = [a.vma for a in programs[-1].in_avals] if programs else vmas
        return [*vmas[: len(vmas) - len(inputs)], *inputs], None

    p.varies = varies


for _p in (pjit_p, remat_p, scan_p, while_p, cond_p, custom_jvp_call_p, custom_vjp_call_p):
    _by_last_program(_p)

custom_lin_p.varies = lambda vmas, **_: (vmas, None)
