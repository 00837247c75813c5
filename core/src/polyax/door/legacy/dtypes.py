"""``jax._src.dtypes``: questions about dtypes that aren't public."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.dtypes import ExtendedDType as ExtendedDType
from polyax.ir.dtypes import finfo as finfo

DType = np.dtype
"""A dtype of NumPy; those of ml_dtypes are among them."""


def supports_inf(dtype: Any) -> bool:
    """Whether numbers of a dtype can be infinite."""
    with np.errstate(all="ignore"):
        return bool(np.isinf(np.asarray(np.inf).astype(dtypes.as_dtype(dtype)).astype(np.float32)))


def to_complex_dtype(dtype: Any) -> np.dtype[Any]:
    """The complex dtype whose parts hold numbers of ``dtype``."""
    found = dtypes.as_dtype(dtype)
    return found if dtypes.is_complex(found) else np.result_type(found, np.complex64)
