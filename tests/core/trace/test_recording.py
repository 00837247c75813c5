"""Numbers of the host in programs: they are written where they are used, as in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax
from polyax.core import Tracer

X = jnp.ones(3)

ALONE: dict[str, tuple[Callable[[], Any], str]] = {
    "a scalar as an array": (lambda: jnp.array(2.0), "2.0:f32[]"),
    "a scalar of another type": (lambda: jnp.asarray(2, jnp.float32), "2.0:f32[]"),
    "a type called": (lambda: jnp.bfloat16(2), "2.0:bf16[]"),
    "a complex number": (lambda: jnp.array(1 + 2j), "(1+2j):c64[]"),
    "a truth value": (lambda: jnp.asarray(True), "True:bool[]"),
    "zeros without dimensions": (lambda: jnp.zeros(()), "0.0:f32[]"),
    "zeros like a scalar": (lambda: jnp.zeros_like(2.0), "0.0:f32[]"),
    "full without dimensions": (lambda: lax.full((), 1), "1:i32[]"),
    "a broadcast to no dimensions": (lambda: lax.broadcast_in_dim(2.0, (), ()), "2.0:f32[]"),
    "a conversion": (lambda: lax.convert_element_type(1, jnp.float32), "1.0:f32[]"),
    "two conversions": (lambda: jnp.float32(2.5).astype(int).astype(jnp.int8), "2:i8[]"),
    "a number for true": (lambda: jnp.float32(0.5).astype(bool), "True:bool[]"),
    "infinity in a smaller type": (lambda: jnp.float32(jnp.inf).astype(jnp.float16), "inf:f16[]"),
}


@pytest.mark.parametrize("name", ALONE)
def test_scalars_need_no_equation(name: str) -> None:
    fun, literal = ALONE[name]
    assert str(jax.make_jaxpr(fun)()) == f"{{ lambda ; . let  in ({literal},) }}"
    made, alone = jax.jit(fun)(), fun()
    assert (made.dtype, made.weak_type, made.tolist()) == (alone.dtype, alone.weak_type, alone.tolist())


BESIDE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an array": (lambda x: x * jnp.float32(2), "mul a 2.0:f32[]"),
    "an integer as an array": (lambda x: jnp.asarray(2) * x, "mul 2.0:f32[] a"),
    "an array of NumPy without dimensions": (lambda x: x + np.array(2, np.float32), "add a 2.0:f32[]"),
    "a comparison with zero": (jnp.isneginf, "eq a -inf:f32[]"),
    "numbers as truth values": (lambda x: x.astype(bool), "convert_element_type[new_dtype=bool weak_type=False] a"),
    "whether any number is true": (jnp.any, "convert_element_type[new_dtype=bool weak_type=False] a"),
    "a part of a constant": (lambda x: x + jnp.asarray(X)[1:2], "slice[limit_indices=(2,) start_indices=(1,)"),
}


@pytest.mark.parametrize("name", BESIDE)
def test_scalars_are_written_in_place(name: str) -> None:
    fun, equation = BESIDE[name]
    assert equation in str(jax.make_jaxpr(fun)(X)).replace("[\n", "[").replace("  ", " ")


def test_constants_of_programs_within_transformations() -> None:
    program = jax.make_jaxpr(jax.vmap(jax.grad(lambda x: jnp.sin(x * jnp.float32(2)) * jnp.array(3.0))))(X)
    assert not program.consts and "mul a 2.0:f32[]" in str(program)
    assert jax.grad(lambda x: x * jnp.array(3.0))(1.0) == 3.0  # no program is recorded
    closed = jnp.float32(2)
    assert len(jax.make_jaxpr(lambda x: x * closed)(X).consts) == 1  # an array that was there before


def test_numbers_in_programs_are_known() -> None:
    def f(x: Any) -> Any:
        n = jnp.array(3)
        assert isinstance(n, Tracer) and int(n) == 3 and bool(n) and jnp.float32(1.5).item() == 1.5
        return x * np.zeros(n).size

    assert jax.jit(f)(1.0) == 3.0


@pytest.mark.parametrize("value", [np.nan, np.inf, 3e9, -1e30])
def test_what_a_type_cannot_hold_is_left_to_the_device(value: float) -> None:
    program = jax.make_jaxpr(lambda: jnp.float32(value).astype(jnp.int32))()
    assert [str(e.primitive) for e in program.eqns] == ["convert_element_type"]


def test_comparisons_with_numbers_are_one_equation() -> None:
    for fun, n in ((jnp.logical_not, 2), (jnp.logical_and, 3), (jnp.signbit, 2), (jnp.any, 2), (jnp.iscomplex, 2)):
        args = (X,) * (1 + (fun is jnp.logical_and))
        assert len(jax.make_jaxpr(fun)(*args).eqns) == n, fun
