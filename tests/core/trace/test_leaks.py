"""``checking_leaks``: tracers that a mapped function leaves behind are an error; programs that keep none pass."""

from __future__ import annotations

from typing import Any

import pytest

import polyax
import polyax.numpy as jnp


def test_mapped_functions() -> None:
    kept: list[Any] = []
    with polyax.checking_leaks(), pytest.raises(Exception, match=r"Leaked trace of a function mapped.*\n.*float32\[\]"):
        polyax.vmap(lambda x: kept.append(x) or x)(jnp.ones(2))


def test_compositions_leave_nothing_behind() -> None:
    def loop(x: Any) -> Any:
        return polyax.lax.scan(lambda c, y: (c * y, c), x, jnp.ones(3))[0]

    with polyax.checking_leaks():
        out = polyax.jit(polyax.vmap(polyax.grad(loop)))(jnp.arange(2.0))
        hessian = polyax.vmap(polyax.hessian(lambda x: jnp.sin(x)))(jnp.arange(2.0))
    assert out.tolist() == [1, 1] and hessian.shape == (2,)
