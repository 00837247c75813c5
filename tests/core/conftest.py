"""Where tests of the core run that take no platform."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

import polyax

HERE = Path(__file__).parent
ON_THE_REFERENCE = [
    HERE / name
    for name in (
        "numpy", "scipy", "nn", "random", "experimental/sparse", "control/folds", "control/refs/test_agreement.py",
        "ops/test_factors.py", "ops/test_windows.py",
    )
]  # fmt: skip
"""Semantics of libraries and of rules don't depend on the platform, and the reference backend compiles nothing. The
suite of ``polyax-conformance``, ``acceptance`` and ``fuzz`` run the primitives that come of them on all platforms."""


@pytest.fixture(autouse=True)
def reference(request: pytest.FixtureRequest) -> Iterator[None]:
    chosen = any(request.path.is_relative_to(place) for place in ON_THE_REFERENCE)
    with polyax.default_device(polyax.devices("reference")[0]) if chosen else nullcontext():
        yield
