"""``jit``: a call of a program that is compiled as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.control.calls.family import CallLike, Dims, Ends, Params
from polyax.control.inner.lists import kept
from polyax.control.inner.programs import hoisted
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive
from polyax.ir.source import user_source
from polyax.transforms.vmap import AxisData, batch_jaxpr

pjit_p = Primitive("jit", higher_order=True)
"""``jit[name jaxpr donated inline keep_unused device compiler_options]``; the constants of the program come first in
its arguments."""


def call(closed: ClosedJaxpr, args: Sequence[Any], **params: Any) -> list[Any]:
    """Binds ``jit`` with the program's constants hoisted into its arguments."""
    jaxpr, consts = hoisted(closed)
    donated = params.get("donated") or ()
    params["donated"] = (False,) * len(consts) + tuple(donated) if any(donated) else ()
    return pjit_p.bind(*consts, *args, jaxpr=jaxpr, **params)


class _Pjit(CallLike):
    def abstract_eval(self, *avals: Any, **params: Any) -> Any:
        """Raises if there are options for its compilation: it is part of a program, which has its own."""
        if options := params.get("compiler_options"):
            raise ValueError(
                f"`compiler_options` can only be passed to top-level `jax.jit`. Got compiler_options={dict(options)} "
                f"specified on a nested jit with name: {params['name']} and source info: {user_source() or ''}. Pass "
                "them to the jit around it."
            )
        return super().abstract_eval(*avals, **params)

    def bind(self, program: ClosedJaxpr, args: Sequence[Any], params: Params, ins: Ends, outs: Ends) -> list[Any]:
        """Donated buffers are needed by derivatives, so they are kept."""
        return super().bind(program, args, params | {"donated": ()}, ins, outs)

    def batch(self, axis: AxisData, args: Sequence[Any], dims: Dims, **params: Any) -> tuple[list[Any], Dims]:
        mapped, out_dims = batch_jaxpr(params.pop("jaxpr"), axis, tuple(dims))
        return call(mapped, args, **params), out_dims

    def narrowed(self, params: Params, needed: Sequence[bool], used: Sequence[bool]) -> Params:
        donated = params["donated"]
        return params | {"donated": tuple(kept(needed, donated)) if donated else ()}

    def pretty(self, *, name: str, jaxpr: ClosedJaxpr, **_: Any) -> dict[str, Any]:
        return {"name": name, "jaxpr": jaxpr}


_Pjit(pjit_p).install("abstract_eval", "jvp", "batch", "transpose", "partial_eval", "dce", "sub_jaxprs", "pretty")
