"""What ``lax`` asks of operands that must have one dtype: that they have it before the call, as in JAX.

The functions below them give a Python scalar the dtype of the arrays beside it, which is how the library itself
calls them (``lenient``). For users a Python scalar has the dtype that an array made of it has.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from polyax.ir.aval import aval_of, unwrap
from polyax.ir.dtypes import PYTHON_SCALARS, as_dtype, is_complex, is_integer
from polyax.lax import extrema
from polyax.ops import basis, compare, convert, elementwise, slicing
from polyax.ops.define import INEXACT, check_dtype, check_same_dtype
from polyax.ops.slicing import check_padding
from polyax.runtime.contract.tracebacks import warn_user

__all__ = [
    "add", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "clamp", "complex", "convert_element_type", "div",
    "eq", "ge", "gt", "le", "lt", "max", "min", "mul", "mulhi", "ne", "nextafter", "pad", "pow", "rem", "select",
    "select_n", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sub",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")

_OTHERS = frozenset({"out_dtype", "which"})
"""Parameters of these functions whose dtype is another matter."""


def strict(fun: Callable[P, R], first: int = 0) -> Callable[P, R]:
    """``fun``, which refuses Python scalars of another dtype than what is beside them; arrays it refuses anyway.

    ``first`` is the position of the first operand that has to agree.
    """
    name = fun.__name__.removeprefix("bitwise_").removesuffix("_n")

    @functools.wraps(fun)
    def apply(*args: P.args, **kwargs: P.kwargs) -> R:
        operands = [*args[first:], *(x for name, x in kwargs.items() if name not in _OTHERS)]
        if not PYTHON_SCALARS.keys().isdisjoint(map(type, operands)):
            check_same_dtype(name, [aval_of(x) for x in operands])
        return fun(*args, **kwargs)

    return apply


add = strict(basis.add)
sub = strict(basis.sub)
mul = strict(basis.mul)
div = strict(basis.div)
rem = strict(elementwise.rem)
max = strict(extrema.max)
min = strict(extrema.min)
atan2 = strict(elementwise.atan2)
nextafter = strict(elementwise.nextafter)
complex = strict(convert.complex)

eq = strict(basis.eq)
ne = strict(compare.ne)
ge = strict(compare.ge)
gt = strict(compare.gt)
le = strict(compare.le)
lt = strict(compare.lt)

bitwise_and = strict(compare.bitwise_and)
bitwise_or = strict(compare.bitwise_or)
bitwise_xor = strict(compare.bitwise_xor)
shift_left = strict(compare.shift_left)
shift_right_arithmetic = strict(compare.shift_right_arithmetic)
shift_right_logical = strict(compare.shift_right_logical)
mulhi = strict(compare.mulhi)

clamp = strict(compare.clamp)
select_n = strict(basis.select_n, 1)


@functools.wraps(slicing.pad)
def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    check_padding(aval_of(operand), aval_of(padding_value))
    return slicing.pad(operand, padding_value, padding_config)


@functools.wraps(compare.select)
def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    return select_n(pred, on_false, on_true)


@functools.wraps(elementwise.pow)
def pow(x: Any, y: Any) -> Any:
    base, exponent = aval_of(x), aval_of(y)
    check_dtype("pow", base, INEXACT, 0)
    if not is_integer(exponent.dtype):
        check_same_dtype("pow", [base, exponent])
    return elementwise.pow(x, y)


@functools.wraps(basis.convert_element_type)
def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    operand = unwrap(operand)
    if new_dtype is not None and is_complex(aval_of(operand).dtype) and not is_complex(as_dtype(new_dtype)):
        warn_user("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning)
        operand = operand if type(operand) in PYTHON_SCALARS else convert.real(operand)
    return basis.convert_element_type(operand, new_dtype)
