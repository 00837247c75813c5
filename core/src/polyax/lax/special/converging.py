"""Series and continued fractions: loops that stop, element by element, when their result changes no more in two steps.

A loop is ``start(*params)``, which gives the first state, and ``step(k, state, *params)``, which gives the one after it
for k = 1, 2, ...; the first element of a state is the result. States and parameters are arrays of one shape and dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from polyax import numpy as jnp
from polyax.api import jvp
from polyax.control.flow.looping import while_loop
from polyax.trace.tree import tree_map

Start = Callable[..., tuple[Any, ...]]
Step = Callable[..., tuple[Any, ...]]


def limit(start: Start, step: Step, params: Sequence[Any], at_most: int = 10_000) -> Any:
    """The result when it has converged to rounding, or after ``at_most`` steps."""
    last = _repeated(lambda k, s: step(k, s, *params), start(*params), lambda s: s[:1], at_most)
    return last[0]


def limit_and_slope(
    start: Start, step: Step, params: Sequence[Any], directions: Sequence[Any], at_most: int = 10_000
) -> tuple[Any, Any]:
    """The result and its derivative in a direction of the parameters, when both have converged."""
    params, directions = tuple(params), tuple(directions)

    def both(k: Any, pair: Any) -> Any:
        state, change = pair
        return jvp(partial(step, k), (state, *params), (change, *directions))

    first = jvp(start, params, directions)
    state, change = _repeated(both, first, lambda pair: (pair[0][0], pair[1][0]), at_most)
    return state[0], change[0]


def _repeated(step: Callable[..., Any], first: Any, results: Callable[[Any], tuple[Any, ...]], at_most: int) -> Any:
    """The state when all its results have converged, or have become NaN."""
    like = results(first)[0]

    def body(loop: Any) -> Any:
        k, active, moved, old = loop
        new = step(k.astype(like.dtype), old)
        moving = jnp.zeros_like(active)
        for x, y in zip(results(new), results(old), strict=True):
            moving = moving | (jnp.abs(x - y) > jnp.finfo(x.dtype).eps * jnp.abs(x))
        kept = tree_map(lambda x, y: jnp.where(active, x, y), new, old)
        return k + 1, active & (moving | moved), moving, kept  # one term may vanish without being the last

    def again(loop: Any) -> Any:
        return jnp.any(loop[1]) & (loop[0] <= at_most)

    everywhere = jnp.ones(like.shape, bool)
    return while_loop(again, body, (jnp.int32(1), everywhere, everywhere, first))[3]
