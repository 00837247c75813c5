"""What keeps two kernels from being one, whatever they compute: their kind, and the limits of the device."""

from __future__ import annotations

from polyax_kernels.ir.expr import points
from polyax_kernels.ir.graph import KernelNode, Node
from polyax_kernels.ir.limits import Limits


def why_not_together(*nodes: Node) -> str | None:
    """Why one of the nodes can't be part of a larger kernel."""
    for node in nodes:
        if not isinstance(node, KernelNode):
            return f"{node.name} is a {node.kind}"
        if not node.pure:
            return f"{node.name} stores elsewhere than at its own point"
        if node.alias is not None:
            return f"{node.name} only gives memory another shape"
    return None


def why_too_large(a: KernelNode, b: KernelNode, limits: Limits) -> str | None:
    """Why both of them are too much for one kernel."""
    if a.weight + b.weight > limits.kernel_nodes:
        return f"the kernel would exceed {limits.kernel_nodes} operations"
    if len({*a.reads, *b.reads, *a.outs, *b.outs}) > limits.operands:
        return f"the kernel would exceed {limits.operands} operands"
    return None


def why_over(node: KernelNode, limits: Limits) -> str | None:
    """Why a kernel made of two is too much: rows that stages share may be computed at more places than before."""
    if node.weight > limits.kernel_nodes:
        return f"the kernel would exceed {limits.kernel_nodes} operations"
    used = scratch_bytes(node)
    if used <= row_bytes(limits):
        return None
    return f"a row would need {used} bytes of scratch, more than {row_bytes(limits)}"


def row_bytes(limits: Limits) -> int:
    """The scratch that rows may have: of groups that share them, the partial results of folds need a part."""
    return limits.local_bytes if limits.group == 1 else limits.local_bytes // 4 * 3


def scratch_bytes(node: KernelNode) -> int:
    """The scratch that ``node`` needs for one point of its grid."""
    stores = [(points(stage.axes), s) for stage in node.stages for s in stage.stores if s.slot in node.locals]
    return sum(n * s.value.dtype.itemsize for n, s in stores)
