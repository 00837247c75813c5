"""``partition``: a program on whole arrays becomes one on blocks of them, which each device of a mesh runs.

The axes of the mesh are bound around the program that results: collectives along them move what other devices have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from polyax.control.elaboration import elaborated, sealed
from polyax.control.inner.programs import derived, pruned
from polyax.control.inner.untyped import without_vma
from polyax.control.inspection import Look
from polyax.control.spmd import axes_bound
from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.meshes.axes import Axes
from polyax.meshes.spec import Cuts, OpenCuts, summands, sums_of
from polyax.partition import reasons
from polyax.partition.emit import BlockEmitter, Ledger
from polyax.partition.flatten import flat
from polyax.partition.nested import programs_of
from polyax.partition.propagate import Cutting, collect, propagate
from polyax.partition.reshard import Move, block_aval
from polyax.partition.rows import by_rows
from polyax.partition.together import together


@dataclass(frozen=True)
class Partitioned:
    """A program on blocks, and how its arguments and results are cut."""

    program: ClosedJaxpr
    ins: tuple[Cuts, ...]
    outs: tuple[Cuts, ...]
    moves: tuple[Move, ...] = field(default=())
    """What devices exchange, with the reasons."""
    looks: tuple[tuple[Look, Cuts], ...] = field(default=())
    """Who wants to know how values are cut, and how they are."""

    @property
    def nbytes(self) -> int:
        """What each device sends in all."""
        return sum(m.total for m in self.moves)


def partition(
    closed: ClosedJaxpr, axes: Axes, ins: Sequence[OpenCuts | None], outs: Sequence[OpenCuts | None]
) -> Partitioned:
    """``closed`` on blocks. ``ins`` and ``outs`` say how arguments and results are cut; None leaves one, or a
    dimension of it, to the partitioner."""
    program = elaborated(closed)
    if program is closed:
        return _partition(closed, axes, ins, outs)
    before, after = closed.in_avals, closed.out_avals
    found = _partition(program, axes, [*map(_of_words, ins, before)], [*map(_of_words, outs, after)])
    on_blocks = sealed(found.program, before, after)
    ins, outs = _of_elements(found.ins, before), _of_elements(found.outs, after)
    return replace(found, program=on_blocks, ins=ins, outs=outs)


def _of_elements(cuts: Sequence[Cuts], avals: Sequence[ShapedArray]) -> tuple[Cuts, ...]:
    return tuple([c[: a.ndim] for c, a in zip(cuts, avals, strict=True)])


def _of_words(cuts: OpenCuts | None, aval: ShapedArray) -> OpenCuts | None:
    """How the representation of an array is cut: words of an element stay together."""
    more = aval.physical.ndim - aval.ndim
    return (*(cuts or (None,) * aval.ndim), *((),) * more) if more else cuts


def _partition(
    closed: ClosedJaxpr, axes: Axes, ins: Sequence[OpenCuts | None], outs: Sequence[OpenCuts | None]
) -> Partitioned:
    with axes_bound(axes):
        used = (True,) * len(closed.out_avals)
        program, _ = pruned(by_rows(flat(without_vma(closed), axes)), used)  # what nobody reads must not move
        layout = Cutting(axes)
        for atom, cuts in zip((*program.jaxpr.invars, *program.jaxpr.outvars), (*ins, *outs), strict=True):
            layout.fix(atom, cuts)
        propagate(program, layout, programs_of)
        ends = _Ends(program, layout, outs)
        found, ledger = ends.emitted(layout)
        if ledger.moves:
            gathered, other = ends.emitted(_nothing_cut(program, axes))
            found = gathered if other.cost < ledger.cost else found
        return found


def _nothing_cut(program: ClosedJaxpr, axes: Axes) -> Cutting:
    """But what constraints say."""
    layout = Cutting(axes)
    collect(program, layout, programs_of)
    return layout


class _Ends:
    """How arguments and results of a program are cut, whatever becomes of what is between them."""

    def __init__(self, program: ClosedJaxpr, layout: Cutting, outs: Sequence[OpenCuts | None]) -> None:
        self.program = program
        self.axes: Axes = tuple(layout.sizes.items())
        self.ins = tuple([layout[v] for v in program.jaxpr.invars])
        self.outs = tuple([_filled(layout[v], c) for v, c in zip(program.jaxpr.outvars, outs, strict=True)])

    def emitted(self, layout: Cutting) -> tuple[Partitioned, Ledger]:
        """The program on blocks, whose arguments go first to where ``layout`` wants them."""
        invars, ledger = self.program.jaxpr.invars, Ledger()

        def on_blocks(*blocks: object) -> list[object]:
            emitter = BlockEmitter(self.axes, layout, ledger, tuple(layout.sizes))
            why = reasons.gathered
            wanted = [layout[v] if v in layout.used else c for v, c in zip(invars, self.ins, strict=True)]
            args = [
                (emitter.brought(x, v.aval, c, w, why), w)
                for x, v, c, w in zip(blocks, invars, self.ins, wanted, strict=True)
            ]
            return emitter.run(self.program, args, self.outs, reasons.of_ends("the result of the program is wanted as"))

        avals = [block_aval(v.aval, c, self.axes) for v, c in zip(invars, self.ins, strict=True)]
        program = together(derived(self.program, on_blocks, avals))
        return Partitioned(program, self.ins, self.outs, tuple(ledger.moves), tuple(ledger.looks)), ledger


def _filled(found: Cuts, given: OpenCuts | None) -> Cuts:
    """What is said of a result, and where that leaves something open, what was found."""
    if given is None:
        return found
    return summands([f if g is None else g for f, g in zip(found, given, strict=True)], sums_of(given))
