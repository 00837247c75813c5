"""Collections of garbage wait while programs are made, and only then."""

from __future__ import annotations

import gc

import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.ir.garbage import collection_paused
from support.process import output


def test_nested_pauses_end_with_the_outer_one() -> None:
    with collection_paused():
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collection_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_function_is_traced_without_collections() -> None:
    seen: list[bool] = []

    def f(x: jax.Array) -> jax.Array:
        seen.append(gc.isenabled())
        return x + 1

    jax.jit(f)(jnp.ones(3))
    jax.make_jaxpr(f)(1.0)
    assert seen == [False, False] and gc.isenabled()


def test_an_error_ends_the_pause() -> None:
    def f(x: jax.Array) -> jax.Array:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        jax.jit(f)(1.0)
    assert gc.isenabled()


def test_callbacks_run_with_collections() -> None:
    seen: list[bool] = []

    def f(x: jax.Array) -> jax.Array:
        jax.debug.callback(lambda: seen.append(gc.isenabled()))
        return x + 1

    jax.block_until_ready(jax.jit(f)(jnp.ones(3)))
    jax.effects_barrier()
    assert seen == [True]


def test_no_collection_looks_at_a_long_program_while_it_is_made() -> None:
    """Three thousand equations are fifty thousand objects: they would be looked at seventy times."""
    program = """
        import gc
        import polyax as jax
        import polyax.numpy as jnp
        x = jax.block_until_ready(jnp.ones(4))

        def f(x):
            for _ in range(1000):
                x = jnp.sin(x) * 2 + 1
            return x

        met = []
        gc.callbacks.append(lambda phase, _: met.append(phase))
        jax.jit(f).trace(x)
        print(len(met))
    """
    assert int(output(program, POLYAX_PLATFORMS="cpu")) <= 4
