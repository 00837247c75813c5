"""What those need that run plans in a way of their own: backends with memory of another kind, or with native plans."""

from __future__ import annotations

from polyax_kernels.backend import KernelBackend
from polyax_kernels.plan.journal import Journal
from polyax_kernels.plan.plan import (
    BranchStep,
    CallStep,
    ControlStep,
    CopyStep,
    Inner,
    KernelStep,
    LoopStep,
    Plan,
    Ref,
    Step,
)
from polyax_kernels.run.control import control_runner
from polyax_kernels.run.executable import PlanExecutable, Runner
from polyax_kernels.run.memory import EXPORTED, FREE, SHARED, size_class

__all__ = [
    "EXPORTED", "FREE", "SHARED", "BranchStep", "CallStep", "ControlStep", "CopyStep", "Inner", "Journal",
    "KernelBackend", "KernelStep", "LoopStep", "Plan", "PlanExecutable", "Ref", "Runner", "Step", "control_runner",
    "size_class",
]  # fmt: skip
