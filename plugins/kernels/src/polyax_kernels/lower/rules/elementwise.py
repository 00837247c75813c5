"""Elementwise primitives: each applies scalar operations to the elements that meet at a point."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax_kernels.ir.decompositions import integer_pow, reduce_precision
from polyax_kernels.ir.expr import Expr, bitcast, cast, const, op, where
from polyax_kernels.ir.scalars import TABLE
from polyax_kernels.lower.lowering import Kernels, Out, Read
from polyax_kernels.lower.rules.table import RULES, kernels

ONLY_SCALAR = {"floordiv", "mod", "select", "trunc", "round_even"}
"""Scalar operations that no primitive is called after; all others are named as their primitives are."""


def _scalar(name: str) -> Callable[..., Expr]:
    """The rule of a primitive that the scalar table has under ``name``."""

    def build(out: Out, *args: Read, **_: Any) -> Expr:
        return op(name, *[x.at(out.i) for x in args])

    return build


RULES.update({name: Kernels(_scalar(name)) for name in TABLE.keys() - ONLY_SCALAR})


@kernels("pow")
def _pow(out: Out, x: Read, y: Read) -> Expr:
    """Whole exponents may have a dtype of their own."""
    return op("pow", x.at(out.i), cast(y.at(out.i), x.dtype))


@kernels("copy", "stop_gradient", "name")
def _copy(out: Out, x: Read, **_: Any) -> Expr:
    return x.at(out.i)


@kernels("convert_element_type")
def _convert(out: Out, x: Read, *, new_dtype: Any, **_: Any) -> Expr:
    return cast(x.at(out.i), new_dtype)


def _other_width(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    if avals[0].dtype.itemsize != np.dtype(params["new_dtype"]).itemsize or avals[0].dtype.kind == "b":
        return "bits are only read as a type of the same width"
    return None


@kernels("bitcast_convert_type", why_not=_other_width)
def _bitcast(out: Out, x: Read, *, new_dtype: Any) -> Expr:
    return bitcast(x.at(out.i), new_dtype)


@kernels("round")
def _round(out: Out, x: Read, *, rounding_method: Any) -> Expr:
    """0: halves go away from zero; 1: to even."""
    return op("round" if int(getattr(rounding_method, "value", rounding_method)) == 0 else "round_even", x.at(out.i))


@kernels("clamp")
def _clamp(out: Out, low: Read, x: Read, high: Read) -> Expr:
    return op("clamp", low.at(out.i), x.at(out.i), high.at(out.i))


@kernels("select_n")
def _select_n(out: Out, which: Read, *cases: Read) -> Expr:
    """``cases[which]``, the last one for all larger values."""
    chosen = which.at(out.i)
    result = cases[-1].at(out.i)
    for n in range(len(cases) - 2, -1, -1):
        is_n = op("not", chosen) if which.dtype.kind == "b" else op("le", chosen, const(n, which.dtype))
        result = where(is_n, cases[n].at(out.i), result)
    return result


@kernels("integer_pow")
def _integer_pow(out: Out, x: Read, *, y: int) -> Expr:
    return integer_pow(x.at(out.i), y)


@kernels("reduce_precision")
def _reduce_precision(out: Out, x: Read, *, exponent_bits: int, mantissa_bits: int) -> Expr:
    return reduce_precision(x.at(out.i), exponent_bits, mantissa_bits)
