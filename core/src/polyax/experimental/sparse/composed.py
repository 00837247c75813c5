"""Primitives that stand for a program of others: it takes their place when they are differentiated, mapped or compiled.

So programs show what was meant, and nothing has to learn it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.config import config
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive
from polyax.trace.recording import trace_to_jaxpr
from polyax.trace.symbolic import is_undef
from polyax.transforms.jvp import jvp_flat
from polyax.transforms.transpose import backward_pass
from polyax.transforms.vmap import AxisData, batch_flat

Body = Callable[..., list[Any]]
"""``(*arrays, **params) -> results``."""
COMPOSED: list[Primitive] = []
"""All of them."""


def composed(name: str, body: Body, several: bool = False) -> Primitive:
    """The primitive that does what ``body`` does, which has ``several`` results or one."""
    p = Primitive(name, multiple_results=several)

    def abstract_eval(*avals: ShapedArray, **params: Any) -> list[ShapedArray]:
        return list(_program(body, name, avals, tuple(params.items()), config.trace_key()).out_avals)

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        return jvp_flat(partial(body, **params), primals, tangents)

    def batch(axis: AxisData, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        return batch_flat(partial(body, **params), axis, args, dims)

    def transpose(cts: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
        avals = tuple([x.aval if is_undef(x) else aval_of(x) for x in args])
        program = _program(body, name, avals, tuple(params.items()), config.trace_key())
        return backward_pass(program.jaxpr, program.consts, args, cts)

    p.abstract_eval, p.decompose, p.jvp, p.batch, p.transpose = abstract_eval, body, jvp, batch, transpose
    p.never("factors", "its indices may point anywhere")
    COMPOSED.append(p)
    return p


@lru_cache(512)
def _program(body: Body, name: str, avals: tuple[ShapedArray, ...], params: Any, _settings: int) -> ClosedJaxpr:
    return trace_to_jaxpr(lambda *args: body(*args, **dict(params)), avals, name=name)
