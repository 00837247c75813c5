"""``polyax.extend.core``: programs as data, primitives of one's own, and traces, under JAX's names. Re-exports only."""

from typing import Any as _Any

from polyax import late as _late
from polyax.extend.core.programs import ClosedJaxpr as ClosedJaxpr
from polyax.extend.core.programs import DebugInfo as DebugInfo
from polyax.extend.core.programs import DropVar as DropVar
from polyax.extend.core.programs import Effect as Effect
from polyax.extend.core.programs import Effects as Effects
from polyax.extend.core.programs import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from polyax.extend.core.programs import Jaxpr as Jaxpr
from polyax.extend.core.programs import JaxprEqn as JaxprEqn
from polyax.extend.core.programs import JaxprTypeError as JaxprTypeError
from polyax.extend.core.programs import Literal as Literal
from polyax.extend.core.programs import Primitive as Primitive
from polyax.extend.core.programs import TraceTag as TraceTag
from polyax.extend.core.programs import Var as Var
from polyax.extend.core.programs import array_types as array_types
from polyax.extend.core.programs import check_jaxpr as check_jaxpr
from polyax.extend.core.programs import concrete_or_error as concrete_or_error
from polyax.extend.core.programs import find_top_trace as find_top_trace
from polyax.extend.core.programs import gensym as gensym
from polyax.extend.core.programs import get_opaque_trace_state as get_opaque_trace_state
from polyax.extend.core.programs import jaxpr_as_fun as jaxpr_as_fun
from polyax.extend.core.programs import jaxprs_in_params as jaxprs_in_params
from polyax.extend.core.programs import mapped_aval as mapped_aval
from polyax.extend.core.programs import new_jaxpr_eqn as new_jaxpr_eqn
from polyax.extend.core.programs import no_effects as no_effects
from polyax.extend.core.programs import nonempty_axis_env_DO_NOT_USE as nonempty_axis_env_DO_NOT_USE
from polyax.extend.core.programs import primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype
from polyax.extend.core.programs import safe_map as safe_map
from polyax.extend.core.programs import safe_zip as safe_zip
from polyax.extend.core.programs import set_current_trace as set_current_trace
from polyax.extend.core.programs import subjaxprs as subjaxprs
from polyax.extend.core.programs import take_current_trace as take_current_trace
from polyax.extend.core.programs import unmapped_aval as unmapped_aval
from polyax.extend.core.programs import unsafe_am_i_under_a_jit_DO_NOT_USE as unsafe_am_i_under_a_jit_DO_NOT_USE
from polyax.extend.core.programs import unsafe_am_i_under_a_vmap_DO_NOT_USE as unsafe_am_i_under_a_vmap_DO_NOT_USE
from polyax.extend.core.programs import unsafe_get_axis_names_DO_NOT_USE as unsafe_get_axis_names_DO_NOT_USE
from polyax.extend.core.programs import valid_jaxtype as valid_jaxtype


def __getattr__(name: str) -> _Any:
    return _late.load(__name__, {}, name)
