"""``RULES``: the NumPy implementation of every first-order primitive, gathered from the families."""

from __future__ import annotations

from polyax.reference import (
    rules_array,
    rules_callback,
    rules_collective,
    rules_control,
    rules_conv,
    rules_elementwise,
    rules_index,
    rules_linalg,
    rules_order,
    rules_reflections,
    rules_schur,
    rules_special,
    rules_windows,
)
from polyax.reference.table import RULES

__all__ = [
    "RULES", "rules_array", "rules_callback", "rules_collective", "rules_control", "rules_conv", "rules_elementwise",
    "rules_index", "rules_linalg", "rules_order", "rules_reflections", "rules_schur", "rules_special", "rules_windows",
]  # fmt: skip
