"""``polyax.extend.core.primitives``: the primitives by name, to compare equations' with. Re-exports only.

Those of functions that are loaded when they are first asked for are so here too.
"""

from typing import Any

from polyax import late as _late
from polyax import lax as _lax
from polyax.control.calls.closed import call_p as call_p
from polyax.control.calls.closed import closed_call_p as closed_call_p
from polyax.control.calls.custom_jvp import custom_jvp_call_p as custom_jvp_call_p
from polyax.control.calls.custom_lin import custom_lin_p as custom_lin_p
from polyax.control.calls.custom_vjp import custom_vjp_call_p as custom_vjp_call_p
from polyax.control.calls.jit import pjit_p as jit_p  # noqa: F401
from polyax.control.calls.remat import remat_p as remat_p
from polyax.control.flow.cond import cond_p as cond_p
from polyax.control.flow.scan import scan_p as scan_p
from polyax.control.flow.while_loop import while_p as while_p
from polyax.control.folds.reduce import reduce_p as reduce_p
from polyax.control.folds.reduce_window import reduce_window_p as reduce_window_p
from polyax.control.solving import linear_solve_p as linear_solve_p
from polyax.ops.basis import add_p as add_jaxvals_p  # noqa: F401
from polyax.ops.basis import add_p as add_p
from polyax.ops.basis import broadcast_in_dim_p as broadcast_in_dim_p
from polyax.ops.basis import convert_element_type_p as convert_element_type_p
from polyax.ops.basis import div_p as div_p
from polyax.ops.basis import eq_p as eq_p
from polyax.ops.basis import iota_p as iota_p
from polyax.ops.basis import mul_p as mul_p
from polyax.ops.basis import neg_p as neg_p
from polyax.ops.basis import reduce_sum_p as reduce_sum_p
from polyax.ops.basis import reshape_p as reshape_p
from polyax.ops.basis import select_n_p as select_n_p
from polyax.ops.basis import squeeze_p as squeeze_p
from polyax.ops.basis import sub_p as sub_p
from polyax.ops.basis import transpose_p as transpose_p
from polyax.ops.bits import threefry2x32_p as threefry2x32_p
from polyax.ops.collective import axis_index_p as axis_index_p
from polyax.ops.collective import pmax_p as pmax_p
from polyax.ops.collective import pmin_p as pmin_p
from polyax.ops.collective import psum_p as psum_p
from polyax.ops.compare import and_p as and_p
from polyax.ops.compare import clamp_p as clamp_p
from polyax.ops.compare import clz_p as clz_p
from polyax.ops.compare import eq_to_p as eq_to_p
from polyax.ops.compare import ge_p as ge_p
from polyax.ops.compare import gt_p as gt_p
from polyax.ops.compare import le_p as le_p
from polyax.ops.compare import le_to_p as le_to_p
from polyax.ops.compare import lt_p as lt_p
from polyax.ops.compare import lt_to_p as lt_to_p
from polyax.ops.compare import ne_p as ne_p
from polyax.ops.compare import not_p as not_p
from polyax.ops.compare import or_p as or_p
from polyax.ops.compare import population_count_p as population_count_p
from polyax.ops.compare import shift_left_p as shift_left_p
from polyax.ops.compare import shift_right_arithmetic_p as shift_right_arithmetic_p
from polyax.ops.compare import shift_right_logical_p as shift_right_logical_p
from polyax.ops.compare import xor_p as xor_p
from polyax.ops.constraint import sharding_constraint_p as sharding_constraint_p
from polyax.ops.contract import dot_general_p as dot_general_p
from polyax.ops.conv import conv_general_dilated_p as conv_general_dilated_p
from polyax.ops.convert import bitcast_convert_type_p as bitcast_convert_type_p
from polyax.ops.convert import complex_p as complex_p
from polyax.ops.convert import conj_p as conj_p
from polyax.ops.convert import copy_p as copy_p
from polyax.ops.convert import imag_p as imag_p
from polyax.ops.convert import real_p as real_p
from polyax.ops.convert import reduce_precision_p as reduce_precision_p
from polyax.ops.convert import stop_gradient_p as stop_gradient_p
from polyax.ops.cumulative import cumlogsumexp_p as cumlogsumexp_p
from polyax.ops.cumulative import cummax_p as cummax_p
from polyax.ops.cumulative import cummin_p as cummin_p
from polyax.ops.cumulative import cumprod_p as cumprod_p
from polyax.ops.cumulative import cumsum_p as cumsum_p
from polyax.ops.eig import eig_p as eig_p
from polyax.ops.elementwise import abs_p as abs_p
from polyax.ops.elementwise import acos_p as acos_p
from polyax.ops.elementwise import acosh_p as acosh_p
from polyax.ops.elementwise import asin_p as asin_p
from polyax.ops.elementwise import asinh_p as asinh_p
from polyax.ops.elementwise import atan2_p as atan2_p
from polyax.ops.elementwise import atan_p as atan_p
from polyax.ops.elementwise import atanh_p as atanh_p
from polyax.ops.elementwise import cbrt_p as cbrt_p
from polyax.ops.elementwise import ceil_p as ceil_p
from polyax.ops.elementwise import cos_p as cos_p
from polyax.ops.elementwise import cosh_p as cosh_p
from polyax.ops.elementwise import exp2_p as exp2_p
from polyax.ops.elementwise import exp_p as exp_p
from polyax.ops.elementwise import expm1_p as expm1_p
from polyax.ops.elementwise import floor_p as floor_p
from polyax.ops.elementwise import integer_pow_p as integer_pow_p
from polyax.ops.elementwise import is_finite_p as is_finite_p
from polyax.ops.elementwise import log1p_p as log1p_p
from polyax.ops.elementwise import log_p as log_p
from polyax.ops.elementwise import logistic_p as logistic_p
from polyax.ops.elementwise import max_p as max_p
from polyax.ops.elementwise import min_p as min_p
from polyax.ops.elementwise import nextafter_p as nextafter_p
from polyax.ops.elementwise import pow_p as pow_p
from polyax.ops.elementwise import rem_p as rem_p
from polyax.ops.elementwise import round_p as round_p
from polyax.ops.elementwise import rsqrt_p as rsqrt_p
from polyax.ops.elementwise import sign_p as sign_p
from polyax.ops.elementwise import sin_p as sin_p
from polyax.ops.elementwise import sinh_p as sinh_p
from polyax.ops.elementwise import sqrt_p as sqrt_p
from polyax.ops.elementwise import square_p as square_p
from polyax.ops.elementwise import tan_p as tan_p
from polyax.ops.elementwise import tanh_p as tanh_p
from polyax.ops.fft import fft_p as fft_p
from polyax.ops.gather import gather_p as gather_p
from polyax.ops.index import dynamic_slice_p as dynamic_slice_p
from polyax.ops.index import dynamic_update_slice_p as dynamic_update_slice_p
from polyax.ops.joining import concatenate_p as concatenate_p
from polyax.ops.naming import name_p as name_p
from polyax.ops.parts import all_gather_p as all_gather_p
from polyax.ops.parts import all_to_all_p as all_to_all_p
from polyax.ops.permuting import ppermute_p as ppermute_p
from polyax.ops.qr import qr_p as qr_p
from polyax.ops.reduce import argmax_p as argmax_p
from polyax.ops.reduce import reduce_and_p as reduce_and_p
from polyax.ops.reduce import reduce_max_p as reduce_max_p
from polyax.ops.reduce import reduce_min_p as reduce_min_p
from polyax.ops.reduce import reduce_or_p as reduce_or_p
from polyax.ops.reduce import reduce_prod_p as reduce_prod_p
from polyax.ops.reduce import reduce_xor_p as reduce_xor_p
from polyax.ops.scatter import scatter_add_p as scatter_add_p
from polyax.ops.scatter import scatter_max_p as scatter_max_p
from polyax.ops.scatter import scatter_min_p as scatter_min_p
from polyax.ops.scatter import scatter_mul_p as scatter_mul_p
from polyax.ops.scatter import scatter_p as scatter_p
from polyax.ops.shape import rev_p as rev_p
from polyax.ops.slicing import pad_p as pad_p
from polyax.ops.slicing import slice_p as slice_p
from polyax.ops.solve import cholesky_p as cholesky_p
from polyax.ops.solve import lu_p as lu_p
from polyax.ops.solve import triangular_solve_p as triangular_solve_p
from polyax.ops.sort import sort_p as sort_p
from polyax.ops.sort import top_k_p as top_k_p
from polyax.ops.special import digamma_p as digamma_p
from polyax.ops.special import erf_inv_p as erf_inv_p
from polyax.ops.special import erf_p as erf_p
from polyax.ops.special import erfc_p as erfc_p
from polyax.ops.special import lgamma_p as lgamma_p
from polyax.ops.special import polygamma_p as polygamma_p
from polyax.ops.special import zeta_p as zeta_p
from polyax.ops.spectral import eigh_p as eigh_p
from polyax.ops.spectral import householder_product_p as householder_product_p
from polyax.ops.spectral import svd_p as svd_p
from polyax.ops.windows import reduce_window_max_p as reduce_window_max_p
from polyax.ops.windows import reduce_window_min_p as reduce_window_min_p
from polyax.ops.windows import reduce_window_sum_p as reduce_window_sum_p
from polyax.ops.windows import select_and_gather_add_p as select_and_gather_add_p
from polyax.ops.windows import select_and_scatter_add_p as select_and_scatter_add_p

_LATE = (
    _late.names_of("polyax.control.refs.primitives", "get_p", "swap_p")
    | _late.names_of("polyax.lax.updates", "tridiagonal_solve_p")
    | _late.names_of("polyax.ops.keys", "random_bits_p", "random_fold_in_p", "random_seed_p", "random_split_p")
    | _late.names_of("polyax.ops.memories", "device_put_p")
    | _late.names_of("polyax.ops.reflections", "hessenberg_p", "tridiagonal_p")
    | _late.names_of("polyax.ops.schur", "schur_p")
)


def __getattr__(name: str) -> Any:
    if name.endswith("_p") and name not in _LATE and hasattr(_lax, name):
        return getattr(_lax, name)
    return _late.load(__name__, _LATE, name)
