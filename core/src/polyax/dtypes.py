"""Questions about data types, as ``jax.dtypes`` answers them. Re-exports only."""

from polyax.ir.dtypes import bfloat16 as bfloat16
from polyax.ir.dtypes import canonicalize as canonicalize_dtype
from polyax.ir.dtypes import extended as extended
from polyax.ir.dtypes import finfo as finfo
from polyax.ir.dtypes import float0 as float0
from polyax.ir.dtypes import iinfo as iinfo
from polyax.ir.dtypes import prng_key as prng_key
from polyax.numpy.types import issubdtype as issubdtype
from polyax.numpy.types import result_type as result_type

__all__ = [
    "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo", "issubdtype", "prng_key", "result_type",
]  # fmt: skip
