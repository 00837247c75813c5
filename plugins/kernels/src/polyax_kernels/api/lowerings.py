"""What lowerings are made of: kinds, expressions, and what the compiler's own rules share with others."""

from __future__ import annotations

from polyax.engines.host import LIBRARY
from polyax_kernels.ir.expr import COMPARISONS, INT, Axis, Expr, cast, const, load, op, postorder, where
from polyax_kernels.ir.limits import DEFAULT, NATIVE, REALS, Limits
from polyax_kernels.ir.products import Side, Stored, count, grouped, sides, stored, taken, why_not_blas, why_tiny
from polyax_kernels.ir.scalars import TABLE as SCALARS
from polyax_kernels.lower.fallback import on_host
from polyax_kernels.lower.libraries import factorizations, toolkits
from polyax_kernels.lower.libraries.factorizations import LETTERS
from polyax_kernels.lower.libraries.toolkits import why_missing
from polyax_kernels.lower.lowering import Call, CallContext, Kernels, Lowering, Out, Read, Replace, Target, Update

__all__ = [
    "COMPARISONS", "DEFAULT", "INT", "LETTERS", "LIBRARY", "NATIVE", "REALS", "SCALARS", "Axis", "Call", "CallContext",
    "Expr", "Kernels", "Limits", "Lowering", "Out", "Read", "Replace", "Side", "Stored", "Target", "Update", "cast",
    "const", "count", "factorizations", "grouped", "load", "on_host", "op", "postorder", "sides", "stored", "taken",
    "toolkits", "where", "why_missing", "why_not_blas", "why_tiny",
]  # fmt: skip
