"""Derivatives and batches of primitives and constructs, compiled in float32, against the reference backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax
from polyax_conformance.specs.case import Case, as_list, stack
from polyax_conformance.specs.primitives.sampled import sampled


def results(case: Case, compiled: Callable[..., Any]) -> list[Any]:
    """The last of the case's derivatives, and a batch."""
    batch = compiled(polyax.vmap(case.fun))(*(stack(x, 0) for x in case.args))
    if not case.modes:
        return as_list(batch)
    derivative, args = case.derivative(case.modes[-1])
    return [*as_list(compiled(derivative)(*args)), *as_list(batch)]


@pytest.mark.parametrize("case", sampled())
def test_derivatives_and_batches(case: Case, platform: str) -> None:
    with polyax.enable_x64(True), polyax.default_device(polyax.devices("reference")[0]):
        want = [np.asarray(x) for x in results(case, lambda f: f)]
    for g, w in zip(results(case, polyax.jit), want, strict=True):
        scale = np.max(np.abs(w), initial=1.0)
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4 * scale)
