"""Equations name the line of the program that they are part of, not that of whoever asked for the same thing before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import random
from polyax.ir.jaxpr import ClosedJaxpr, sub_jaxprs
from polyax.ir.source import Source

SHARED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "samples": (partial(random.normal, shape=(3,)), random.key(0)),
    "a jitted function": (jnp.var, jnp.arange(3.0)),
    "nested jitted functions": (jnp.nanmedian, jnp.arange(3.0)),
    "a gradient": (jax.grad(jnp.linalg.norm), jnp.arange(3.0)),
    "a batch": (jax.vmap(jnp.var), jnp.ones((3, 2))),
    "a function jitted again": (jax.jit(jnp.sinc), jnp.arange(3.0)),
}


def first(fun: Callable[[Any], Any], x: Any) -> Any:
    return fun(x)


def second(fun: Callable[[Any], Any], x: Any) -> Any:
    return fun(x)


def sources(program: ClosedJaxpr) -> Iterator[Source | None]:
    for eqn in program.eqns:
        yield eqn.source
        for inner in sub_jaxprs(eqn):
            yield from sources(inner)


@pytest.mark.parametrize("name", SHARED)
def test_lines_of_what_programs_share(name: str) -> None:
    fun, x = SHARED[name]
    jax.make_jaxpr(lambda x: first(fun, x))(x)
    program = jax.make_jaxpr(lambda x: second(fun, x))(x)
    assert {e.source.code for e in program.eqns} == {second.__code__}
    assert {s.code for s in sources(program) if s is not None} == {second.__code__}


def test_lines_of_nans_in_what_programs_share() -> None:
    with jax.debug_nans(True):
        for asker in (first, second):
            with pytest.raises(FloatingPointError, match=rf"encountered in div, asked for at .*\({asker.__name__}\)"):
                jax.jit(lambda x, asker=asker: asker(jnp.var, x))(jnp.zeros(0))


def test_lines_of_functions_of_the_user() -> None:
    def inner(x: Any) -> Any:
        return jnp.sin(x)

    both = jax.jit(inner)
    jax.make_jaxpr(lambda x: first(both, x))(1.0)
    (call,) = jax.make_jaxpr(lambda x: second(both, x))(1.0).eqns
    (sine,) = call.params["jaxpr"].eqns
    assert (call.source.code, sine.source.code) == (second.__code__, inner.__code__)


def test_columns_of_lines_are_told_below_each_other() -> None:
    def f(x: Any) -> Any:
        y = jax.lax.cond(x > 0, jnp.sin, lambda x: x, x)
        return (jnp.cos(x) +
                jnp.tanh(y) * (y > 0)).sum()  # fmt: skip

    program = jax.make_jaxpr(f)(1.0)
    places = [(e.source.line - f.__code__.co_firstlineno, e.source.column) for e in program.eqns]
    assert places == [(1, 25), (1, 12), (1, 12), (2, 16), (3, 16), (3, 31), (3, 16), (3, 16), (2, 16), (3, 39), (3, 39)]
    lines = program.pretty_print(source_info=True).split("\n")
    noted = [line for line in lines if "#" in line]
    assert len({line.index("#") for line in noted}) == 1 and len(noted) == len(program.eqns) + 1
    assert lines[3].strip().startswith("d:f32[] = cond[") and re.search(r":\d+:12 \(test_.*<locals>.f\)$", lines[3])
    assert jax.make_jaxpr(lambda x: x)(1.0).pretty_print(source_info=True) == "{ lambda ; a:f32[]. let  in (a,) }"


def test_what_counts_by_lines_tells_no_columns() -> None:
    def f(x: Any) -> Any:
        with jax.named_scope("twice"):
            return jnp.sin(x) + jnp.cos(x)

    program = jax.make_jaxpr(f)(1.0)
    line = f"{__file__}:{f.__code__.co_firstlineno + 2} (f) in twice"
    assert {e.source.by_line for e in program.eqns} == {line} and len({str(e.source) for e in program.eqns}) == 2


def test_names_of_no_line() -> None:
    (eqn,) = jax.make_jaxpr(jnp.sin)(1.0).eqns  # a program of polyax's own function: who calls it, tells the line
    assert (eqn.source_info.traceback, eqn.source_info.name_stack) == (None, "")
    assert eqn.replace(source_info=eqn.source_info).source is None
