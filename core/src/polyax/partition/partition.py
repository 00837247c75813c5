"""``partition``: a program on whole arrays becomes one on blocks of them, which each device of a mesh runs.

The axes of the mesh are bound around the program that results: collectives along them move what other devices have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from polyax.control.inner.programs import derived, run
from polyax.control.spmd import axes_bound
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.meshes.axes import Axes
from polyax.meshes.spec import Cuts
from polyax.partition.reshard import Move, block_aval, reshard


@dataclass(frozen=True)
class Partitioned:
    """A program on blocks, and how its arguments and results are cut."""

    program: ClosedJaxpr
    ins: tuple[Cuts, ...]
    outs: tuple[Cuts, ...]
    moves: tuple[Move, ...] = field(default=())
    """What devices exchange, with the reasons."""


def partition(closed: ClosedJaxpr, axes: Axes, ins: Sequence[Cuts | None], outs: Sequence[Cuts | None]) -> Partitioned:
    """``closed`` on blocks. ``ins`` and ``outs`` say how arguments and results are cut; None leaves it open."""
    in_cuts = tuple(c or ((),) * a.ndim for c, a in zip(ins, closed.in_avals, strict=True))
    out_cuts = tuple(c or ((),) * a.ndim for c, a in zip(outs, closed.out_avals, strict=True))

    def on_blocks(*blocks: object) -> list[object]:
        wholes = [reshard(x, c, ((),) * len(c), axes) for x, c in zip(blocks, in_cuts, strict=True)]
        return [reshard(x, ((),) * len(c), c, axes) for x, c in zip(run(closed, wholes), out_cuts, strict=True)]

    blocks = [block_aval(a, c, axes) for a, c in zip(closed.in_avals, in_cuts, strict=True)]
    with axes_bound(axes):
        program = derived(closed, on_blocks, blocks)
    return Partitioned(program, in_cuts, out_cuts)
