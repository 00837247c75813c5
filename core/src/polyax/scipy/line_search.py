"""How far to go along a direction that leads down: Wolfe's conditions, by bracketing and parabolas.

Nocedal and Wright, "Numerical optimization" (2006): algorithms 3.5 and 3.6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from polyax import numpy as jnp
from polyax.api import jvp
from polyax.control.flow.looping import while_loop

__all__ = ["Objective", "line_search"]

Objective = Callable[[Any], Any]


class _Bracket(NamedTuple):
    """The best step so far and the other end of where a better one is; infinite while steps still grow."""

    a: Any
    f: Any
    slope: Any
    other: Any
    other_f: Any
    trial: Any
    calls: Any
    done: Any


def line_search(
    fun: Objective, x: Any, p: Any, f0: Any, slope0: Any, guess: Any, at_most: int, c1: float = 1e-4, c2: float = 0.9
) -> tuple[Any, Any, Any]:
    """A step that meets Wolfe's conditions, how often the function was computed, and whether the step leads down."""

    def along(a: Any) -> tuple[Any, Any]:
        return jvp(lambda a: fun(x + a * p), (a,), (jnp.ones_like(a),))

    def attempt(b: _Bracket) -> _Bracket:
        f, slope = along(b.trial)
        bad = ~jnp.isfinite(f) | (f > f0 + c1 * b.trial * slope0) | ((b.calls > 0) & (f >= b.f))
        enough = ~bad & (jnp.abs(slope) <= -c2 * slope0)
        behind = ~bad & (slope * (jnp.where(jnp.isinf(b.other), b.trial + 1, b.other) - b.a) >= 0)
        other, other_f = (
            jnp.where(bad, b.trial, jnp.where(behind, b.a, b.other)),
            jnp.where(bad, f, jnp.where(behind, b.f, b.other_f)),
        )
        a, best, best_slope = (jnp.where(bad, old, new) for old, new in ((b.a, b.trial), (b.f, f), (b.slope, slope)))
        trial = jnp.where(jnp.isinf(other), 2 * b.trial, _between(a, best, best_slope, other, other_f))
        return _Bracket(a, best, best_slope, other, other_f, trial, b.calls + 1, enough)

    zero = jnp.zeros_like(f0)
    first = _Bracket(zero, f0, slope0, zero + jnp.inf, f0, guess, jnp.int32(0), jnp.asarray(False))
    end = while_loop(lambda b: ~b.done & (b.calls < at_most), attempt, first)
    return end.a, end.calls, end.done | (end.f < f0)


def _between(a: Any, f: Any, slope: Any, other: Any, other_f: Any) -> Any:
    """Where the parabola through both ends with this slope is least; the middle, if that is near an end."""
    width = other - a
    bend = 2 * (other_f - f - slope * width)
    place = jnp.where(bend > 0, -slope * width / jnp.where(bend > 0, bend, 1), 0.5)
    return a + width * jnp.where((place > 0.1) & (place < 0.9), place, 0.5)
