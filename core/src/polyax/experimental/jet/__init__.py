"""``polyax.experimental.jet``: derivatives of any order along curves. Re-exports only."""

from typing import Any as _Any

from polyax import late as _late
from polyax.experimental.jet.calls import jet as jet
from polyax.experimental.jet.calls import jet2 as jet2
from polyax.experimental.jet.calls import jet_fun as jet_fun
from polyax.experimental.jet.calls import jet_subtrace as jet_subtrace
from polyax.experimental.jet.calls import traceable as traceable
from polyax.experimental.jet.calls import unzip2 as unzip2
from polyax.experimental.jet.rules import call_param_updaters as call_param_updaters
from polyax.experimental.jet.rules import def_comp as def_comp
from polyax.experimental.jet.rules import def_deriv as def_deriv
from polyax.experimental.jet.rules import deflinear as deflinear
from polyax.experimental.jet.rules import defzero as defzero
from polyax.experimental.jet.rules import deriv_prop as deriv_prop
from polyax.experimental.jet.rules import linear_prop as linear_prop
from polyax.experimental.jet.rules import zero_prop as zero_prop
from polyax.experimental.jet.terms import ZeroSeries as ZeroSeries
from polyax.experimental.jet.terms import ZeroTerm as ZeroTerm
from polyax.experimental.jet.terms import fact as fact
from polyax.experimental.jet.terms import zero_series as zero_series
from polyax.experimental.jet.terms import zero_term as zero_term
from polyax.experimental.jet.trace import JetTrace as JetTrace
from polyax.experimental.jet.trace import JetTracer as JetTracer
from polyax.experimental.jet.trace import jet_rules as jet_rules
from polyax.trace.register import register_pytree_node as register_pytree_node
from polyax.trace.tree import tree_flatten as tree_flatten
from polyax.trace.tree import tree_structure as tree_structure
from polyax.trace.tree import tree_unflatten as tree_unflatten
from polyax.trace.tree import treedef_is_leaf as treedef_is_leaf


def __getattr__(name: str) -> _Any:
    return _late.load(__name__, {}, name)
