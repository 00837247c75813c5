"""Programs without Python functions in them: rules of users, policies and the like, which no file can hold.

Derivatives are no concern: those of an exported function are programs of their own, made before.
"""

from __future__ import annotations

from polyax.control.callback import CALLBACKS
from polyax.control.calls.jit import pjit_p
from polyax.control.inner.programs import rewritten
from polyax.ir.jaxpr import ClosedJaxpr, Eqn
from polyax.transforms.memo import memoize_by_jaxpr

CALLED = {"linear_call": "callee"} | dict.fromkeys(
    ("custom_jvp_call", "custom_vjp_call", "custom_vmap_call", "closed_call", "call"), "call_jaxpr"
)
"""Calls with rules of users, by the parameters that hold what they call."""
ONLY_KEYS = {"remat2": "policy", "reduce": "computation", "reduce_window": "computation"}
"""Parameters that transformations ask for, and that no device does."""
HOST = frozenset({p.name for p in CALLBACKS} | {"inspect_sharding"})


@memoize_by_jaxpr
def plain(program: ClosedJaxpr) -> ClosedJaxpr:
    """``program`` as one of data alone.

    Raises:
      NotImplementedError: it calls Python functions while it runs.
    """
    return rewritten(program, _plain_eqn, plain)


def _plain_eqn(eqn: Eqn) -> list[Eqn]:
    name, params = eqn.primitive.name, eqn.params
    if name in HOST:
        raise NotImplementedError(
            f"serialization of host_callbacks is not yet implemented: the program calls {params['callback']!r}, at "
            f"{eqn.source}, and a Python function can't be part of a file"
        )
    if name == "jit" and (params["device"] is not None or any(params["donated"])):
        return [eqn.replace(params=params | {"device": None, "donated": ()})]
    if name in CALLED:
        inner = params[CALLED[name]]
        called = {"jaxpr": inner, "name": str(params.get("name", name)), "donated": (), "inline": False}
        return [eqn.replace(primitive=pjit_p, params=called | {"keep_unused": False, "device": None})]
    key = ONLY_KEYS.get(name)
    if key is not None and callable(params.get(key)):
        return [eqn.replace(params=params | {key: None})]
    return [eqn]
