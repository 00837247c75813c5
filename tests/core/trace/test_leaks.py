"""``checking_leaks``: tracers that a mapped function leaves behind are an error; programs that keep none pass."""

from __future__ import annotations

import re
from typing import Any

import pytest

import polyax
import polyax.numpy as jnp


def test_mapped_functions() -> None:
    kept: list[Any] = []
    with (
        polyax.checking_leaks(),
        pytest.raises(Exception, match=r"Leaked trace BatchTrace of a function mapped.*\n\n.*float32\[\]"),
    ):
        polyax.vmap(lambda x: kept.append(x) or x)(jnp.ones(2))


def test_who_keeps_them_is_told() -> None:
    kept: list[Any] = []

    class Model:
        state: Any

    def f(x: Any) -> Any:
        def inner() -> Any:
            return x

        kept.append([inner])
        return x

    def g(x: Any) -> Any:
        kept.append(Model())
        kept[0].state = {"x": x}
        return x

    with polyax.checking_leaks(), pytest.raises(Exception, match="Leaked") as raised:
        polyax.vmap(f)(jnp.ones(2))
    assert re.search(
        r"\nThis BatchTracer with object id \d+ was created on line:\n  .*test_leaks\.py:\d+:\d+ .*\n"
        r"<BatchTracer \d+> is referred to by <function \d+> \(inner\) closed-over variable x\n"
        r"<function \d+> is referred to by <list \d+>\[0\]\n<list \d+> is referred to by <list \d+>\[0\]\n",
        str(raised.value),
    )
    del kept[:]
    told = r"\n<DynamicJaxprTracer \d+> .* <dict \d+>\['x'\]\n<dict .* <Model \d+>\.state\n<Model .* <list \d+>\[0\]\n"
    with polyax.checking_leaks(), pytest.raises(Exception, match=told):
        polyax.jit(g)(1.0)


def test_compositions_leave_nothing_behind() -> None:
    def loop(x: Any) -> Any:
        return polyax.lax.scan(lambda c, y: (c * y, c), x, jnp.ones(3))[0]

    with polyax.checking_leaks():
        out = polyax.jit(polyax.vmap(polyax.grad(loop)))(jnp.arange(2.0))
        hessian = polyax.vmap(polyax.hessian(lambda x: jnp.sin(x)))(jnp.arange(2.0))
    assert out.tolist() == [1, 1] and hessian.shape == (2,)


def test_what_escaped_tells_of_its_function_and_what_it_was_traced_for() -> None:
    kept = []

    def f(x):
        kept.append(x)
        return x

    polyax.jit(f)(jnp.ones((4, 3), jnp.int32))
    told = r"with type int32\[4,3\] wrapped in a DynamicJaxprTracer.*being traced when .* was f at .* traced for jit\."
    with pytest.raises(polyax.errors.UnexpectedTracerError, match=rf"Encountered an unexpected tracer\. .*{told}"):
        kept[0] + 1
    polyax.lax.scan(lambda c, _: (f(c), None), 1.0, None, length=2)
    with pytest.raises(polyax.errors.UnexpectedTracerError, match="traced for scan"):
        polyax.jit(lambda: kept[-1] * 2)()
    polyax.grad(f)(1.0)
    with pytest.raises(polyax.errors.UnexpectedTracerError, match=r"float32\[\] wrapped in a \w+Tracer to escape"):
        polyax.jit(lambda: kept[-1] * 2)()
    polyax.jit(lambda x: f(x + 1))(1.0)
    told = r"transformed by JAX had a side effect, .*was created on line .*_leaks\.py:\d+:\d+ .*\n.* in global state"
    with pytest.raises(polyax.errors.UnexpectedTracerError, match=told):
        kept[-1] * 2


@pytest.mark.parametrize("make", [lambda: jnp.ones(2), lambda: polyax.random.key(0)])
def test_what_escaped_is_told_by_programs_that_are_compiled_already(make) -> None:
    kept, f = [], polyax.jit(lambda x: x[None])
    f(make())
    polyax.jit(lambda x: kept.append(x.reshape(x.shape)))(make())
    with pytest.raises(polyax.errors.UnexpectedTracerError, match="Encountered an unexpected tracer"):
        f(kept[0])
