"""Questions about data types, as ``jax.dtypes`` answers them. Re-exports only."""

from typing import Any as _Any

from ml_dtypes import bfloat16 as bfloat16

from polyax import late as _late
from polyax.ir.dtypes import TypePromotionError as TypePromotionError
from polyax.ir.dtypes import extended as extended
from polyax.ir.dtypes import finfo as finfo
from polyax.ir.dtypes import float0 as float0
from polyax.ir.dtypes import iinfo as iinfo
from polyax.ir.dtypes import prng_key as prng_key

_LATE = _late.names_of(
    "polyax.numpy.dtype_answers",
    "canonicalize_dtype",
    "issubdtype",
    "itemsize_bits",
    "result_type",
    "scalar_type_of",
)


def __getattr__(name: str) -> _Any:
    return _late.load(__name__, _LATE, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
