"""Sampling by rejection: draw for every element until all are accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyax.lax import lenient as lax
from polyax.random import generators
from polyax.random.samplers import uniform
from polyax.trace.varying import varying_like


def until_accepted(propose: Callable[[Any, Any], tuple[Any, Any]], key: Any, *parameters: Any) -> Any:
    """For each element of ``parameters``, which have one shape and dtype, the last number that was accepted.

    ``propose`` gets a uniform number in [-1/2, 1/2) and one in [0, 1) for each; it gives numbers and whether they are
    accepted. Those of all elements are drawn anew until none is missing, as in JAX, whose bits these are.
    """
    shape, kind = parameters[-1].shape, parameters[-1].dtype

    def step(state: Any) -> Any:
        key, found, accepted = state
        key, of_u, of_v = generators.split(key, (3,))
        proposed, accept = propose(uniform(of_u, shape, kind) - 0.5, uniform(of_v, shape, kind))
        return key, lax.select(accept, proposed, found), accepted | accept

    start = varying_like((key, *parameters), key, lax.full(shape, -1, kind), lax.full(shape, False))
    return lax.while_loop(lambda state: ~state[2].all(), step, start)[1]
