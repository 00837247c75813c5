"""Primitives that call a program: their rules map the program, and bind the result.

``CallLike`` derives what is the same for all; a primitive overrides what differs. Knows none of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from polyax.control.inner.lists import Mask, cut, kept, merged, nonzeros, partition
from polyax.control.inner.programs import hoisted, pruned, run, without_inputs
from polyax.ir.aval import ShapedArray
from polyax.ir.effects import Effects
from polyax.ir.jaxpr import ClosedJaxpr, Eqn
from polyax.ir.primitive import Primitive
from polyax.trace.context import set_trace
from polyax.trace.symbolic import Zero, is_undef
from polyax.transforms.jvp import jvp_jaxpr
from polyax.transforms.linearize import PartialJaxprs, PartialTrace, partial_eval_jaxpr
from polyax.transforms.transpose import transpose_jaxpr
from polyax.transforms.vmap import AxisData, batch_jaxpr

Params = dict[str, Any]
Ends = Sequence[Any]
"""What a primitive says of each input, or of each result; None where it says nothing."""
Dims = Sequence[int | None]


class CallLike:
    """The rules of a primitive that calls the program which its parameter ``program`` holds."""

    def __init__(self, p: Primitive, program: str = "jaxpr") -> None:
        self.p = p
        self.program = program

    def install(self, *rules: str) -> None:
        """Gives the primitive these rules."""
        for rule in rules:
            setattr(self.p, rule, getattr(self, rule))

    # --- what primitives override

    def bind(self, program: ClosedJaxpr, args: Sequence[Any], params: Params, ins: Ends, outs: Ends) -> list[Any]:
        """A call of a program that was derived from that in ``params``."""
        program, consts = hoisted(program)
        return self.p.bind_all(*consts, *args, **{**params, self.program: program})

    def ends(self, params: Params) -> tuple[Ends, Ends]:
        program = params[self.program]
        return [None] * len(program.in_avals), [None] * len(program.out_avals)

    def shifted(self, end: Any, dim: int | None) -> Any:
        """``end`` of an array with a further dimension at ``dim``."""
        return end

    def cotangent(self, end: Any) -> Any:
        """The end of what is the cotangent of an array with this one."""
        return end

    def residuals(self, params: Params, avals: Sequence[ShapedArray]) -> Ends:
        """The ends of what the known part hands to the other, of these types."""
        return [None] * len(avals)

    def narrowed(self, params: Params, needed: Sequence[bool], used: Sequence[bool]) -> Params:
        """The parameters of a call without some of the inputs and results."""
        return params

    def derivative(self, params: Params) -> Params:
        """The parameters of the calls that derivatives consist of."""
        return params

    def around(self, params: Params) -> contextlib.AbstractContextManager[None]:
        """Where the program is mapped."""
        return contextlib.nullcontext()

    def split(self, params: Params, unknown: Mask) -> PartialJaxprs:
        return partial_eval_jaxpr(params[self.program], unknown)

    def backward(self, params: Params, linear: Mask, nonzero: Mask) -> tuple[ClosedJaxpr, Mask]:
        """From inputs that aren't linear and nonzero cotangents to nonzero cotangents of linear inputs, and which."""
        return transpose_jaxpr(params[self.program], linear, nonzero)

    # --- the rules

    def impl(self, *args: Any, **params: Any) -> list[Any]:
        return run(params[self.program], args)

    def abstract_eval(self, *_: ShapedArray, **params: Any) -> tuple[list[ShapedArray], Effects]:
        return params[self.program].out_avals, params[self.program].effects

    def sub_jaxprs(self, **params: Any) -> list[ClosedJaxpr]:
        return [params[self.program]]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        nonzero = nonzeros(tangents)
        with self.around(params):
            both, nonzero_out = jvp_jaxpr(params[self.program], nonzero)
        ins, outs = self.ends(params)
        ins, outs = [*ins, *kept(nonzero, ins)], [*outs, *kept(nonzero_out, outs)]
        results = self.bind(both, [*primals, *kept(nonzero, tangents)], self.derivative(params), ins, outs)
        values, dots = cut(results, len(nonzero_out))
        zeros = [Zero.of(x) for x, nz in zip(values, nonzero_out, strict=True) if not nz]
        return values, merged(nonzero_out, dots, zeros)

    def batch(self, axis: AxisData, args: Sequence[Any], dims: Dims, **params: Any) -> tuple[list[Any], Dims]:
        with self.around(params):
            mapped, out_dims = batch_jaxpr(params[self.program], axis, tuple(dims))
        ins, outs = self.ends(params)
        ins, outs = [*map(self.shifted, ins, dims)], [*map(self.shifted, outs, out_dims)]
        return self.bind(mapped, args, params, ins, outs), out_dims

    def transpose(self, cts: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
        linear, nonzero = tuple(map(is_undef, args)), nonzeros(cts)
        program, nonzero_out = self.backward(params, linear, nonzero)
        ins, outs = self.ends(params)
        linear_ends, known_ends = partition(linear, ins)
        unknowns, knowns = partition(linear, args)
        ins = [*known_ends, *map(self.cotangent, kept(nonzero, outs))]
        outs = [*map(self.cotangent, kept(nonzero_out, linear_ends))]
        results = self.bind(program, [*knowns, *kept(nonzero, cts)], self.derivative(params), ins, outs)
        zeros = [Zero(x.aval) for x, nz in zip(unknowns, nonzero_out, strict=True) if not nz]
        return merged(linear, merged(nonzero_out, results, zeros), [None] * len(knowns))

    def partial_eval(self, trace: PartialTrace, unknown: Sequence[bool], args: Sequence[Any], params: Params) -> Any:
        """Two calls: of what is known, and of the rest, which gets what it needs of the first."""
        parts = self.split(params, tuple(unknown))
        ins, outs = self.ends(params)
        unknowns, knowns = partition(unknown, args)
        unknown_ends, known_ends = partition(unknown, ins)
        later_ends, first_ends = partition(parts.out_unknown, outs)
        with set_trace(trace.known):
            between = self.residuals(params, parts.unknown.in_avals[: parts.num_residuals])
            results = self.bind(parts.known, knowns, params, known_ends, [*first_ends, *between])
        first, residuals = cut(results, len(first_ends))
        later: list[Any] = []
        if later_ends:
            with set_trace(trace.unknown):
                later = self.bind(parts.unknown, [*residuals, *unknowns], params, [*between, *unknown_ends], later_ends)
        return merged(parts.out_unknown, later, first)

    def dce(self, used: Sequence[bool], eqn: Eqn) -> Eqn | None:
        if not any(used) and not eqn.effects:
            return None
        program, needed = pruned(eqn.params[self.program], tuple(used))
        params = self.narrowed(eqn.params, needed, used) | {self.program: without_inputs(program, needed)}
        return eqn.replace(invars=kept(needed, eqn.invars), outvars=kept(used, eqn.outvars), params=params)


class Dissolving(CallLike):
    """Calls that stand for something: what is derived from their programs runs in their place."""

    def bind(self, program: ClosedJaxpr, args: Sequence[Any], params: Params, ins: Ends, outs: Ends) -> list[Any]:
        return run(program, args)
