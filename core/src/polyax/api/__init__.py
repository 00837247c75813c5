"""The transformations as users call them: argument handling around the interpreters."""

from polyax.api.ad import grad, value_and_grad
from polyax.api.ahead import ShapeDtypeStruct, eval_shape, make_jaxpr
from polyax.api.explain import draw, explain
from polyax.api.jacobian import hessian, jacfwd, jacobian, jacrev
from polyax.api.jit import jit
from polyax.api.jvp import jvp, linearize
from polyax.api.pmap import pmap
from polyax.api.resharding import reshard, typeof
from polyax.api.transpose import linear_transpose
from polyax.api.vjp import fwd_and_bwd, vjp
from polyax.api.vmap import vmap

__all__ = [
    "ShapeDtypeStruct", "draw", "eval_shape", "explain", "fwd_and_bwd", "grad", "hessian", "jacfwd", "jacobian",
    "jacrev", "jit", "jvp", "linear_transpose", "linearize", "make_jaxpr", "pmap", "reshard", "typeof",
    "value_and_grad", "vjp", "vmap",
]  # fmt: skip
