"""Random programs give on compiled platforms, under each transformation, what they give on the reference one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fuzz.programs import Program

import polyax as jax


def assert_close(found: Any, wanted: Any) -> None:
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
    elif wanted.size:
        finite = np.abs(wanted[np.isfinite(wanted)])
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4 * max(1.0, finite.max(initial=0.0)))


def on(platform: str, f: Any, *args: Any) -> list[Any]:
    with jax.default_device(jax.devices(platform)[0]):
        return [np.asarray(x) for x in jax.tree_util.tree_leaves(f(*args))]


def eager(name: str, program: Program) -> tuple[list[Any], list[Any]]:
    return on(name, program, *program.args), on("reference", program, *program.args)


def jitted(name: str, program: Program) -> tuple[list[Any], list[Any]]:
    return on(name, jax.jit(program), *program.args), on("reference", program, *program.args)


def batched(name: str, program: Program) -> tuple[list[Any], list[Any]]:
    batches = [np.stack([x, np.flip(x)]) for x in program.args]
    each = [on("reference", program, *args) for args in zip(*batches, strict=True)]
    return on(name, jax.vmap(jax.jit(program)), *batches), [np.stack(xs) for xs in zip(*each, strict=True)]


def differentiated(name: str, program: Program) -> tuple[list[Any], list[Any]]:
    if not program.inexact:
        return jitted(name, program)
    gradient = jax.grad(program.loss, program.inexact)
    return on(name, jax.jit(gradient), *program.args), on("reference", gradient, *program.args)


WAYS = (jitted, batched, differentiated, eager)


RUNS = [*(("cpu", seed) for seed in range(100)), *(("opencl", seed) for seed in range(100, 124))]


@pytest.mark.parametrize(("name", "seed"), RUNS)
def test_a_random_program(name: str, seed: int) -> None:
    found, wanted = WAYS[seed % len(WAYS)](name, Program(1000 + seed, jax, steps=6))
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        assert_close(x, y)
