"""What ``check_jaxpr`` says of loops and branches whose parameters fit neither each other nor the operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax
from polyax.ir.check import check_jaxpr
from polyax.ir.errors import JaxprTypeError

OTHER = jax.make_jaxpr(lambda c, x: (c + x, x))(1, 2)
"""A program of two integers, where floats are wanted."""


def scan(c: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (c + x, c * x), c, xs)


def cond(x: Any) -> Any:
    return lax.cond(x > 0, jnp.sin, jnp.cos, x)


def loop(x: Any) -> Any:
    return lax.while_loop(lambda c: c < 9.0, lambda c: c * 2.0, x)


PROGRAMS = {"scan": (scan, 1.0, jnp.ones(3)), "cond": (cond, 1.0), "while": (loop, 1.0)}


def changed(name: str, param: str, value: Any) -> Any:
    """The jaxpr of a program, of whose equation ``name`` a parameter is another one."""
    fun, *args = PROGRAMS[name]
    jaxpr = jax.make_jaxpr(fun)(*args).jaxpr
    check_jaxpr(jaxpr)
    eqn = next(e for e in jaxpr.eqns if e.primitive.name == name)
    eqn.params[param] = value(eqn.params[param]) if isinstance(value, Callable) else value
    return jaxpr


@pytest.mark.parametrize(
    "name, param, value, said",
    [
        ("scan", "reverse", 4, "reverse of type int, bool required: 4"),
        ("scan", "num_consts", -3, "num_consts of type int, non-negative int required: -3"),
        ("scan", "num_carry", "a\nb", "num_carry of type str, non-negative int required:\na\nb"),
        ("scan", "unroll", True, "unroll of type bool, non-negative int required: True"),
        ("scan", "length", -1, "length of type int, non-negative int required: -1"),
        ("scan", "jaxpr", 4, "jaxpr of type int, ClosedJaxpr required: 4"),
        ("cond", "branches", (4, 2), "branches of type tuple, tuple of ClosedJaxpr required: (4, 2)"),
        ("while", "body_nconsts", 1.0, "body_nconsts of type float, non-negative int required: 1.0"),
        ("while", "cond_jaxpr", None, "cond_jaxpr of type NoneType, ClosedJaxpr required: None"),
    ],
)
def test_parameters(name: str, param: str, value: Any, said: str) -> None:
    with pytest.raises(JaxprTypeError) as e:
        check_jaxpr(changed(name, param, value))
    assert str(e.value).startswith(f"invalid {name} param {said}\n\nin equation:\n\n"), "as in JAX"


@pytest.mark.parametrize(
    "name, param, value, said",
    [
        ("scan", "jaxpr", OTHER, "scan jaxpr takes input carry types\ni32[]\ncalled with initial carry of type\nf32[]"),
        ("scan", "length", 7, "scan jaxpr takes slices of sequences of types\nf32[7]\ncalled with sequences of type"),
        ("scan", "num_carry", 2, "scan jaxpr takes input carry types\nf32[] f32[]\ncalled with initial carry of type"),
        (
            "cond",
            "branches",
            lambda b: (b[0], OTHER),
            "cond branches 0 and 1 have mismatching input types:\nf32[]\nvs\n",
        ),
        ("while", "body_jaxpr", OTHER, "while body_jaxpr takes types\ni32[] i32[]\ncalled with\nf32[]"),
    ],
)
def test_types(name: str, param: str, value: Any, said: str) -> None:
    with pytest.raises(JaxprTypeError) as e:
        check_jaxpr(changed(name, param, value))
    assert str(e.value).startswith(said)
