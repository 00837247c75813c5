"""``closed_call`` and ``call``: calls of programs as interpreters written for JAX put them into programs.

polyax's own functions make none; they are compiled as if the program stood in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.control.calls.family import CallLike
from polyax.control.inner.programs import run
from polyax.ir.primitive import Primitive

closed_call_p = Primitive("closed_call", higher_order=True)
"""``closed_call[call_jaxpr] *args``: the results of the program."""
call_p = Primitive("call", higher_order=True)
"""The same under an older name."""


class _ClosedCall(CallLike):
    def __init__(self, p: Primitive) -> None:
        super().__init__(p, "call_jaxpr")

    def decompose(self, *args: Any, **params: Any) -> Sequence[Any]:
        return run(params["call_jaxpr"], args)


for _p in (closed_call_p, call_p):
    _ClosedCall(_p).install(
        *("abstract_eval", "impl", "decompose", "jvp", "batch", "transpose", "partial_eval", "dce", "sub_jaxprs")
    )
