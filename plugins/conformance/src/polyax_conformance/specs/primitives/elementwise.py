"""Elementwise functions of floats and complex numbers, and of the special ones."""

from __future__ import annotations

import numpy as np

from polyax import lax
from polyax_conformance.specs.case import Case, case, values
from polyax_conformance.specs.primitives.data import ABOVE_ONE, SIGNED, X, Y, Z

UNARY = {
    "neg": SIGNED, "sin": SIGNED, "cos": SIGNED, "tan": SIGNED, "asin": SIGNED, "acos": SIGNED, "atan": SIGNED,
    "sinh": SIGNED, "cosh": SIGNED, "tanh": SIGNED, "asinh": SIGNED, "acosh": ABOVE_ONE, "atanh": SIGNED,
    "exp": SIGNED, "exp2": SIGNED, "expm1": SIGNED, "log": X, "log1p": SIGNED, "logistic": SIGNED, "sqrt": X,
    "rsqrt": X, "cbrt": X, "square": SIGNED, "abs": SIGNED, "reciprocal": X, "sign": SIGNED, "floor": SIGNED,
    "ceil": SIGNED, "round": SIGNED, "copy": SIGNED, "erf": SIGNED, "erfc": SIGNED, "erf_inv": SIGNED,
    "lgamma": ABOVE_ONE, "digamma": ABOVE_ONE,
}  # fmt: skip

COMPLEX = ("sin", "cos", "tan", "tanh", "sinh", "cosh", "exp", "log", "sqrt", "log1p", "expm1", "square", "logistic")

BINARY = ("add", "sub", "mul", "div", "max", "min", "pow", "atan2", "rem")

CASES: dict[str, Case] = {
    **{name: case(getattr(lax, name), x) for name, x in UNARY.items()},
    **{f"{name} of complex": case(getattr(lax, name), Z) for name in COMPLEX},
    **{name: case(getattr(lax, name), X, Y) for name in BINARY},
    **{f"{name} of scalar and array": case(getattr(lax, name), np.float64(0.7), Y) for name in BINARY},
    **{f"{name} of column and array": case(getattr(lax, name), X[:, :1], Y) for name in BINARY},
    **{f"{name} of complex": case(getattr(lax, name), Z, Z[::-1] + 2) for name in ("mul", "div", "pow")},
    "integer_pow": case(lambda x: lax.integer_pow(x, 3), SIGNED),
    "integer_pow, negative": case(lambda x: lax.integer_pow(x, -2), X),
    "pow to an integer": case(lambda x: lax.pow(x, np.full((3, 4), 2, np.int32)), SIGNED),
    "reduce_precision": case(lambda x: lax.reduce_precision(x, 11, 52), X),
    "convert": case(lambda x: lax.convert_element_type(lax.convert_element_type(x, "complex128"), "float64"), X),
    "complex parts": case(lambda z: lax.mul(lax.real(z), lax.imag(lax.conj(lax.mul(z, z)))), Z),
    "complex from parts": case(lambda x, y: lax.complex(x, lax.mul(x, y)), X, Y),
    "complex abs": case(lambda z: lax.abs(lax.exp(z)), Z),
    "conj of real": case(lambda x: lax.real(lax.conj(x)), X),
    "select": case(lambda x, y: lax.select(lax.gt(x, y), lax.mul(x, x), y), X, Y),
    "select by scalar": case(lambda x, y: lax.select(lax.reduce_max(x, (0, 1)) > 0.7, x, y), X, Y),
    "select_n of three": case(
        lambda x, y: lax.select_n(np.arange(12, dtype=np.int32).reshape(3, 4) % 3, x, y, x), X, Y
    ),
    "clamp": case(lax.clamp, np.float64(0.5), X, np.float64(0.8)),
    "clamp by arrays": case(lax.clamp, SIGNED, X, Y),
    "polygamma": case(lambda x: lax.polygamma(lax.full_like(x, 2), x), ABOVE_ONE),
    "zeta": case(lambda q: lax.zeta(lax.full_like(q, 3), q), ABOVE_ONE),
    "stop_gradient": values(lax.stop_gradient, X),
    "nextafter": values(lax.nextafter, X, Y),
    "is_finite": values(lambda x: lax.is_finite(lax.log(lax.sub(x, lax.reduce_min(x, (0, 1))))), X),
    **{name: values(getattr(lax, name), X, Y) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{name: values(getattr(lax, f"{name}_p").bind1, X, Y) for name in ("eq_to", "lt_to", "le_to")},
}
