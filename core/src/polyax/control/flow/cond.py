"""``cond[branches] index *operands``: one of several programs of one type, chosen by an index. All its rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyax.control.inner.lists import (
    Mask,
    as_arrays,
    check_dtypes,
    either,
    kept,
    merged,
    nonzeros,
    partition,
    with_zeros,
)
from polyax.control.inner.programs import derived, forwarded, pruned, reordered, run, share_consts, without_inputs
from polyax.control.inner.typechecks import expect, expect_types
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.dtypes import is_inexact
from polyax.ir.effects import Effects, io_effect, join_effects, ordered_io_effect
from polyax.ir.jaxpr import ClosedJaxpr, Eqn
from polyax.ir.primitive import Primitive, ambient, def_rule
from polyax.ops.basis import eq, select_n
from polyax.ops.compare import ne
from polyax.ops.convert import stop_gradient
from polyax.ops.zeros import zeros_like_aval
from polyax.trace.context import set_trace
from polyax.trace.symbolic import is_undef
from polyax.trace.varying import Vma, pvary, vma_of
from polyax.transforms.jvp import jvp_jaxpr
from polyax.transforms.linearize import PartialTrace, partial_eval_jaxpr
from polyax.transforms.memo import memoize_by_jaxpr
from polyax.transforms.transpose import transpose_jaxpr
from polyax.transforms.vmap import AxisData, batch_flat, batch_jaxpr

cond_p = Primitive("cond", higher_order=True)
"""Runs branch number ``index``, an int32 in range. Branches have no constants, and outputs of the same types."""

Branches = tuple[ClosedJaxpr, ...]


def bind_cond(branches: Sequence[ClosedJaxpr], index: Any, operands: Sequence[Any]) -> list[Any]:
    """Results of the chosen branch. What all branches pass through isn't one of the equation's: nothing copies it."""
    programs, consts = share_consts(branches)
    if ambient.varying and (vma := vma_of(index)):
        programs = [_varying(p, vma) for p in programs]
    args = [*consts, *operands]
    passed = [same.pop() if len(same := set(found)) == 1 else None for found in zip(*map(forwarded, programs))]
    if all(n is None for n in passed):
        return cond_p.bind(index, *args, branches=tuple(programs))
    chosen = tuple(k for k, n in enumerate(passed) if n is None)
    branches = tuple(reordered(p, tuple(range(len(args))), chosen) for p in programs)
    outs = cond_p.bind(index, *args, branches=branches)
    return merged([n is None for n in passed], outs, as_arrays([args[n] for n in passed if n is not None]))


@memoize_by_jaxpr
def _varying(branch: ClosedJaxpr, vma: Vma) -> ClosedJaxpr:
    """A branch that devices choose for themselves: what it reads and gives varies as the choice does. So derivatives
    sum over devices after it, not inside, where some aren't."""

    def fun(*args: Any) -> list[Any]:
        return [pvary(x, vma) for x in run(branch, args)]

    if all(vma <= a.vma for a in (*branch.in_avals, *branch.out_avals)):
        return branch
    return derived(branch, fun, [a.update(vma=a.vma | vma) for a in branch.in_avals])


@def_rule(cond_p, "abstract_eval")
def _abstract_eval(*_: ShapedArray, branches: Branches) -> tuple[list[ShapedArray], Effects]:
    return branches[0].out_avals, join_effects(b.effects for b in branches)


@def_rule(cond_p, "typecheck")
def _typecheck(index: ShapedArray, *operands: ShapedArray, branches: Any) -> None:
    programs = type(branches) is tuple and all(type(b) is ClosedJaxpr for b in branches)
    expect(programs, "cond", "branches", branches, "tuple of ClosedJaxpr")
    first, *others = branches
    for n, branch in enumerate(others, 1):
        expect_types(first.in_avals, branch.in_avals, f"cond branches 0 and {n} have mismatching input types:", "vs")
        expect_types(first.out_avals, branch.out_avals, f"cond branches 0 and {n} have mismatching output types:", "vs")
    expect(index.dtype == "int32", "cond", "index", index.str_short(True), "i32")
    expect_types(first.in_avals, operands, "cond branches take input types", "called with operands of type")


@def_rule(cond_p, "jvp")
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, branches: Branches) -> Any:
    """Of an output, the tangent is zero if it is in all branches."""
    nonzero = nonzeros(tangents[1:])
    force = either(*(jvp_jaxpr(b, nonzero)[1] for b in branches))
    both = tuple(jvp_jaxpr(b, nonzero, force)[0] for b in branches)
    outs = bind_cond(both, primals[0], [*primals[1:], *kept(nonzero, tangents[1:])])
    n = len(force)
    return outs[:n], with_zeros(force, outs[n:], [a.to_tangent_aval() for a in _outs(branches)])


def _outs(branches: Branches) -> list[ShapedArray]:
    return branches[0].out_avals


@def_rule(cond_p, "partial_eval")
def _partial_eval(trace: PartialTrace, unknown: Sequence[bool], args: Sequence[Any], params: dict[str, Any]) -> Any:
    """With a known index, what is known is computed by a ``cond`` that also gives the residuals for a later one."""
    if unknown[0]:
        return trace.unknown.process(cond_p, tuple(args), params)
    first, *rest = params["branches"]
    known_branches, later_branches, out_unknown = _split(first, tuple(rest), tuple(unknown[1:]))
    unknowns, knowns = partition(unknown[1:], args[1:])
    with set_trace(trace.known):
        outs = bind_cond(known_branches, args[0], knowns)
    n = out_unknown.count(False)
    later: list[Any] = []
    if any(out_unknown):
        with set_trace(trace.unknown):
            later = bind_cond(later_branches, args[0], [*outs[n:], *unknowns])
    return merged(out_unknown, later, outs[:n])


@memoize_by_jaxpr
def _split(first: ClosedJaxpr, rest: Branches, unknown: Mask) -> tuple[Branches, Branches, Mask]:
    """Branches that compute what is known, and those that compute the rest from common slots of residuals."""
    branches = (first, *rest)
    force = either(*(partial_eval_jaxpr(b, unknown).out_unknown for b in branches))
    cuts = [partial_eval_jaxpr(b, unknown, force) for b in branches]
    numbers = [c.known.out_avals[len(c.known.out_avals) - c.num_residuals :] for c in cuts]
    slots, places = share_slots(numbers)
    known = tuple(into_slots(c.known, slots, tuple(p)) for c, p in zip(cuts, places, strict=True))
    later = tuple(from_slots(c.unknown, slots, tuple(p)) for c, p in zip(cuts, places, strict=True))
    return known, later, force


def share_slots(needs: Sequence[Sequence[ShapedArray]]) -> tuple[list[ShapedArray], list[list[int]]]:
    """Slots in which residuals of each branch find room, and which slot each gets: types are shared by branches."""
    slots: list[ShapedArray] = []
    places: list[list[int]] = []
    for avals in needs:
        taken: list[int] = []
        for aval in avals:
            free = [n for n, s in enumerate(slots) if s == aval and n not in taken]
            if not free:
                free = [len(slots)]
                slots.append(aval)
            taken.append(free[0])
        places.append(taken)
    return slots, places


def into_slots(known: ClosedJaxpr, slots: Sequence[ShapedArray], places: tuple[int, ...]) -> ClosedJaxpr:
    """``known`` with its residuals in their slots; the other slots are zero."""
    n = len(known.out_avals) - len(places)

    def fun(*args: Any) -> list[Any]:
        outs = run(known, args)
        filled = dict(zip(places, outs[n:], strict=True))
        return outs[:n] + [filled[k] if k in filled else zeros_like_aval(aval) for k, aval in enumerate(slots)]

    return derived(known, fun, known.in_avals)


def from_slots(later: ClosedJaxpr, slots: Sequence[ShapedArray], places: tuple[int, ...]) -> ClosedJaxpr:
    """``later``, which takes all slots in place of its residuals."""

    def fun(*args: Any) -> list[Any]:
        return run(later, [*(args[k] for k in places), *args[len(slots) :]])

    return derived(later, fun, [*slots, *later.in_avals[len(places) :]])


@def_rule(cond_p, "transpose")
def _transpose(cts: Sequence[Any], index: Any, *args: Any, branches: Branches) -> list[Any]:
    linear = tuple(map(is_undef, args))
    nonzero = nonzeros(cts)
    force = either(*(transpose_jaxpr(b, linear, nonzero)[1] for b in branches))
    backward = tuple(transpose_jaxpr(b, linear, nonzero, force)[0] for b in branches)
    for program in backward[1:]:
        check_dtypes("cond: the cotangents of branches", backward[0].out_avals, program.out_avals)
    unknowns, knowns = partition(linear, args)
    outs = bind_cond(backward, index, [*knowns, *kept(nonzero, cts)])
    results = with_zeros(force, outs, [x.aval for x in unknowns])
    return [None, *merged(linear, results, [None] * len(knowns))]


@def_rule(cond_p, "batch")
def _batch(axis: AxisData, args: Sequence[Any], dims: Sequence[int | None], *, branches: Branches) -> Any:
    if dims[0] is not None:
        return _batch_index(axis, args, dims, branches)
    own = tuple(dims[1:])
    batched = either(*(tuple(d is not None for d in batch_jaxpr(b, axis, own)[1]) for b in branches))
    mapped = tuple(batch_jaxpr(b, axis, own, batched)[0] for b in branches)
    return bind_cond(mapped, args[0], args[1:]), [0 if b else None for b in batched]


def _batch_index(axis: AxisData, args: Sequence[Any], dims: Sequence[int | None], branches: Branches) -> Any:
    """Each example has a branch of its own: all are computed, and one result is selected."""
    if effects := [e for e in join_effects(b.effects for b in branches) if not (e.of_values or e.of_debugging)]:
        raise NotImplementedError(
            f"{'IO e' if {io_effect, ordered_io_effect}.issuperset(effects) else 'E'}ffect not supported in "
            f"vmap-of-cond. With a batched predicate all branches run, and these have effects: {set(effects)}"
        )

    guarded = [d is not None or aval_of(x).ndim == 0 for x, d in zip(args[1:], dims[1:], strict=True)]

    def select(index: Any, *operands: Any) -> list[Any]:
        which = ne(index, 0) if len(branches) == 2 else index
        outs = [run(b, _guarded(eq(index, n), operands, guarded)) for n, b in enumerate(branches)]
        return [select_n(which, *cases) for cases in zip(*outs, strict=True)]

    return batch_flat(select, axis, args, dims)


def _guarded(chosen: Any, operands: Sequence[Any], guarded: Sequence[bool]) -> list[Any]:
    """Operands of a branch, which it has no derivative with respect to where it isn't ``chosen``: zero times what it
    has there may be NaN. Arrays that all examples share stay shared, since each would need a copy of its own."""
    return [
        select_n(chosen, stop_gradient(x), x) if guard and is_inexact(aval_of(x).dtype) else x
        for x, guard in zip(operands, guarded, strict=True)
    ]


@def_rule(cond_p, "dce")
def _dce(used: Sequence[bool], eqn: Eqn) -> Eqn | None:
    if not any(used) and not eqn.effects:
        return None
    programs = [pruned(b, tuple(used)) for b in eqn.params["branches"]]
    needed = either(*(used_in for _, used_in in programs))
    branches = tuple(without_inputs(program, needed) for program, _ in programs)
    inputs = [eqn.invars[0], *kept(needed, eqn.invars[1:])]
    return eqn.replace(invars=inputs, outvars=kept(used, eqn.outvars), params={"branches": branches})


@def_rule(cond_p, "sub_jaxprs")
def _sub_jaxprs(*, branches: Branches) -> list[ClosedJaxpr]:
    return list(branches)
