"""``jax.core``'s names that are out of use, and that JAX still has there."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.extend.core import DebugInfo as DebugInfo
from polyax.extend.core import DropVar as DropVar
from polyax.extend.core import Effect as Effect
from polyax.extend.core import Effects as Effects
from polyax.extend.core import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from polyax.extend.core import JaxprTypeError as JaxprTypeError
from polyax.extend.core import check_jaxpr as check_jaxpr
from polyax.extend.core import concrete_or_error as concrete_or_error
from polyax.extend.core import find_top_trace as find_top_trace
from polyax.extend.core import gensym as gensym
from polyax.extend.core import get_opaque_trace_state as get_opaque_trace_state
from polyax.extend.core import jaxprs_in_params as jaxprs_in_params
from polyax.extend.core import new_jaxpr_eqn as new_jaxpr_eqn
from polyax.extend.core import no_effects as no_effects
from polyax.extend.core import nonempty_axis_env_DO_NOT_USE as nonempty_axis_env_DO_NOT_USE
from polyax.extend.core import primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype
from polyax.extend.core import unsafe_am_i_under_a_jit_DO_NOT_USE as unsafe_am_i_under_a_jit_DO_NOT_USE
from polyax.extend.core import unsafe_am_i_under_a_vmap_DO_NOT_USE as unsafe_am_i_under_a_vmap_DO_NOT_USE
from polyax.extend.core import unsafe_get_axis_names_DO_NOT_USE as unsafe_get_axis_names_DO_NOT_USE
from polyax.extend.core import valid_jaxtype as valid_jaxtype
from polyax.ir.aval import aval_of
from polyax.runtime.arrays.array import is_concrete as is_concrete

pytype_aval_mappings: dict[type, Any] = dict.fromkeys((np.ndarray, np.generic, bool, int, float, complex), aval_of)
"""Types of values and what gives their avals. What is registered here is not asked: values bring ``__jax_array__``."""


def is_constant_dim(d: Any) -> bool:
    """Whether a dimension is a number."""
    return isinstance(d, (int, np.integer))


def is_constant_shape(shape: Any) -> bool:
    """Whether all dimensions are numbers."""
    return all(map(is_constant_dim, shape))
