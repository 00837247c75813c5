"""Which schedule a kernel gets: a pure function of the kernel, so that results repeat and decisions can be shown."""

from __future__ import annotations

from polyax_kernels.emit.lanes import suits
from polyax_kernels.ir.expr import Axis, Expr, postorder
from polyax_kernels.ir.kernel import Kernel, Schedule, kernel_roots
from polyax_kernels.ir.limits import Limits
from polyax_kernels.ir.strides import stride
from polyax_kernels.passes.for_emission import flatten


def choose(kernel: Kernel, limits: Limits | None = None) -> Schedule:
    """Splits the first grid axis among threads; strided folds run in ``limits.lanes`` lanes along the last one."""
    if not kernel.grid or kernel.ordered:
        return Schedule(parallel=0)
    return Schedule(parallel=1, lanes=_lanes(kernel, (limits or Limits()).lanes))


def _lanes(kernel: Kernel, most: int) -> int:
    """Folds whose loads step through memory along the fold's last axis, but not along the grid's last, want lanes."""
    kernel = flatten(kernel)
    if not suits(kernel):
        return 1
    lane = kernel.grid[-1]
    folds = [x for x in postorder(*kernel_roots(kernel)) if x.kind == "fold"]
    extent = lane.extent if isinstance(lane.extent, int) else most
    return min(most, extent) if any(_walks(x, lane) for x in folds) else 1


def _walks(fold: Expr, lane: Axis) -> bool:
    """Whether some load is contiguous along ``lane``, and strided along the fold's innermost axis."""
    inner = fold.attr.axes[-1]
    loads = [x.args[0] for x in postorder(*fold.args) if x.kind == "load"]
    return any(stride(at, lane) == 1 and stride(at, inner) not in (0, 1) for at in loads)
