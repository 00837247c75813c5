"""Traces of libraries that are written for JAX: they have ``process_primitive``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.extend.core import set_current_trace, take_current_trace
from polyax.trace.tracer import Trace, Tracer


class Counted(Tracer):
    """A value, and how many operations it took."""

    __slots__ = ("count", "value")

    def __init__(self, trace: Trace, value: Any, count: int) -> None:
        super().__init__(trace, polyax.typeof(value))
        self.value = value
        self.count = count


class Counting(Trace):
    def __init__(self, outer: Trace) -> None:
        super().__init__()
        self.outer = outer

    def process_primitive(self, primitive: Any, args: Any, params: dict[str, Any]) -> Any:
        count = 1 + max((x.count for x in args if isinstance(x, Counted)), default=0)
        with set_current_trace(self.outer):
            made = primitive.bind(*[x.value if isinstance(x, Counted) else x for x in args], **params)
        return [Counted(self, y, count) for y in made] if primitive.multiple_results else Counted(self, made, count)


def counted(fun: Any, x: Any) -> Counted:
    with take_current_trace() as outer:
        trace = Counting(outer)
        with set_current_trace(trace):
            return trace.full_raise(fun(Counted(trace, x, 0)))


@pytest.mark.parametrize("wrap", [lambda f: f, polyax.jit])
def test_a_trace_by_primitives(wrap: Any) -> None:
    found = counted(lambda x: polyax.lax.exp(polyax.lax.neg(x)) * 2, jnp.ones(3))
    assert isinstance(found, Counted) and found.count == 3
    np.testing.assert_allclose(wrap(lambda x: x)(found.value), 2 * np.exp(-np.ones(3)), rtol=1e-6)
    assert [y.count for y in counted(lambda x: polyax.lax.top_k(x, 1), jnp.ones(3))] == [1, 1]


def test_a_trace_without_either() -> None:
    with take_current_trace(), set_current_trace(Trace()), pytest.raises(NotImplementedError, match="neither process"):
        polyax.lax.neg(1.0)
