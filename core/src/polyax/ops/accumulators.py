"""The dtype that products are summed in, where the caller asks for one: which are refused, which are converted to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ops.basis import convert

DType = np.dtype[Any]


def accumulated(
    multiply: Callable[..., Any], dtype: DType, preferred: Any, refuse: Callable[[DType, DType], None]
) -> Any:
    """What ``multiply`` makes of operands of ``dtype``, as an array of ``preferred``; of ``dtype`` if that is None."""
    if preferred is None:
        return multiply(preferred_element_type=None)
    preferred = dtypes.canonicalize(preferred)
    refuse(dtype, preferred)
    kept = _kept_in(dtype, preferred)
    summed = multiply(preferred_element_type=kept)
    return summed if kept == preferred else convert(summed, preferred)


def _kept_in(dtype: DType, preferred: DType) -> DType:
    """Sums lose nothing on their way: they are kept in the wider dtype, and never in one of a smaller kind."""
    if _kind(preferred) < _kind(dtype) or _bits(preferred) < _bits(dtype):
        return dtype
    if dtypes.is_complex(preferred) and not dtypes.is_complex(dtype):
        return dtypes.real_part(preferred)
    return preferred


def refuse_narrower(dtype: DType, preferred: DType) -> None:
    """Sums of floats may be rounded to any dtype; others would wrap around.

    Raises:
      TypeError: ``preferred`` has fewer bits, and ``dtype`` is no float.
    """
    if not dtypes.is_float(dtype) and _bits(preferred) < _bits(dtype):
        raise _narrower(dtype, preferred)


def _narrower(dtype: DType, preferred: DType) -> TypeError:
    return TypeError(
        f"`preferred_element_type` must not be narrower than the original type; got {preferred.name} for {dtype.name}: "
        "convert the result instead."
    )


_PAIRS = [
    (dtypes.is_integer, dtypes.is_integer),
    (dtypes.is_integer, dtypes.is_float),
    (dtypes.is_float, dtypes.is_float),
    (dtypes.is_complex, dtypes.is_complex),
]


def refuse_other_kinds(dtype: DType, preferred: DType) -> None:
    """Convolutions answer in the kind of their operands, or integers in floats, and never in fewer bits.

    Raises:
      TypeError: ``preferred`` is of another kind, narrower, or unsigned where ``dtype`` is signed.
    """
    if dtype in (preferred, np.bool_):
        return
    if not any(is_own(dtype) and is_preferred(preferred) for is_own, is_preferred in _PAIRS):
        raise TypeError(
            "Input type is incompatible with `preferred_element_type`. The compatible combinations of (input_type, "
            "preferred_element_type) are (integral, integral), (integral, floating), (floating, floating), "
            f"(complex, complex); got {dtype.name} and {preferred.name}: convert the result instead."
        )
    if dtypes.is_signed(dtype) and dtypes.is_unsigned(preferred):
        raise TypeError(
            "`preferred_element_type` must have the same signedness as the original type; got "
            f"{preferred.name} for {dtype.name}: convert the result instead."
        )
    if _bits(preferred) < _bits(dtype):
        raise _narrower(dtype, preferred)


def _kind(dtype: DType) -> int:
    """Booleans are summed as the integers they stand for."""
    return next((n for n, of in enumerate((dtypes.is_integer, dtypes.is_float, dtypes.is_complex)) if of(dtype)), 0)


def _bits(dtype: DType) -> int:
    """Of the parts of complex numbers, as counts of bits are compared."""
    return 1 if dtype == np.bool_ else dtypes.bits_of(dtypes.real_part(dtype))
