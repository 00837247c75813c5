"""``jax._src.numpy.util``: what promotes arguments, always to arrays; our own functions leave scalars as they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from polyax.numpy import promotion

Promote = Callable[..., list[Any]]


def _to_arrays(promote: Promote) -> Promote:
    @functools.wraps(promote)
    def promoted(*args: Any, **kwargs: Any) -> list[Any]:
        return [promotion.as_array(x) for x in promote(*args, **kwargs)]

    return promoted


promote_args = _to_arrays(promotion.promote_args)
promote_args_inexact = _to_arrays(promotion.promote_args_inexact)
promote_args_numeric = _to_arrays(promotion.promote_args_numeric)
promote_args_complex = functools.partial(promote_args, to=promotion.to_complex)
promote_dtypes = _to_arrays(promotion.promote_dtypes)
promote_dtypes_inexact = _to_arrays(promotion.promote_dtypes_inexact)
promote_dtypes_numeric = _to_arrays(promotion.promote_dtypes_numeric)
promote_dtypes_complex = functools.partial(promote_dtypes, to=promotion.to_complex)


def ensure_arraylike(fun_name: str, /, *args: Any) -> Any:
    """The arguments as arrays: a tuple, or the only one.

    Raises:
      TypeError: one of them is no array.
    """
    arrays = tuple(map(promotion.as_array, promotion.ensure_arrays(fun_name, *args)))
    return arrays[0] if len(arrays) == 1 else arrays
