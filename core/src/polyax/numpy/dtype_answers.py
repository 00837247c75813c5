"""Further questions about dtypes, as ``jax.dtypes`` answers them."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of, is_array_like
from polyax.numpy import types

__all__ = ["canonicalize_dtype", "issubdtype", "itemsize_bits", "result_type", "scalar_type_of"]


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype that arrays get: 64-bit types become 32-bit ones unless 64-bit types are enabled.

    Raises:
      ValueError: it is an extended one, such as that of random keys, and these aren't allowed.

    >>> canonicalize_dtype("float64")
    dtype('float32')
    """
    if not allow_extended_dtype and dtypes.is_extended(dtype):
        raise ValueError(f"canonicalize_dtype called on extended dtype {dtype} with allow_extended_dtype=False")
    return dtypes.canonicalize(dtype)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype that arrays, scalars and dtypes combine to; with ``return_weak_type_flag``, whether it is weak as well.

    Raises:
      ValueError: there are no arguments.

    >>> result_type(np.int8(1), 2.0, return_weak_type_flag=True)
    (dtype('float32'), True)
    """
    found = types.promoted(*args)
    return found if return_weak_type_flag else found[0]


def issubdtype(a: Any, b: Any) -> bool:
    """Whether the dtype ``a`` is below ``b`` in NumPy's hierarchy of types, or that of extended types."""
    return types.issubdtype(a, b)


def itemsize_bits(dtype: Any) -> int:
    """How many bits an element has; those of narrow types count as few as they need.

    Raises:
      ValueError: ``dtype`` is None, or ``float0``.

    >>> import polyax.numpy as jnp
    >>> itemsize_bits("float32"), itemsize_bits(jnp.int4)
    (32, 4)
    """
    if dtype is None:
        raise ValueError("dtype cannot be None.")
    found = dtypes.as_dtype(dtype)
    if found == dtypes.float0:
        raise ValueError(f"unexpected input: {dtype=}")
    if found in dtypes.NARROW:
        digits = found.name.removeprefix("float").removeprefix("uint").removeprefix("int").split("_")[0]
        return int(digits)
    return 8 * found.itemsize


def _named(x: Any) -> Any:
    """The dtype that ``x`` names; raises TypeError if it names none."""
    try:
        return dtypes.as_dtype(x)
    except TypeError:
        raise TypeError(f"Invalid scalar value {x}") from None


def scalar_type_of(x: Any) -> type:
    """The type of Python's numbers that a value, or a type, is of: bool, int, float or complex.

    Raises:
      TypeError: it is no number, and no array of numbers.

    >>> scalar_type_of(np.float16(1))
    <class 'float'>
    """
    dtype = aval_of(x).dtype if is_array_like(x) else _named(x)
    if dtype in dtypes.BOOL:
        return bool
    if dtype in dtypes.COMPLEX:
        return complex
    if dtypes.issubdtype(dtype, np.integer):
        return int
    if dtypes.is_inexact(dtype):
        return float
    raise TypeError(f"Invalid scalar value {x}")
