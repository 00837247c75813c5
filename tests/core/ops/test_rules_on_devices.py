"""Derivatives and batches of primitives and constructs, compiled for devices in float32, against the reference backend.

``test_rules`` holds the reference backend itself against finite differences and loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax
from specs.primitives.table import CASES
from support.case import Case, as_list, stack

FIRST = [name for name in CASES if "," not in name]
"""Without the variants of each."""

FEW = [
    "elementwise: exp of complex",
    "elementwise: div of complex",
    "elementwise: complex abs",
    "matrices: rfft of 4",
    "indexing: scatter_add",
    "indexing: sort",
    "arrays: cumprod reverse=False",
    "control: cond",
    "control: while",
    "control: scan in scan",
    "custom: custom_vjp in a scan",
    "windows: reduce_window_max, valid",
    "collective: ppermute under vmap",
]


def results(case: Case, compiled: Callable[..., Any]) -> list[Any]:
    """The last of the case's derivatives, and a batch."""
    batch = compiled(polyax.vmap(case.fun))(*(stack(x, 0) for x in case.args))
    if not case.modes:
        return as_list(batch)
    derivative, args = case.derivative(case.modes[-1])
    return [*as_list(compiled(derivative)(*args)), *as_list(batch)]


def check(name: str) -> None:
    with polyax.enable_x64(True), polyax.default_device(polyax.devices("reference")[0]):
        want = [np.asarray(x) for x in results(CASES[name], lambda f: f)]
    for g, w in zip(results(CASES[name], polyax.jit), want, strict=True):
        scale = np.max(np.abs(w), initial=1.0)
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4 * scale)


@pytest.mark.parametrize("name", FIRST)
def test_on_the_cpu(name: str) -> None:
    with polyax.default_device("cpu"):
        check(name)


@pytest.mark.parametrize("name", FEW)
def test_on_each_platform(name: str, platform: str) -> None:
    check(name)
