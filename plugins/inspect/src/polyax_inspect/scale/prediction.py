"""Time per step, bytes per link and efficiency of a program on a mesh, none of whose devices has to be there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polyax
from polyax.backend import ClosedJaxpr, KernelReport
from polyax.meshes.spec import Cuts
from polyax.partition.partition import partition
from polyax.runtime.running.compiling import build
from polyax.sharding import AbstractMesh, NamedSharding
from polyax.tree_util import tree_leaves
from polyax_inspect.scale.exchanges import KINDS, Exchange, exchanges, seconds, sent
from polyax_inspect.scale.machine import Machine

Setup = Callable[[AbstractMesh], tuple[Callable[..., Any], Sequence[Any]]]
"""From a mesh to a function and its arguments, ``ShapeDtypeStruct`` with shardings on that mesh."""


@dataclass(frozen=True)
class Prediction:
    """What one step takes on a mesh."""

    mesh: AbstractMesh
    compute: float
    """Seconds that each device computes."""
    communication: float
    """Seconds that it exchanges; nothing is assumed to happen at the same time."""
    sent: dict[Any, float]
    """Bytes that each device sends along each axis."""
    alone: float
    """Seconds that one device would take for the whole of it."""

    @property
    def step(self) -> float:
        return self.compute + self.communication

    @property
    def efficiency(self) -> float:
        """What one device would take, shared among all, over what the step takes."""
        return self.alone / self.mesh.size / self.step if self.step else 1.0


def predict(setup: Setup, mesh: AbstractMesh, machine: Machine) -> Prediction:
    """Divides the program among the devices of ``mesh`` and adds up what each part takes.

    >>> import numpy as np
    >>> from polyax import P, NamedSharding, ShapeDtypeStruct
    >>> def rows(mesh):
    ...     x = ShapeDtypeStruct((4096, 64), np.float32, sharding=NamedSharding(mesh, P("x")))
    ...     return lambda x: x * 2, [x]
    >>> p = predict(rows, AbstractMesh((256,), ("x",)), Machine(flops=1e12, bandwidth=1e11))
    >>> p.sent, round(p.efficiency, 2)
    ({'x': 0.0}, 1.0)
    """
    fun, args = setup(mesh)
    closed = polyax.make_jaxpr(fun)(*args)
    divided = partition(closed, mesh.axes, [_cuts(x) for x in tree_leaves(list(args))], [None] * len(closed.out_avals))
    found, sizes = list(exchanges(divided.program)), mesh.shape
    return Prediction(
        mesh,
        _compute(divided.program, machine) * (mesh.size if machine.shared else 1),
        sum(seconds(e, machine, sizes) for e in found),
        _added(found, machine, sizes),
        _compute(closed, machine),
    )


def _added(found: Iterable[Exchange], machine: Machine, sizes: Any) -> dict[Any, float]:
    total = dict.fromkeys(sizes, 0.0)
    for e in found:
        for axis, nbytes in sent(e, machine, sizes).items():
            total[axis] += nbytes
    return total


def _cuts(x: Any) -> Cuts | None:
    sharding = getattr(x, "sharding", None)
    if isinstance(sharding, NamedSharding) and not sharding.mesh.empty:
        return sharding.cuts(len(x.shape))
    return None


def _compute(closed: ClosedJaxpr, machine: Machine) -> float:
    """The time of the kernels that the program is compiled to for the device that is here."""
    device = polyax.local_devices()[0]
    report = build(closed, device, "scale", (), stages=False).report()
    return sum(_kernel(k, machine) for k in report.kernels)


def _kernel(k: KernelReport, machine: Machine) -> float:
    """Either computing or memory takes longest; collectives count elsewhere. A loop's steps are each launched."""
    if set(k.primitives) & set(KINDS):
        return 0.0
    launches = (k.turns or 1) * sum(len(p.kernels) for p in k.programs) or 1
    return max(k.flops / machine.flops, k.bytes_moved / machine.bandwidth) + launches * machine.launch
