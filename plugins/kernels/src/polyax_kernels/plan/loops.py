"""Where the memory of loops and branches is: the bases of inner plans as places of the outer one, and what is copied.

A carry has one place if the body leaves it or changes it there, else two in turn, of which one is where the last carry
is wanted. Results are computed where the outer plan wants them. Walks nothing and knows no device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax_kernels.ir.graph import BranchNode, LoopNode
from polyax_kernels.plan.plan import BranchStep, CopyStep, Inner, LoopStep, Plan, Ref

Places = Sequence[Ref]


class Surroundings:
    """What a layout asks of the outer plan: scratch memory while the step runs, and places of constants."""

    def __init__(self, scratch: Callable[[int], Ref], constant: Callable[[np.ndarray], Ref]) -> None:
        self.scratch = scratch
        self.constant = constant

    def inner(self, plan: Plan, even: Places, odd: Places, wanted: Places, in_odd: Places) -> tuple[Inner, list[int]]:
        """``plan`` on inputs that are ``even`` or ``odd``, whose results are ``wanted`` somewhere; and which place of
        it each of these is."""
        first = len(plan.inputs)
        fresh = range(first, plan.arena)
        bases: list[tuple[Ref | None, Ref | None]] = [
            *zip(even, odd, strict=True),
            *[(None, None)] * (plan.bases - first),
        ]
        copied: list[tuple[int, tuple[Ref, Ref], int]] = []
        landing: list[int] = []
        for base, ends, aval in zip(plan.outputs, zip(wanted, in_odd, strict=True), plan.results, strict=True):
            landing.append(base)
            if base in fresh and bases[base][0] is None:
                bases[base] = ends
            elif bases[base] != ends and aval.nbytes:
                landing[-1] = len(bases) + len(copied)
                copied.append((base, ends, aval.nbytes))
        if plan.arena_bytes:
            bases[plan.arena] = _both(self.scratch(plan.arena_bytes))
        for n, value in enumerate(plan.literals):
            bases[plan.arena + 1 + n] = _both(self.constant(value))
        copies = [CopyStep(Ref(b), Ref(len(bases) + n), nbytes) for n, (b, _, nbytes) in enumerate(copied)]
        places = [*bases, *(ends for _, ends, _ in copied)]
        return Inner(plan, tuple([a for a, _ in places]), tuple([b for _, b in places]), tuple(copies)), landing

    def branches(self, node: BranchNode, plans: Sequence[Plan], args: Places, outs: Places) -> BranchStep:
        inners = tuple([self.inner(plan, args[1:], args[1:], outs, outs)[0] for plan in plans])
        return BranchStep(args[0], inners, node.primitive, plans[0].results, node.primitives)

    def loop(
        self,
        node: LoopNode,
        body: Plan,
        test: Plan | None,
        args: Places,
        outs: Places,
        avals: tuple[ShapedArray, ...],
    ) -> LoopStep:
        of_test, of_body = node.consts
        tested, consts = args[:of_test], args[of_test : of_test + of_body]
        init, stacks = args[node.carried.start : node.carried.stop], args[node.carried.stop :]
        ends, results = outs[: node.carries], outs[node.carries :]
        here, there = self.carries(body, of_body, init, ends, swapped=(node.length or 0) % 2 == 1)
        xs = _rows(stacks, body.inputs[of_body + node.carries :], node)
        ys = _rows(results, body.results[node.carries :], node)
        inner, landing = self.inner(body, [*consts, *here, *xs], [*consts, *there, *xs], [*there, *ys], [*here, *ys])
        asked = holds = None
        if test is not None:
            holds = self.scratch(1)
            asked, _ = self.inner(test, [*tested, *here], [*tested, *there], [holds], [holds])
        moving = [*range(of_body + node.carries, len(body.inputs)), *landing[node.carries :]]
        sizes = [a.nbytes for a in (*body.inputs[of_body + node.carries :], *body.results[node.carries :])]
        strides = [(place, -n if node.reverse else n) for place, n in zip(moving, sizes, strict=True) if n]
        carried = [a.nbytes for a in body.results[: node.carries]]
        last = _moves(here, ends, carried), _moves(there, ends, carried)
        before = _moves(init, here, carried)
        return LoopStep(
            inner, asked, holds, node.length, tuple(strides), before, last, node.primitive, avals, node.primitives
        )

    def carries(
        self, body: Plan, first: int, init: Places, ends: Places, *, swapped: bool
    ) -> tuple[list[Ref], list[Ref]]:
        """The places of the carries before and after the first turn. Those of carries with two places are among
        ``ends`` before it, or, if ``swapped``, after it."""
        before: list[Ref] = []
        after: list[Ref] = []
        for k, (start, end) in enumerate(zip(init, ends, strict=True)):
            stays = body.outputs[k] == first + k
            here = there = start if stays and first + k not in body.overwritten else end
            if not stays:
                there = self.scratch(body.results[k].nbytes)
                here, there = (there, here) if swapped else (here, there)
            before.append(here)
            after.append(there)
        return before, after


def _both(ref: Ref) -> tuple[Ref, Ref]:
    return ref, ref


def _rows(stacks: Places, rows: Sequence[ShapedArray], node: LoopNode) -> list[Ref]:
    """Where the rows are that the first turn works on."""
    first = max(0, (node.length or 0) - 1) if node.reverse else 0
    return [Ref(s.base, s.offset + first * row.nbytes) for s, row in zip(stacks, rows, strict=True)]


def _moves(sources: Places, targets: Places, sizes: Sequence[int]) -> tuple[CopyStep, ...]:
    """What brings the values of ``sources`` to ``targets``, where they aren't there."""
    triples = zip(sources, targets, sizes, strict=True)
    return tuple([CopyStep(source, target, n) for source, target, n in triples if n and source != target])
