"""All cases, by the family of their primitives."""

from __future__ import annotations

from polyax_conformance.specs.case import Case
from polyax_conformance.specs.primitives import (
    arrays,
    collective,
    control,
    custom,
    elementwise,
    indexing,
    integers,
    matrices,
    special,
    windows,
)

PARTS = {
    "elementwise": elementwise.CASES,
    "special": special.CASES,
    "integers": integers.CASES,
    "arrays": arrays.CASES,
    "indexing": indexing.CASES,
    "matrices": matrices.CASES,
    "windows": windows.CASES,
    "control": control.CASES,
    "custom": custom.CASES,
    "collective": collective.CASES,
}
CASES: dict[str, Case] = {f"{part}: {name}": c for part, cases in PARTS.items() for name, c in cases.items()}
