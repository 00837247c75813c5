"""``scan[jaxpr length num_carry num_consts reverse unroll] *consts *carry *xs``. All its rules.

The body maps constants, carries and a slice of each ``x`` to new carries and a slice of each ``y``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polyax.control.inner.lists import (
    Mask,
    check_dtypes,
    cut,
    fixpoint,
    kept,
    merged,
    nonzeros,
    opposite,
    partition,
    with_zeros,
)
from polyax.control.inner.programs import derived, hoisted, pruned, reordered, run, with_ends, without_inputs
from polyax.control.inner.typechecks import expect, expect_count, expect_program, expect_types
from polyax.ir.aval import ShapedArray
from polyax.ir.effects import Effects
from polyax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.explicit import with_dim
from polyax.ops.zeros import add_tangents, instantiate, zeros_like_aval
from polyax.trace.context import set_trace
from polyax.trace.symbolic import is_undef
from polyax.transforms.jvp import jvp_jaxpr
from polyax.transforms.linearize import PartialTrace, partial_eval_jaxpr
from polyax.transforms.memo import memoize_by_jaxpr
from polyax.transforms.transpose import transpose_jaxpr
from polyax.transforms.vmap import AxisData, batch_jaxpr, match_axis

scan_p = Primitive("scan", higher_order=True)
"""Runs the body ``length`` times, from the last slice to the first if ``reverse``; gives the carries and all ``ys``."""


@def_rule(scan_p, "abstract_eval")
def _abstract_eval(
    *_: ShapedArray, jaxpr: ClosedJaxpr, length: int, num_carry: int, **__: Any
) -> tuple[list[ShapedArray], Effects]:
    carry, ys = cut(jaxpr.out_avals, num_carry)
    return [*carry, *(stacked(a, length) for a in ys)], jaxpr.effects


@def_rule(scan_p, "typecheck")
def _typecheck(
    *avals: ShapedArray, jaxpr: Any, length: Any, num_carry: Any, num_consts: Any, reverse: Any, unroll: Any
) -> None:
    expect(type(reverse) is bool, "scan", "reverse", reverse, "bool")
    expect_count("scan", "num_consts", num_consts)
    expect_count("scan", "num_carry", num_carry)
    expect_program("scan", "jaxpr", jaxpr)
    expect_count("scan", "unroll", unroll)
    expect(length >= 0, "scan", "length", length, "non-negative int")
    loop = ScanParts(jaxpr, num_consts, num_carry, length, reverse, unroll)
    (consts, init, xs), (in_consts, carry, items) = loop.cut(avals), loop.cut(jaxpr.in_avals)
    expect_types(carry, loop.cut_outs(jaxpr.out_avals)[0], "scan input carry input and output types mismatch:", "vs")
    expect_types(in_consts, consts, "scan jaxpr takes input const types", "called with consts of type")
    expect_types(carry, init, "scan jaxpr takes input carry types", "called with initial carry of type")
    takes = [stacked(a, length) for a in items]
    expect_types(takes, xs, "scan jaxpr takes slices of sequences of types", "called with sequences of type")


def stacked(aval: ShapedArray, length: int) -> ShapedArray:
    return with_dim(aval, 0, length)


@dataclass(frozen=True)
class ScanParts:
    """The parameters of a scan."""

    jaxpr: ClosedJaxpr
    num_consts: int
    num_carry: int
    length: int
    reverse: bool
    unroll: int

    @staticmethod
    def of(params: dict[str, Any]) -> ScanParts:
        return ScanParts(**params)

    def cut(self, xs: Sequence[Any]) -> list[list[Any]]:
        """Constants, carries and scanned values."""
        return cut(xs, self.num_consts, self.num_carry)

    def cut_outs(self, xs: Sequence[Any]) -> list[list[Any]]:
        return cut(xs, self.num_carry)

    def bind(
        self, jaxpr: ClosedJaxpr, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], reverse: bool = False
    ) -> list[Any]:
        """A loop with another body, as long as this one; ``reverse`` turns its direction."""
        jaxpr, values = hoisted(jaxpr)
        return scan_p.bind(
            *values,
            *consts,
            *carry,
            *xs,
            jaxpr=jaxpr,
            length=self.length,
            num_carry=len(carry),
            num_consts=len(values) + len(consts),
            reverse=self.reverse != reverse,
            unroll=self.unroll,
        )


@def_rule(scan_p, "jvp")
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    loop = ScanParts.of(params)
    consts, init, xs = loop.cut(primals)
    const_dots, init_dots, x_dots = loop.cut(tangents)
    fixed, scanned = nonzeros(const_dots), nonzeros(x_dots)
    free = (False,) * (len(loop.jaxpr.out_avals) - loop.num_carry)

    def grow(carry: Mask) -> Sequence[bool]:
        return jvp_jaxpr(loop.jaxpr, fixed + carry + scanned, carry + free)[1][: loop.num_carry]

    carried = fixpoint(grow, nonzeros(init_dots))
    body, nonzero_out = _jvp_body(loop.jaxpr, fixed, carried, scanned)
    dots = map(instantiate, kept(carried, init_dots))
    outs = loop.bind(body, [*consts, *kept(fixed, const_dots)], [*init, *dots], [*xs, *kept(scanned, x_dots)])
    carry, carry_dots, ys, y_dots = cut(outs, len(init), sum(carried), len(free))
    avals = [
        *loop.cut_outs(loop.jaxpr.out_avals)[0],
        *(stacked(a, loop.length) for a in loop.jaxpr.out_avals[len(init) :]),
    ]
    return [*carry, *ys], with_zeros(nonzero_out, [*carry_dots, *y_dots], [a.to_tangent_aval() for a in avals])


@memoize_by_jaxpr
def _jvp_body(body: ClosedJaxpr, fixed: Mask, carried: Mask, scanned: Mask) -> tuple[ClosedJaxpr, Mask]:
    """Tangents follow their primals in each of the three groups of inputs, and the two of outputs."""
    free = (False,) * (len(body.out_avals) - len(carried))
    both, nonzero_out = jvp_jaxpr(body, fixed + carried + scanned, carried + free)
    consts, carry, xs, const_dots, carry_dots, x_dots = cut(
        range(len(both.in_avals)), len(fixed), len(carried), len(scanned), sum(fixed), sum(carried)
    )
    new_carry, ys, new_dots, y_dots = cut(range(len(both.out_avals)), len(carried), len(free), sum(carried))
    order = (*consts, *const_dots, *carry, *carry_dots, *xs, *x_dots)
    return reordered(both, order, (*new_carry, *new_dots, *ys, *y_dots)), nonzero_out


# --- partial evaluation -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Split:
    """A body in three parts: what doesn't change from step to step, the known steps, and the unknown ones."""

    invariant: ClosedJaxpr
    """Known constants to the residuals that depend on nothing else."""
    known: ClosedJaxpr
    """Gives the known carries and ys, then the residuals that are stacked."""
    later: ClosedJaxpr
    """Takes invariant residuals, unknown constants, unknown carries, stacked residuals, unknown xs."""
    out_unknown: Mask
    forwarded: tuple[int | None, ...]
    """Per stacked residual: the number of the known ``x`` that it is, if it is one; then nothing is stacked."""


@def_rule(scan_p, "partial_eval")
def _partial_eval(trace: PartialTrace, unknown: Sequence[bool], args: Sequence[Any], params: dict[str, Any]) -> Any:
    loop = ScanParts.of(params)
    split, groups = _split_by(loop, unknown)
    with set_trace(trace.known):
        known, inputs = _run_known(loop, split, groups, args)
    later: list[Any] = []
    if any(split.out_unknown):
        with set_trace(trace.unknown):
            later = loop.bind(split.later, *inputs)
    return merged(split.out_unknown, later, known)


def _split_by(loop: ScanParts, unknown: Sequence[bool]) -> tuple[_Split, tuple[Mask, Mask, Mask]]:
    """The body cut in two, and which constants, carries and scanned values are unknown in it."""
    fixed, init, scanned = map(tuple, loop.cut(unknown))
    free = (False,) * (len(loop.jaxpr.out_avals) - loop.num_carry)

    def grow(carry: Mask) -> Sequence[bool]:
        return partial_eval_jaxpr(loop.jaxpr, fixed + carry + scanned, carry + free).out_unknown[: loop.num_carry]

    carried = fixpoint(grow, init)
    return _split(loop.jaxpr, fixed, carried, scanned), (fixed, carried, scanned)


def _run_known(
    loop: ScanParts, split: _Split, groups: tuple[Mask, Mask, Mask], args: Sequence[Any]
) -> tuple[list[Any], tuple[list[Any], list[Any], list[Any]]]:
    """Results of the known loop, and the constants, carries and scanned values of the later one.

    Residuals that don't change are computed once, before the loop, and those that are slices of inputs aren't copied;
    the others are stacked.
    """
    fixed, carried, scanned = groups
    consts, init, xs = loop.cut(args)
    unknown_consts, known_consts = partition(fixed, consts)
    unknown_xs, known_xs = partition(scanned, xs)
    unknown_init, known_init = partition(carried, init)
    invariant = run(split.invariant, known_consts)
    outs = loop.bind(split.known, known_consts, known_init, known_xs) if split.known.jaxpr.outvars else []
    num_known = split.out_unknown.count(False)
    copies = iter(outs[num_known:])
    stacks = [next(copies) if n is None else known_xs[n] for n in split.forwarded]
    return outs[:num_known], ([*invariant, *unknown_consts], unknown_init, [*stacks, *unknown_xs])


@memoize_by_jaxpr
def _split(body: ClosedJaxpr, fixed: Mask, carried: Mask, scanned: Mask) -> _Split:
    free = (False,) * (len(body.out_avals) - len(carried))
    parts = partial_eval_jaxpr(body, fixed + carried + scanned, carried + free)
    known, num_consts = parts.known.jaxpr, fixed.count(False)
    num_known = len(known.outvars) - parts.num_residuals
    results, residuals = cut(known.outvars, num_known)
    fixed_vars, _, x_vars = cut(known.invars, num_consts, carried.count(False))
    constant = constant_vars(known, [*known.constvars, *fixed_vars])
    invariant = tuple(isinstance(r, Literal) or r in constant for r in residuals)
    once, stacks = partition(invariant, residuals)
    forwarded = tuple(x_vars.index(r) if r in x_vars else None for r in stacks)
    copied = [r for r, n in zip(stacks, forwarded, strict=True) if n is None]
    return _Split(
        with_ends(pruned(with_ends(parts.known, known.invars, once), (True,) * len(once))[0], fixed_vars),
        pruned(with_ends(parts.known, known.invars, [*results, *copied]), (True,) * len(results + copied))[0],
        _later(parts.unknown, invariant, fixed.count(True), carried.count(True)),
        parts.out_unknown,
        forwarded,
    )


def constant_vars(jaxpr: Jaxpr, start: Sequence[Var]) -> set[Var]:
    """The variables that are computed, without effects, from ``start`` alone."""
    found = set(start)
    for eqn in jaxpr.eqns:
        if not eqn.effects and all(isinstance(a, Literal) or a in found for a in eqn.invars):
            found.update(eqn.outvars)
    return found


def _later(unknown: ClosedJaxpr, invariant: Mask, num_consts: int, num_carry: int) -> ClosedJaxpr:
    residuals, consts, carry, xs = cut(unknown.jaxpr.invars, len(invariant), num_consts, num_carry)
    once, stacks = partition(invariant, residuals)
    return with_ends(unknown, [*once, *consts, *carry, *stacks, *xs])


# --- transposition ------------------------------------------------------------------------------------------------


@def_rule(scan_p, "transpose")
def _transpose(cts: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
    """What doesn't depend on linear inputs is computed by a loop of its own, whose results the backward loop reads."""
    loop = ScanParts.of(params)
    linear = tuple(map(is_undef, args))
    if _all_linear(loop.jaxpr, *map(tuple, loop.cut(linear))):
        later, out_linear, (consts, init, xs) = loop.jaxpr, (True,) * len(cts), loop.cut(args)
    else:
        split, groups = _split_by(loop, linear)
        later, out_linear = split.later, split.out_unknown
        _, (consts, init, xs) = _run_known(loop, split, groups, args)
    carry_cts, y_cts = cut(kept(out_linear, cts), sum(out_linear[: loop.num_carry]))
    const_cts, init_cts, x_cts = _backward(loop, later, (consts, init, xs), carry_cts, y_cts)
    found = iter([*const_cts, *(ct for ct, x in zip(init_cts, init, strict=True) if is_undef(x)), *x_cts])
    return [next(found) if lin else None for lin in linear]


@memoize_by_jaxpr
def _all_linear(body: ClosedJaxpr, fixed: Mask, init: Mask, scanned: Mask) -> bool:
    """Whether each equation, carry and result depends on a linear input, so that nothing is to be computed before.

    That is so in what linearising gives; to cut it in two at each level would be quadratic work in nested loops.
    """

    def depend(carry: Mask) -> tuple[list[bool], bool]:
        linear = set(kept(fixed + carry + scanned, body.jaxpr.invars))
        some = True
        for eqn in body.jaxpr.eqns:
            if linear.isdisjoint(a for a in eqn.invars if not isinstance(a, Literal)):
                some = False
            else:
                linear.update(eqn.outvars)
        return [a in linear for a in body.jaxpr.outvars], some

    outs, some = depend(fixpoint(lambda carry: depend(carry)[0][: len(init)], init))
    return some and all(outs)


def _backward(
    loop: ScanParts,
    body: ClosedJaxpr,
    inputs: tuple[Sequence[Any], Sequence[Any], Sequence[Any]],
    carry_cts: Sequence[Any],
    y_cts: Sequence[Any],
) -> tuple[list[Any], list[Any], list[Any]]:
    """The loop that runs the other way: cotangents of carries are carried, as are the sums for constants; those of
    scanned values are stacked. Initial carries may be known: then they are zero."""
    consts, init, xs = inputs
    fixed, scanned, nonzero = tuple(map(is_undef, consts)), tuple(map(is_undef, xs)), nonzeros(y_cts)
    backward = _transposed_body(body, fixed, len(init), scanned, nonzero)
    sums = [zeros_like_aval(x.aval) for x in kept(fixed, consts)]
    outs = loop.bind(
        backward,
        kept(opposite(fixed), consts),
        [*sums, *map(instantiate, carry_cts)],
        [*kept(opposite(scanned), xs), *kept(nonzero, y_cts)],
        reverse=True,
    )
    const_cts, init_cts, x_cts = cut(outs, len(sums), len(init))
    return const_cts, init_cts, x_cts


@memoize_by_jaxpr
def _transposed_body(body: ClosedJaxpr, fixed: Mask, num_carry: int, scanned: Mask, nonzero: Mask) -> ClosedJaxpr:
    """``consts; sums, carry cotangents; residual xs, y cotangents`` to ``sums, carry cotangents; x cotangents``."""
    linear = fixed + (True,) * num_carry + scanned
    carried = (True,) * num_carry
    backward, _ = transpose_jaxpr(body, linear, carried + nonzero, (True,) * sum(linear))
    consts, _, xs = cut(body.in_avals, len(fixed), num_carry)
    sum_avals = kept(fixed, consts)
    residuals, residual_xs = kept(opposite(fixed), consts), kept(opposite(scanned), xs)
    carry_avals, y_avals = cut(body.out_avals, num_carry)

    def fun(*args: Any) -> list[Any]:
        given, sums, carry_cts, given_xs, y_cts = cut(args, len(residuals), len(sum_avals), num_carry, len(residual_xs))
        outs = run(backward, [*given, *given_xs, *carry_cts, *y_cts])
        const_cts, rest = cut(outs, len(sums))
        return [*map(add_tangents, sums, const_cts), *rest]

    made = derived(body, fun, [*residuals, *sum_avals, *carry_avals, *residual_xs, *kept(nonzero, y_avals)])
    check_dtypes("scan: the cotangents that a carry has", carry_avals, made.out_avals[len(sum_avals) :])
    return made


# --- batching, dead code ------------------------------------------------------------------------------------------


@def_rule(scan_p, "batch")
def _batch(axis: AxisData, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
    """Carries and constants are mapped at dimension 0, ``xs`` at 1, behind the one that is scanned."""
    loop = ScanParts.of(params)
    _, of_carry, of_xs = loop.cut(tuple(d is not None for d in dims))
    const_dims, _, _ = loop.cut(dims)
    free = (False,) * (len(loop.jaxpr.out_avals) - loop.num_carry)

    def inner_dims(carry: Sequence[bool]) -> tuple[int | None, ...]:
        return (*const_dims, *(0 if b else None for b in (*carry, *of_xs)))

    def batched_outs(carry: Mask) -> Mask:
        return tuple(d is not None for d in batch_jaxpr(loop.jaxpr, axis, inner_dims(carry), carry + free)[1])

    carried = fixpoint(lambda c: batched_outs(c)[: loop.num_carry], of_carry)
    batched = batched_outs(carried)
    body = batch_jaxpr(loop.jaxpr, axis, inner_dims(carried), batched)[0]
    _, carry_dims, x_dims = loop.cut(dims)
    consts, init, xs = loop.cut(args)
    init = [match_axis(axis, d, 0, x) if c else x for c, d, x in zip(carried, carry_dims, init, strict=True)]
    xs = [x if d is None else match_axis(axis, d, 1, x) for d, x in zip(x_dims, xs, strict=True)]
    outs = loop.bind(body, consts, init, xs)
    of_carry_out, of_ys = loop.cut_outs(batched)
    return outs, [*(0 if b else None for b in of_carry_out), *(1 if b else None for b in of_ys)]


@def_rule(scan_p, "dce")
def _dce(used: Sequence[bool], eqn: Eqn) -> Eqn | None:
    if not any(used) and not eqn.effects:
        return None
    loop = ScanParts.of(eqn.params)
    used_carry, used_ys = map(tuple, loop.cut_outs(used))

    def grow(carry: Mask) -> Mask:
        return tuple(loop.cut(pruned(loop.jaxpr, carry + used_ys)[1])[1])

    live = fixpoint(grow, used_carry)
    body, needed = pruned(loop.jaxpr, live + used_ys)
    consts, _, xs = loop.cut(needed)
    keep = (*consts, *live, *xs)
    inputs = kept(keep, eqn.invars)
    params = {
        **eqn.params,
        "jaxpr": without_inputs(body, keep),
        "num_consts": sum(consts),
        "num_carry": sum(live),
    }
    return eqn.replace(invars=inputs, outvars=kept(live + used_ys, eqn.outvars), params=params)


@def_rule(scan_p, "sub_jaxprs")
def _sub_jaxprs(*, jaxpr: ClosedJaxpr, **_: Any) -> list[ClosedJaxpr]:
    return [jaxpr]
