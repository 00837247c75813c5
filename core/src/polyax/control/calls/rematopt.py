"""``remat_opt``: the forward function of a ``custom_vjp``; the function itself where no residuals are needed.

``remat_opt[forward plain num_out] *inputs``: the results and residuals that ``forward`` computes; ``plain`` computes
the results alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.inner.programs import pruned, run, share_consts, without_inputs
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.effects import Effects
from polyax.ir.jaxpr import ClosedJaxpr, Eqn
from polyax.ir.primitive import Primitive, def_rule
from polyax.trace.recording import trace_to_jaxpr
from polyax.transforms.jvp import jvp_flat
from polyax.transforms.vmap import AxisData, batch_flat

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


@def_rule(remat_opt_p, "impl")
def _impl(*args: Any, forward: ClosedJaxpr, **_: Any) -> list[Any]:
    return run(forward, args)


@def_rule(remat_opt_p, "abstract_eval")
def _abstract_eval(*_: ShapedArray, forward: ClosedJaxpr, **__: Any) -> tuple[list[ShapedArray], Effects]:
    return forward.out_avals, forward.effects


@def_rule(remat_opt_p, "jvp")
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, forward: ClosedJaxpr, **_: Any) -> Any:
    """Derivatives of the second order are those of the forward function."""
    return jvp_flat(lambda *xs: run(forward, xs), primals, tangents)


@def_rule(remat_opt_p, "batch")
def _batch(axis: AxisData, args: Sequence[Any], dims: Sequence[int | None], *, forward: ClosedJaxpr, **_: Any) -> Any:
    return batch_flat(lambda *xs: run(forward, xs), axis, args, dims)


@def_rule(remat_opt_p, "dce")
def _dce(used: Sequence[bool], eqn: Eqn) -> Eqn | None:
    num_out = eqn.params["num_out"]
    if not any(used) and not eqn.effects:
        return None
    if any(used[num_out:]):
        return eqn
    program, needed = pruned(eqn.params["plain"], tuple(used[:num_out]))
    program = without_inputs(program, needed)
    inputs = [x for x, n in zip(eqn.invars, needed, strict=True) if n]
    outs = [v for v, u in zip(eqn.outvars, used, strict=True) if u]
    return eqn.replace(invars=inputs, outvars=outs, params={"forward": program, "plain": program, "num_out": len(outs)})


remat_opt_p.never("transpose", "it computes residuals, which are known")
remat_opt_p.never("partial_eval", "either all of it is known, or nothing")


@def_rule(remat_opt_p, "sub_jaxprs")
def _sub_jaxprs(*, forward: ClosedJaxpr, **_: Any) -> list[ClosedJaxpr]:
    return [forward]
