"""``lax`` for the library's own calls: a Python scalar takes the dtype of the arrays beside it.

All else is what ``lax`` has.
"""

from typing import Any as _Any

from polyax import lax as _lax
from polyax.lax import *
from polyax.lax.extrema import max, min
from polyax.ops.basis import add, convert_element_type, div, eq, mul, select_n, sub
from polyax.ops.compare import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    clamp,
    ge,
    gt,
    le,
    lt,
    mulhi,
    ne,
    select,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)
from polyax.ops.convert import complex
from polyax.ops.elementwise import atan2, nextafter, pow, rem
from polyax.ops.slicing import pad


def __getattr__(name: str) -> _Any:
    return getattr(_lax, name)
