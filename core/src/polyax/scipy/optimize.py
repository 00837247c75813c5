"""Minima of functions by the method BFGS, as ``jax.scipy.optimize`` has it.

Nocedal and Wright, "Numerical optimization" (2006): algorithm 6.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from polyax import numpy as jnp
from polyax.api import value_and_grad
from polyax.control.flow.looping import while_loop
from polyax.numpy.promotion import inexact
from polyax.scipy.limited_memory import Descent, lbfgs
from polyax.scipy.line_search import Objective, line_search

__all__ = ["OptimizeResults", "minimize"]

METHODS = ("bfgs", "l-bfgs-experimental-do-not-rely-on-this")


class OptimizeResults(NamedTuple):
    """What ``minimize`` found.

    Attributes:
      x: where the function is least.
      success: whether the gradient became small.
      status: 0 then; 1 after the most steps, 3 where steps stopped to lead down, -1 where numbers aren't finite. With
        limited memory 1 after the most steps, 2 and 3 after the most functions and gradients, 4 where there was too
        little progress, 5 where no step led down.
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
      method: 'BFGS', or 'l-bfgs-experimental-do-not-rely-on-this', which remembers a few steps instead of a matrix.
      tol: the norm of the gradient that is small enough; the option ``gtol`` (1e-5).
      options: ``maxiter``, ``norm`` (its order, by default infinite), ``gtol``, ``line_search_maxiter`` (10). With
        limited memory ``maxiter``, ``norm``, ``gtol``, ``ftol`` (the least progress, 2.2e-9), ``maxcor`` (how many
        steps are remembered, 10), ``maxfun``, ``maxgrad``, ``maxls`` (20).

    Raises:
      TypeError: ``args`` isn't a tuple, or an option isn't known.
      ValueError: another method, or ``x0`` isn't a vector.

    >>> import numpy as np
    >>> print(minimize(lambda x: ((x - 1) ** 2).sum(), np.zeros(2), method="BFGS").x)
    [1. 1.]
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to minimize must be a tuple, got {args}")
    if method.lower() not in METHODS:
        raise ValueError(f"Method {method} not recognized")
    given = dict(options or {})
    if tol is not None:
        given.setdefault("gtol", tol)
    x0 = inexact("minimize", x0)[0]
    if x0.ndim != 1:
        raise ValueError(
            f"minimize: x0 must be a vector, got shape {x0.shape}; see flatten_util.ravel_pytree for trees"
        )
    objective = lambda x: fun(x, *args)
    if method.lower() == "bfgs":
        return _bfgs(objective, x0, **given)
    return _without_matrix(lbfgs(objective, x0, **given))


def _without_matrix(end: Descent) -> OptimizeResults:
    return OptimizeResults(end.x, end.status == 0, end.status, end.f, end.g, None, end.calls, end.calls, end.steps)


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
        a, calls, down = line_search(fun, s.x, p, s.f, slope, guess.astype(s.f.dtype), line_search_maxiter)
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
