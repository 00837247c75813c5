"""Cases as parameters of tests: some few for every platform, all for those that are graded."""

from __future__ import annotations

from typing import Any

import pytest

from polyax_conformance.specs.primitives.table import CASES

FEW = {
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
}


def sampled(*, variants: bool = False) -> list[Any]:
    """Parameters for ``pytest.mark.parametrize``; with ``variants`` those of each primitive as well.

    All but a few are marked ``full``: they are what a grade is about, and too many for every build.
    """
    names = [name for name in CASES if variants or "," not in name or name in FEW]
    return [pytest.param(CASES[n], id=n, marks=[] if n in FEW else [pytest.mark.full]) for n in names]
