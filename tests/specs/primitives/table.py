"""All cases, and the primitives that can't have one of their own."""

from __future__ import annotations

from polyax.ops.keys import ON_WORDS
from specs.primitives import (
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
from support.case import Case

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

WITHOUT_A_CASE = {
    "custom_lin": "stands in linear programs for a user's backward rule, until they are transposed",
} | {p.name: "is of keys, for which NumPy has no type: see tests/core/random/test_typed_keys.py" for p in ON_WORDS}
