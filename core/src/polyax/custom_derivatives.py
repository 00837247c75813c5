"""``polyax.custom_derivatives``: functions with derivative rules of their own. Re-exports only."""

from polyax.control.calls.closures import closure_convert as closure_convert
from polyax.control.calls.closures import custom_gradient as custom_gradient
from polyax.control.calls.custom import SymbolicZero as SymbolicZero
from polyax.control.calls.custom import zero_from_primal as zero_from_primal
from polyax.control.calls.custom_jvp import custom_jvp as custom_jvp
from polyax.control.calls.custom_jvp import custom_jvp_call_p as custom_jvp_call_p
from polyax.control.calls.custom_vjp import CustomVJPPrimal as CustomVJPPrimal
from polyax.control.calls.custom_vjp import custom_vjp as custom_vjp
from polyax.control.calls.custom_vjp import custom_vjp_call_p as custom_vjp_call_p
from polyax.control.calls.custom_vjp import custom_vjp_primal_tree_values as custom_vjp_primal_tree_values
from polyax.control.calls.linear_call import linear_call as linear_call
from polyax.control.calls.rematopt import remat_opt_p as remat_opt_p
