"""Minima of functions by the method BFGS, as ``jax.scipy.optimize`` has it.

Nocedal and Wright, "Numerical optimization" (2006): algorithm 6.1, with the line search of 3.5 and 3.6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from polyax import numpy as jnp
from polyax.api import jvp, value_and_grad
from polyax.control.flow.looping import while_loop
from polyax.numpy.promotion import inexact

__all__ = ["OptimizeResults", "minimize"]

Objective = Callable[[Any], Any]


class OptimizeResults(NamedTuple):
    """What ``minimize`` found.

    Attributes:
      x: where the function is least.
      success: whether the gradient became small.
      status: 0 then; 1 after the most steps, 3 where steps stopped to lead down, -1 where numbers aren't finite.
      fun, jac: the function and its gradient there.
      hess_inv: the estimate of the inverse Hessian.
      nfev, njev, nit: how often the function, its gradient and steps were computed.
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """A local minimum of ``fun(x, *args)``, where ``x`` is a vector.

    Args:
      x0: where to begin.
      method: 'BFGS'.
      tol: the norm of the gradient that is small enough; the option ``gtol`` (1e-5).
      options: ``maxiter``, ``norm`` (its order, by default infinite), ``gtol``, ``line_search_maxiter`` (10).

    Raises:
      TypeError: ``args`` isn't a tuple, or an option isn't known.
      ValueError: another method, or ``x0`` isn't a vector.

    >>> import numpy as np
    >>> print(minimize(lambda x: ((x - 1) ** 2).sum(), np.zeros(2), method="BFGS").x)
    [1. 1.]
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to minimize must be a tuple, got {args}")
    if method.lower() != "bfgs":
        raise ValueError(f"Method {method} not recognized")
    given = dict(options or {})
    if tol is not None:
        given.setdefault("gtol", tol)
    x0 = inexact("minimize", x0)[0]
    if x0.ndim != 1:
        raise ValueError(
            f"minimize: x0 must be a vector, got shape {x0.shape}; see flatten_util.ravel_pytree for trees"
        )
    return _bfgs(lambda x: fun(x, *args), x0, **given)


class _State(NamedTuple):
    x: Any
    f: Any
    g: Any
    inverse: Any
    last: Any
    steps: Any
    calls: Any
    status: Any


def _bfgs(
    fun: Objective,
    x0: Any,
    maxiter: int | None = None,
    norm: Any = jnp.inf,
    gtol: float = 1e-5,
    line_search_maxiter: int = 10,
) -> OptimizeResults:
    n = x0.shape[0]
    most = 200 * n if maxiter is None else maxiter
    unit = jnp.eye(n, dtype=x0.dtype)
    f, g = value_and_grad(fun)(x0)
    size = lambda g: jnp.linalg.norm(g, ord=norm)

    def step(s: _State) -> _State:
        p = -(s.inverse @ s.g)
        slope = jnp.dot(s.g, p)
        guess = jnp.where(s.steps == 0, jnp.minimum(1.0, 1.0 / jnp.maximum(jnp.linalg.norm(s.g), 1e-30)), 1.0)
        a, calls, down = _line_search(fun, s.x, p, s.f, slope, guess.astype(s.f.dtype), line_search_maxiter)
        x = s.x + a * p
        f, g = value_and_grad(fun)(x)
        inverse = _updated(s.inverse, unit, x - s.x, g - s.g)
        finite = jnp.isfinite(f) & jnp.all(jnp.isfinite(g))
        status = jnp.where(~finite, -1, jnp.where(down, 0, 3)).astype(jnp.int32)
        return _State(x, f, g, inverse, s.f, s.steps + 1, s.calls + calls + 1, status)

    def again(s: _State) -> Any:
        return (size(s.g) >= gtol) & (s.steps < most) & (s.status == 0)

    zero, one = jnp.int32(0), jnp.int32(1)
    end = while_loop(again, step, _State(x0, f, g, unit, f, zero, one, zero))
    done = size(end.g) < gtol
    status = jnp.where(done, 0, jnp.where(end.status != 0, end.status, 1)).astype(jnp.int32)
    return OptimizeResults(end.x, done, status, end.f, end.g, end.inverse, end.calls, end.calls, end.steps)


def _updated(inverse: Any, unit: Any, s: Any, y: Any) -> Any:
    """The estimate of the inverse Hessian with a step ``s`` that changed the gradient by ``y``."""
    curvature = jnp.dot(s, y)
    positive = curvature > 1e-10 * jnp.linalg.norm(s) * jnp.linalg.norm(y)
    rho = jnp.where(positive, 1.0 / jnp.where(positive, curvature, 1.0), 0.0)
    left = unit - rho * jnp.outer(s, y)
    return jnp.where(positive, left @ inverse @ left.T + rho * jnp.outer(s, s), inverse)


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


def _line_search(
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
