"""What programs become with some of the fusers: the steps of the plan, and the reasons of refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from kernels.numpy_backend import NumpyKernelBackend
from kernels.programs import planned, traced

from polyax_kernels.plan.plan import Step


def steps(names: Sequence[str], fun: Callable[..., Any], *args: np.ndarray) -> list[Step]:
    return planned(NumpyKernelBackend(names), traced(fun, args)).steps


def reasons(names: Sequence[str], fun: Callable[..., Any], *args: np.ndarray) -> list[str]:
    """Of the refusals of the last of the fusers ``names``."""
    plan = planned(NumpyKernelBackend(names), traced(fun, args))
    return [d.reason for d in plan.decisions if d.reason and d.fuser == names[-1]]
