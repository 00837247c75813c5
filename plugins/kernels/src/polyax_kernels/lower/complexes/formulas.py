"""Arithmetic of complex numbers in terms of their parts, and the table of such formulas.

``FORMULAS[name](*operands, **params)`` gives the result, a tuple of its parts if it is complex. Complex operands are
tuples of parts as well. Sources are named where a formula isn't a definition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.ir.aval import aval_of
from polyax.ops.basis import add, convert, div, eq, mul, neg, select_n, stretched, sub
from polyax.ops.compare import bitwise_and, bitwise_or, lt, ne
from polyax.ops.elementwise import abs as absolute
from polyax.ops.elementwise import max as maximum
from polyax.ops.elementwise import min as minimum
from polyax.ops.elementwise import (
    sqrt,
)

Parts = tuple[Any, Any]
FORMULAS: dict[str, Callable[..., Any]] = {}


def formula(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: the function is the formula of the primitives ``names``."""

    def register(fun: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            FORMULAS[name] = fun
        return fun

    return register


def where(condition: Any, yes: Any, no: Any) -> Any:
    """Scalars go with everything, and dimensions of size 1 are stretched."""
    shape = np.broadcast_shapes(*map(np.shape, (condition, yes, no)))
    condition = stretched(condition, shape) if condition.shape else condition
    return select_n(condition, stretched(no, shape), stretched(yes, shape))


def number(x: Any, value: float) -> Any:
    """A scalar of the type of ``x``."""
    return aval_of(x).dtype.type(value)


def filled(x: Any, value: float) -> Any:
    """An array like ``x``."""
    return stretched(number(x, value), x.shape)


def scaled(x: Any, factor: float) -> Any:
    return mul(x, number(x, factor))


def shifted(x: Any, term: float) -> Any:
    return add(x, number(x, term))


def zero(x: Any) -> Any:
    return number(x, 0)


# --- parts ------------------------------------------------------------------------------------------------------------


@formula("real")
def _real(z: Parts) -> Any:
    return z[0]


@formula("imag")
def _imag(z: Parts) -> Any:
    return z[1]


@formula("complex")
def _complex(re: Any, im: Any) -> Parts:
    """Both have the shape of the result, also where one is stretched."""
    shape = np.broadcast_shapes(np.shape(re), np.shape(im))
    return stretched(re, shape), stretched(im, shape)


@formula("conj")
def _conj(z: Any, **_: Any) -> Parts:
    """Of real numbers as well, which become complex."""
    return (z[0], neg(z[1])) if isinstance(z, tuple) else (z, filled(z, 0))


@formula("convert_element_type")
def _convert(z: Any, *, new_dtype: Any, **_: Any) -> Any:
    target = np.dtype(new_dtype)
    if target.kind == "b":
        return bitwise_or(ne(z[0], zero(z[0])), ne(z[1], zero(z[1])))
    if target.kind != "c":
        return convert(z[0], target)
    of_parts = np.dtype(f"float{target.itemsize * 4}")
    if isinstance(z, tuple):
        return convert(z[0], of_parts), convert(z[1], of_parts)
    re = convert(z, of_parts)
    return re, filled(re, 0)


@formula("eq")
def _eq(x: Parts, y: Parts) -> Any:
    return bitwise_and(eq(x[0], y[0]), eq(x[1], y[1]))


@formula("ne")
def _ne(x: Parts, y: Parts) -> Any:
    return bitwise_or(ne(x[0], y[0]), ne(x[1], y[1]))


# --- arithmetic -------------------------------------------------------------------------------------------------------


@formula("mul")
def times(x: Parts, y: Parts) -> Parts:
    (a, b), (c, d) = x, y
    return sub(mul(a, c), mul(b, d)), add(mul(a, d), mul(b, c))


@formula("square")
def squared(z: Parts) -> Parts:
    a, b = z
    product = mul(a, b)
    return mul(sub(a, b), add(a, b)), add(product, product)


@formula("div")
def divided(x: Parts, y: Parts) -> Parts:
    """R. L. Smith, "Algorithm 116: Complex division", 1962: no intermediate result is larger than need be."""
    (a, b), (c, d) = x, y
    steep = lt(absolute(c), absolute(d))
    large, small = where(steep, d, c), where(steep, c, d)
    ratio = div(small, large)
    scale = div(number(large, 1), add(large, mul(small, ratio)))
    re = add(where(steep, mul(a, ratio), a), where(steep, b, mul(b, ratio)))
    im = sub(where(steep, mul(b, ratio), b), where(steep, a, mul(a, ratio)))
    nothing = bitwise_and(eq(c, zero(c)), eq(d, zero(d)))  # the quotient is that of the parts by it
    return where(nothing, div(a, c), mul(re, scale)), where(nothing, div(b, c), mul(im, scale))


@formula("integer_pow")
def to_integer(z: Parts, *, y: int) -> Parts:
    one = filled(z[0], 1), filled(z[0], 0)
    result, power, n = None, z, abs(y)
    while n:
        if n % 2:
            result = power if result is None else times(result, power)
        n //= 2
        power = squared(power) if n else power
    return (divided(one, result) if y < 0 else result) if result is not None else one


@formula("abs")
def modulus(z: Parts) -> Any:
    """Without overflow; infinite if a part is, even beside a NaN."""
    large, ratio = ratio_of(z)
    infinite = bitwise_or(*[eq(absolute(x), number(x, np.inf)) for x in z])
    return where(infinite, number(large, np.inf), mul(large, sqrt(shifted(mul(ratio, ratio), 1))))


def ratio_of(z: Parts) -> Parts:
    """The larger of the absolute values of the parts, and by it the smaller one."""
    a, b = map(absolute, z)
    large, small = maximum(a, b), minimum(a, b)
    flat = eq(large, zero(large))
    return large, where(flat, zero(large), div(small, where(flat, number(large, 1), large)))


@formula("sign")
def direction(z: Parts) -> Parts:
    size = modulus(z)
    flat = eq(size, zero(size))
    size = where(flat, number(size, 1), size)
    return div(z[0], size), div(z[1], size)
