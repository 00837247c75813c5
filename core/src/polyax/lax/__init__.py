"""Primitives and the functions that apply them, under JAX's names (``jax.lax``). Re-exports only."""

from typing import Any as _Any

from polyax import late as _late
from polyax.api.shardings import with_sharding_constraint
from polyax.control.flow.associative import associative_scan
from polyax.control.flow.branching import cond, switch
from polyax.control.flow.cond import cond_p
from polyax.control.flow.looping import *
from polyax.control.flow.scan import scan_p
from polyax.control.flow.while_loop import while_p
from polyax.control.folds.reduce import reduce, reduce_p
from polyax.control.folds.reduce_window import reduce_window, reduce_window_p, reduce_window_shape_tuple
from polyax.control.folds.scatter_apply import scatter_apply
from polyax.control.platforms import platform_dependent
from polyax.control.solving import custom_linear_solve, custom_root, linear_solve_p
from polyax.lax import linalg as linalg
from polyax.ops.approximate import *
from polyax.ops.basis import *
from polyax.ops.bits import (
    threefry2x32_p,
)
from polyax.ops.collective import *
from polyax.ops.compare import *
from polyax.ops.constraint import sharding_constraint_p
from polyax.ops.contract import *
from polyax.ops.conv import conv_general_dilated, conv_general_dilated_p
from polyax.ops.conv_shapes import ConvDimensionNumbers, conv_dimension_numbers, padtype_to_pads
from polyax.ops.conv_variants import *
from polyax.ops.convert import *
from polyax.ops.cumulative import *
from polyax.ops.elementwise import *
from polyax.ops.exchange import *
from polyax.ops.fft import FftType, fft, fft_p
from polyax.ops.gather import *
from polyax.ops.index import *
from polyax.ops.joining import *
from polyax.ops.parts import all_gather_p, all_to_all_p, reduce_scatter_p
from polyax.ops.permuting import *
from polyax.ops.precision import *
from polyax.ops.reduce import *
from polyax.ops.scatter import *
from polyax.ops.shape import *
from polyax.ops.slicing import *
from polyax.ops.sort import *
from polyax.ops.special import *
from polyax.ops.varying import *
from polyax.ops.windows import *

from polyax.lax.extrema import cummax, cummin, reduce_max, reduce_min  # isort: skip
from polyax.lax.filling import full, full_like  # isort: skip
from polyax.lax.log_sums import cumlogsumexp  # isort: skip
from polyax.lax.strict import *  # isort: skip

_LATE = (
    _late.names_of("polyax.lax.special.incomplete", "igamma", "igamma_p", "igammac", "igammac_p", "igamma_grad_a")
    | _late.names_of("polyax.lax.special.incomplete", "igamma_grad_a_p", "random_gamma_grad", "random_gamma_grad_p")
    | _late.names_of("polyax.lax.special.beta", "betainc", "regularized_incomplete_beta_p")
    | _late.names_of("polyax.lax.special.bessel", "bessel_i0e", "bessel_i0e_p", "bessel_i1e", "bessel_i1e_p")
    | _late.names_of("polyax.lax.accuracy", "AccuracyMode", "Tolerance")
    | _late.names_of("polyax.lax.answers", "ConvGeneralDilatedDimensionNumbers", "PrecisionLike", "dtype")
    | _late.names_of("polyax.lax.answers", "index_take", "shape_as_value")
    | _late.names_of("polyax.lax.barriers", "dce_sink", "dce_sink_p", "optimization_barrier")
    | _late.names_of("polyax.lax.barriers", "optimization_barrier_p", "stage")
    | _late.names_of("polyax.lax.convolutions", "conv_general_dilated_local", "conv_general_permutations")
    | _late.names_of("polyax.lax.convolutions", "conv_general_shape_tuple", "conv_shape_tuple")
    | _late.names_of("polyax.lax.convolutions", "conv_transpose_shape_tuple")
    | _late.names_of("polyax.lax.generating", "RandomAlgorithm", "rng_bit_generator", "rng_bit_generator_p")
    | _late.names_of("polyax.lax.generating", "rng_uniform", "rng_uniform_p")
    | _late.names_of("polyax.lax.composites", "composite")
    | _late.names_of("polyax.lax.ragged_exchange", "ragged_all_to_all")
    | _late.names_of("polyax.lax.ragged", "RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general")
    | _late.names_of("polyax.lax.scaled", "scaled_dot")
)


def __getattr__(name: str) -> _Any:
    return _late.load(__name__, _LATE, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
