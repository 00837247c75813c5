"""Minima of functions of many variables: BFGS that remembers its last steps instead of a matrix.

Nocedal and Wright, "Numerical optimization" (2006): algorithms 7.4 and 7.5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from polyax import numpy as jnp
from polyax.api import value_and_grad
from polyax.control.flow.looping import fori_loop, while_loop
from polyax.scipy.line_search import Objective, line_search

__all__ = ["Descent", "lbfgs"]


class LastSteps(NamedTuple):
    """The last steps, the newest at the end: (n, size) places and changes of the gradient, and 1 / their products.

    Rows that aren't filled yet are zeros, which change nothing.
    """

    steps: Any
    changes: Any
    inverse: Any
    scale: Any

    @classmethod
    def empty(cls, n: int, x: Any) -> LastSteps:
        rows = jnp.zeros((n, *x.shape), x.dtype)
        return cls(rows, rows, jnp.zeros(n, x.dtype), jnp.ones((), x.dtype))

    def towards(self, g: Any) -> Any:
        """The direction ``-H g``, with the estimate ``H`` of the inverse Hessian that the steps make."""
        n = self.inverse.shape[0]

        def newest_first(j: Any, carry: Any) -> Any:
            q, weights = carry
            i = n - 1 - j
            weight = self.inverse[i] * jnp.dot(self.steps[i], q)
            return q - weight * self.changes[i], weights.at[i].set(weight)

        q, weights = fori_loop(0, n, newest_first, (-g, jnp.zeros_like(self.inverse)))

        def oldest_first(i: Any, q: Any) -> Any:
            return q + (weights[i] - self.inverse[i] * jnp.dot(self.changes[i], q)) * self.steps[i]

        return fori_loop(0, n, oldest_first, self.scale * q)

    def after(self, step: Any, change: Any) -> LastSteps:
        """With one more step, if the function bends upwards along it."""
        product = jnp.dot(step, change)
        upwards = product > 0
        safe = jnp.where(upwards, product, 1)
        newest = lambda rows, row: jnp.concatenate([rows[1:], jnp.expand_dims(jnp.asarray(row, rows.dtype), 0)])
        grown = LastSteps(
            newest(self.steps, step),
            newest(self.changes, change),
            newest(self.inverse, 1 / safe),
            safe / jnp.maximum(jnp.dot(change, change), jnp.finfo(step.dtype).tiny),
        )
        return LastSteps(*(jnp.where(upwards, new, old) for new, old in zip(grown, self, strict=True)))


class Descent(NamedTuple):
    """Where the search is: the point, the function and its gradient there, what was computed, and why it ended."""

    x: Any
    f: Any
    g: Any
    memory: LastSteps
    steps: Any
    calls: Any
    status: Any


def lbfgs(
    fun: Objective,
    x0: Any,
    maxiter: float | None = None,
    norm: Any = jnp.inf,
    maxcor: int = 10,
    ftol: float = 2.220446049250313e-09,
    gtol: float = 1e-05,
    maxfun: float | None = None,
    maxgrad: float | None = None,
    maxls: int = 20,
) -> Descent:
    """A local minimum of ``fun`` near the vector ``x0``; without any limit it takes at most 200 steps per variable."""
    if maxiter is maxfun is maxgrad is None:
        maxiter = 200 * x0.shape[0]
    f, g = value_and_grad(fun)(x0)
    small = lambda g: jnp.linalg.norm(g, ord=norm) < gtol
    limits = [(most, code) for most, code in ((maxiter, 1), (maxfun, 2), (maxgrad, 3)) if most is not None]

    def step(s: Descent) -> Descent:
        p = s.memory.towards(s.g)
        guess = jnp.where(s.steps == 0, jnp.minimum(1.0, 1.0 / jnp.maximum(jnp.linalg.norm(s.g), 1e-30)), 1.0)
        slope = jnp.dot(s.g, p)
        a, calls, down = line_search(fun, s.x, p, s.f, slope, guess.astype(s.f.dtype), maxls)
        x = s.x + a * p
        f, g = value_and_grad(fun)(x)
        steps, calls = s.steps + 1, s.calls + calls + 1
        status = jnp.where(s.f - f < ftol, 4, UNFINISHED)
        for most, code in reversed(limits):
            status = jnp.where((steps if code == 1 else calls) >= most, code, status)
        status = jnp.where(small(g), 0, jnp.where(down, status, 5)).astype(jnp.int32)
        return Descent(x, f, g, s.memory.after(x - s.x, g - s.g), steps, calls, status)

    begun = jnp.where(small(g), 0, UNFINISHED).astype(jnp.int32)
    start = Descent(x0, f, g, LastSteps.empty(maxcor, x0), jnp.int32(0), jnp.int32(1), begun)
    return while_loop(lambda s: s.status == UNFINISHED, step, start)


UNFINISHED = -2
"""The status of a search that goes on."""
