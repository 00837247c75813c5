"""What fusers are made of: graphs, edits of them, the reasons why an edit can't be made, and what things cost."""

from __future__ import annotations

from polyax.runtime.contract.backend import Decision
from polyax_kernels.ir.edits import (
    Inliner,
    at_point,
    merge,
    shortest_loop,
    stack,
    why_not_inline,
    why_not_merge,
    with_loops_of,
)
from polyax_kernels.ir.edits.bounds import why_not_together, why_over, why_too_large
from polyax_kernels.ir.expr import Axis, Expr, folds_of, free_axes, op, points, postorder
from polyax_kernels.ir.graph import (
    CallNode,
    ControlNode,
    Fuser,
    Graph,
    KernelNode,
    Node,
    Place,
    axes_of,
    eliminate_dead,
    own_point,
    rebuilt,
)
from polyax_kernels.ir.kernel import Kernel, Stage, store_roots
from polyax_kernels.ir.limits import Limits
from polyax_kernels.ir.origin import equations
from polyax_kernels.ir.work import bytes_moved, operations
from polyax_kernels.passes.check import check_graph

__all__ = [
    "Axis", "CallNode", "ControlNode", "Decision", "Expr", "Fuser", "Graph", "Inliner", "Kernel", "KernelNode",
    "Limits", "Node", "Place", "Stage", "at_point", "axes_of", "bytes_moved", "check_graph", "eliminate_dead",
    "equations", "folds_of", "free_axes", "merge", "op", "operations", "own_point", "points", "postorder", "rebuilt",
    "shortest_loop", "stack", "store_roots", "why_not_inline", "why_not_merge", "why_not_together", "why_over",
    "why_too_large", "with_loops_of",
]  # fmt: skip
