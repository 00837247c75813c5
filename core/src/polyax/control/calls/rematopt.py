"""``remat_opt``: the forward function of a ``custom_vjp``; the function itself where no residuals are needed.

``remat_opt[forward plain num_out] *inputs``: the results and residuals that ``forward`` computes; ``plain`` computes
the results alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.calls.family import Dissolving
from polyax.control.inner.lists import kept
from polyax.control.inner.programs import pruned, share_consts, without_inputs
from polyax.ir.aval import aval_of
from polyax.ir.jaxpr import Eqn
from polyax.ir.primitive import Primitive
from polyax.trace.recording import trace_to_jaxpr

remat_opt_p = Primitive("remat_opt", higher_order=True)


def forward_or_plain(forward: Callable[..., Any], plain: Callable[..., list[Any]]) -> Callable[..., Any]:
    """``forward``, as an equation that becomes ``plain`` when its residuals turn out not to be needed."""

    def run_either(primals: Sequence[Any], perturbed: Sequence[bool]) -> Any:
        made: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            outs, residuals, backward = forward(xs, perturbed)
            made[:] = [len(outs), backward]
            return [*outs, *residuals]

        avals = [aval_of(x) for x in primals]
        programs, consts = share_consts([trace_to_jaxpr(flat, avals), trace_to_jaxpr(plain, avals)])
        num_out, backward = made
        results = remat_opt_p.bind(*consts, *primals, forward=programs[0], plain=programs[1], num_out=num_out)
        return results[:num_out], results[num_out:], backward

    return run_either


class _Forward(Dissolving):
    """Derivatives of the second order are those of the forward function."""

    def dce(self, used: Sequence[bool], eqn: Eqn) -> Eqn | None:
        num_out = eqn.params["num_out"]
        if not any(used) and not eqn.effects:
            return None
        if any(used[num_out:]):
            return eqn
        program, needed = pruned(eqn.params["plain"], tuple(used[:num_out]))
        program = without_inputs(program, needed)
        params = {"forward": program, "plain": program, "num_out": sum(used)}
        return eqn.replace(invars=kept(needed, eqn.invars), outvars=kept(used, eqn.outvars), params=params)


_Forward(remat_opt_p, "forward").install("impl", "abstract_eval", "jvp", "batch", "dce", "sub_jaxprs")
remat_opt_p.never("transpose", "it computes residuals, which are known")
remat_opt_p.never("partial_eval", "either all of it is known, or nothing")
