"""Questions about data types, as ``jax.dtypes`` answers them. Re-exports only."""

from polyax.ir.dtypes import TypePromotionError as TypePromotionError
from polyax.ir.dtypes import bfloat16 as bfloat16
from polyax.ir.dtypes import extended as extended
from polyax.ir.dtypes import finfo as finfo
from polyax.ir.dtypes import float0 as float0
from polyax.ir.dtypes import iinfo as iinfo
from polyax.ir.dtypes import prng_key as prng_key
from polyax.numpy.dtype_answers import canonicalize_dtype as canonicalize_dtype
from polyax.numpy.dtype_answers import issubdtype as issubdtype
from polyax.numpy.dtype_answers import itemsize_bits as itemsize_bits
from polyax.numpy.dtype_answers import scalar_type_of as scalar_type_of
from polyax.numpy.types import result_type as result_type

__all__ = [
    "TypePromotionError", "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo", "issubdtype",
    "itemsize_bits", "prng_key", "result_type", "scalar_type_of",
]  # fmt: skip
