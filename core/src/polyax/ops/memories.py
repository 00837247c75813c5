"""``device_put[memory_kind target source] x``: ``x``, which is to be in this kind of memory if it is a result of a
program. Where a program computes, values are where its device can reach them, so inside it changes nothing. Outside of
programs it brings arrays to ``target``, and cotangents back to ``source``, where they were."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from polyax.ir.jaxpr import Atom, ClosedJaxpr, Jaxpr
from polyax.ir.primitive import Primitive
from polyax.meshes.factors import elementwise
from polyax.ops.define import linear

device_put_p = Primitive("device_put", multiple_results=True)
device_put_p.abstract_eval = lambda x, **_: [x]
device_put_p.decompose = lambda x, **_: [x]
device_put_p.explicit = lambda ins, outs, **_: list(ins)
device_put_p.factors = lambda x, **_: replace(elementwise(x), local=lambda place, block, **_: [block])
device_put_p.batch = lambda axis, args, dims, **params: (device_put_p.bind(*args, **params), list(dims))
linear(device_put_p, lambda ct, _, source, target, **__: put_at(ct, source, target), device_put_p.batch)


def put_into(x: Any, kind: str) -> Any:
    """``x``, in this kind of memory if it is a result."""
    return device_put_p.bind1(x, memory_kind=kind, target=None, source=None)


def put_at(x: Any, target: Any, source: Any) -> Any:
    """``x``, which isn't of a program, at ``target`` if that is known; its cotangents at ``source``."""
    return x if target is None else device_put_p.bind1(x, memory_kind=None, target=target, source=source)


def kinds_of_results(closed: ClosedJaxpr) -> list[str | None]:
    """For each result of a program the kind of memory that it was put into; None if it wasn't."""
    return [_kind(closed.jaxpr, a) for a in closed.jaxpr.outvars]


def _kind(jaxpr: Jaxpr, atom: Atom) -> str | None:
    made = next((e for e in reversed(jaxpr.eqns) if any(v is atom for v in e.outvars)), None)
    if made is None:
        return None
    if made.primitive is device_put_p:
        return made.params["memory_kind"]
    if made.primitive.name in ("sharding_constraint", "reshard"):
        return _kind(jaxpr, made.invars[0])
    inner = made.params.get("jaxpr") if made.primitive.name == "jit" else None
    return None if inner is None else _kind(inner.jaxpr, inner.jaxpr.outvars[made.outvars.index(atom)])
