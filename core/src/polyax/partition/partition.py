"""``partition``: a program on whole arrays becomes one on blocks of them, which each device of a mesh runs.

The axes of the mesh are bound around the program that results: collectives along them move what other devices have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from polyax.control.inner.programs import derived
from polyax.control.spmd import axes_bound
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.meshes.axes import Axes
from polyax.meshes.spec import Cuts
from polyax.ops.constraint import OpenCuts
from polyax.partition import reasons
from polyax.partition.emit import BlockEmitter
from polyax.partition.flatten import flat
from polyax.partition.nested import programs_of
from polyax.partition.propagate import Cutting, propagate
from polyax.partition.reshard import Move, block_aval


@dataclass(frozen=True)
class Partitioned:
    """A program on blocks, and how its arguments and results are cut."""

    program: ClosedJaxpr
    ins: tuple[Cuts, ...]
    outs: tuple[Cuts, ...]
    moves: tuple[Move, ...] = field(default=())
    """What devices exchange, with the reasons."""

    @property
    def nbytes(self) -> int:
        """What each device sends in all."""
        return sum(m.total for m in self.moves)


def partition(
    closed: ClosedJaxpr, axes: Axes, ins: Sequence[OpenCuts | None], outs: Sequence[OpenCuts | None]
) -> Partitioned:
    """``closed`` on blocks. ``ins`` and ``outs`` say how arguments and results are cut; None leaves one, or a
    dimension of it, to the partitioner."""
    with axes_bound(axes):
        program = flat(closed, axes)
        layout = Cutting(axes)
        for atom, cuts in zip((*program.jaxpr.invars, *program.jaxpr.outvars), (*ins, *outs), strict=True):
            layout.fix(atom, cuts)
        propagate(program, layout, programs_of)
        return _emitted(program, axes, layout, outs)


def _emitted(program: ClosedJaxpr, axes: Axes, layout: Cutting, outs: Sequence[OpenCuts | None]) -> Partitioned:
    in_cuts = tuple([layout[v] for v in program.jaxpr.invars])
    out_cuts = tuple([_filled(layout[v], c) for v, c in zip(program.jaxpr.outvars, outs, strict=True)])
    moves: list[Move] = []

    def on_blocks(*blocks: object) -> list[object]:
        emitter = BlockEmitter(axes, layout, moves, tuple(name for name, _ in axes))
        why = reasons.of_ends("the result of the program is wanted as")
        return emitter.run(program, list(zip(blocks, in_cuts, strict=True)), out_cuts, why)

    avals = [block_aval(v.aval, c, axes) for v, c in zip(program.jaxpr.invars, in_cuts, strict=True)]
    return Partitioned(derived(program, on_blocks, avals), in_cuts, out_cuts, tuple(moves))


def _filled(found: Cuts, given: OpenCuts | None) -> Cuts:
    """What is said of a result, and where that leaves something open, what was found."""
    return found if given is None else tuple([f if g is None else g for f, g in zip(found, given, strict=True)])
