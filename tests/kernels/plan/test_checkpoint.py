"""What ``checkpoint`` computes again is computed again in plans too, instead of being shared with the forward pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels.numpy_backend import NumpyKernelBackend
from kernels.programs import planned, traced

import polyax
import polyax.numpy as jnp
from polyax_kernels.plan.plan import Step

W = np.eye(3, dtype=np.float32)


def layers(w: Any, x: Any) -> Any:
    return jnp.sum(jnp.tanh(w @ jnp.tanh(w @ x)))


def products(fun: Any) -> int:
    """The matrix products of a step of training."""
    plan = planned(NumpyKernelBackend(()), traced(polyax.value_and_grad(fun), (W, W)))
    return sum("dot_general" in str(step) for step in plan.steps if isinstance(step, Step))


@pytest.mark.parametrize(
    ("policy", "again"), [(None, 2), (polyax.checkpoint_policies.dots_saveable, 0)], ids=["nothing", "dots"]
)
def test_products_are_computed_again(policy: Any, again: int) -> None:
    assert products(polyax.checkpoint(layers, policy=policy)) == products(layers) + again
