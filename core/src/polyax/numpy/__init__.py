"""NumPy's functions on arrays and tracers, as ``jax.numpy`` has them. Re-exports only."""

import functools as _functools
from typing import Any as _Any

from polyax import late as _late
from polyax.ir import dtypes as _dtypes
from polyax.numpy import fft as fft
from polyax.numpy import methods as _methods
from polyax.numpy.arrays import *
from polyax.numpy.broadcast import *
from polyax.numpy.creation import *
from polyax.numpy.diagonals import *
from polyax.numpy.differences import *
from polyax.numpy.editing import *
from polyax.numpy.einsum import *
from polyax.numpy.equality import *
from polyax.numpy.extras import *
from polyax.numpy.grids import *
from polyax.numpy.histograms import *
from polyax.numpy.indexers import *
from polyax.numpy.indexing import *
from polyax.numpy.joining import *
from polyax.numpy.logic import *
from polyax.numpy.padding import *
from polyax.numpy.products import *
from polyax.numpy.ranges import *
from polyax.numpy.reductions import *
from polyax.numpy.selection import *
from polyax.numpy.sets import *
from polyax.numpy.shapes import *
from polyax.numpy.statistics import *
from polyax.numpy.triangles import *
from polyax.numpy.types import *
from polyax.numpy.types import bool_ as bool
from polyax.numpy.ufuncs import *
from polyax.numpy.ufuncs import absolute as abs
from polyax.numpy.universal import *
from polyax.runtime.arrays.array import Array as ndarray
from polyax.runtime.contract.tracebacks import guarded as _of_users
from polyax.runtime.running.repeated import repeating as _repeating

_guarded = _functools.partial(_of_users, boundary=_repeating)

_LATE = (
    _late.submodules("polyax.numpy", "linalg")
    | _late.names_of("polyax.numpy.covariance", "corrcoef", "cov")
    | _late.names_of("polyax.numpy.exchange", "from_dlpack")
    | _late.names_of("polyax.numpy.fitting", "polydiv", "polyfit", "roots")
    | _late.names_of("polyax.numpy.inserting", "delete", "insert")
    | _late.names_of("polyax.numpy.integers", "gcd", "lcm", "packbits", "unpackbits")
    | _late.names_of("polyax.numpy.joint_histograms", "histogram2d", "histogramdd")
    | _late.names_of(
        "polyax.numpy.nanfunctions",
        "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd",
        "nansum", "nanvar",
    )
    | _late.names_of("polyax.numpy.narrow_types", *_dtypes.NARROW_FLOATS, *_dtypes.NARROW_INTS)
    | _late.names_of(
        "polyax.numpy.polynomials",
        "convolve", "correlate", "poly", "polyadd", "polyder", "polyint", "polymul", "polysub", "polyval", "vander",
    )
    | _late.names_of("polyax.numpy.positions", "ravel_multi_index", "unravel_index")
    | _late.names_of("polyax.numpy.standard", "__array_api_version__", "__array_namespace_info__")
    | _late.names_of("polyax.numpy.windows", "bartlett", "blackman", "hamming", "hanning", "i0", "kaiser")
)  # fmt: skip


def __getattr__(name: str) -> _Any:
    return _late.load(__name__, _LATE, name, guarded=_guarded)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
