"""``odeint``: initial value problems by Dormand and Prince's method, whose derivative solves the adjoint problem.

The method and the choice of steps are those of Hairer, Nørsett and Wanner, *Solving Ordinary Differential Equations I*,
sections II.4 and II.5; values between the ends of a step are those of a polynomial of fourth degree.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.api import jit, vjp, vmap
from polyax.api.settings import default_matmul_precision
from polyax.control.calls.closures import closure_convert
from polyax.control.calls.custom_vjp import custom_vjp
from polyax.flatten_util import ravel_pytree
from polyax.ir.aval import is_array_like
from polyax.lax import lenient as lax
from polyax.numpy.promotion import promote_dtypes_inexact as promote_dtypes_inexact
from polyax.trace.tree import tree_leaves as tree_leaves
from polyax.trace.tree import tree_map as tree_map

Rate = Callable[..., Any]


def _exact(fun: Rate) -> Rate:
    """``fun``, whose products are of the highest precision."""

    @functools.wraps(fun)
    def exact(*args: Any) -> Any:
        with default_matmul_precision("highest"):
            return fun(*args)

    return exact


NODES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0, 0])
STAGES = np.array(
    [
        [1 / 5, 0, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
    ]
)
FIFTH = np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0])
"""Weights of the solution of order 5; the estimated error is what those of order 4 differ by."""
ERROR = np.array(
    [
        *(35 / 384 - 1951 / 21600, 0, 500 / 1113 - 22642 / 50085, 125 / 192 - 451 / 720),
        *(-2187 / 6784 + 12231 / 42400, 11 / 84 - 649 / 6300, -1 / 60),
    ]
)
MIDDLE = (
    np.array(
        [
            *(6025192743 / 30085553152, 0, 51252292925 / 65400821598, -2691868925 / 45128329728),
            *(187940372067 / 1594534317056, -1776094331 / 19743644256, 11237099 / 235043384),
        ]
    )
    / 2
)


def ravel_first_arg(f: Rate, unravel: Callable[[Any], Any], debug_info: Any = None) -> Rate:
    """``f`` on vectors instead of the pytrees that ``unravel`` makes of them, and with such results."""

    def flat(y: Any, *args: Any) -> Any:
        return ravel_pytree(f(unravel(y), *args))[0]

    return flat


def ravel_first_arg_(fun: Rate, *gen_static_args: Any) -> Rate:
    """The same under an older name."""
    return ravel_first_arg(fun, *gen_static_args)


def fit_4th_order_polynomial(y0: Any, y1: Any, y_mid: Any, dy0: Any, dy1: Any, dt: Any) -> tuple[Any, ...]:
    """Coefficients, the highest first, of the polynomial on [0, 1] with these values at 0, 1 and 1/2, and these
    derivatives at its ends."""
    dt = dt.astype(y0.dtype)
    a = -2.0 * dt * dy0 + 2.0 * dt * dy1 - 8.0 * y0 - 8.0 * y1 + 16.0 * y_mid
    b = 5.0 * dt * dy0 - 3.0 * dt * dy1 + 18.0 * y0 + 14.0 * y1 - 32.0 * y_mid
    c = -4.0 * dt * dy0 + dt * dy1 - 11.0 * y0 - 5.0 * y1 + 16.0 * y_mid
    return a, b, c, dt * dy0, y0


def interp_fit_dopri(y0: Any, y1: Any, k: Any, dt: Any) -> Any:
    """The polynomial that follows the solution within a step, from its stages ``k``."""
    y_mid = y0 + dt.astype(y0.dtype) * jnp.dot(MIDDLE.astype(y0.dtype), k)
    return jnp.asarray(fit_4th_order_polynomial(y0, y1, y_mid, k[0], k[-1], dt))


def initial_step_size(fun: Rate, t0: Any, y0: Any, order: int, rtol: Any, atol: Any, f0: Any) -> Any:
    """A first step whose error is likely to be tolerable, by how large the solution, its first and second derivative
    are."""
    y0, f0 = promote_dtypes_inexact(y0, f0)
    scale = (atol + jnp.abs(y0) * rtol).astype(y0.dtype)
    d0, d1 = jnp.linalg.norm(y0 / scale), jnp.linalg.norm(f0 / scale)
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1)
    f1 = fun(y0 + h0.astype(y0.dtype) * f0, t0 + h0)
    d2 = jnp.linalg.norm((f1 - f0) / scale) / h0
    steep = (0.01 / jnp.maximum(d1, d2)) ** (1.0 / (order + 1.0))
    h1 = jnp.where((d1 <= 1e-15) & (d2 <= 1e-15), jnp.maximum(1e-6, h0 * 1e-3), steep)
    return jnp.minimum(100.0 * h0, h1)


def runge_kutta_step(func: Rate, y0: Any, f0: Any, t0: Any, dt: Any) -> tuple[Any, Any, Any, Any]:
    """One step: the solution at its end, its derivative there, the estimated error, and the seven stages."""
    kind = f0.dtype
    nodes, stages = jnp.asarray(NODES, dt.dtype), jnp.asarray(STAGES, kind)
    step = dt.astype(kind)

    def stage(i: Any, k: Any) -> Any:
        yi = y0 + step * jnp.dot(stages[i - 1, :], k)
        return k.at[i, :].set(func(yi, t0 + dt * nodes[i - 1]))

    k = lax.fori_loop(1, 7, stage, jnp.zeros((7, f0.shape[0]), kind).at[0, :].set(f0))
    y1 = step * jnp.dot(jnp.asarray(FIFTH, kind), k) + y0
    return y1, k[-1], step * jnp.dot(jnp.asarray(ERROR, kind), k), k


def abs2(x: Any) -> Any:
    """The square of the absolute value."""
    return x.real**2 + x.imag**2 if jnp.iscomplexobj(x) else x**2


def mean_error_ratio(error_estimate: Any, rtol: Any, atol: Any, y0: Any, y1: Any) -> Any:
    """The root mean square of errors relative to what is tolerated; a step with at most 1 is taken."""
    tolerated = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    return jnp.sqrt(jnp.mean(abs2(error_estimate / tolerated.astype(error_estimate.dtype))))


def optimal_step_size(
    last_step: Any,
    mean_error_ratio: Any,
    safety: float = 0.9,
    ifactor: float = 10.0,
    dfactor: float = 0.2,
    order: float = 5.0,
) -> Any:
    """The next step, between ``dfactor`` and ``ifactor`` of the last; it doesn't shrink after one that was taken."""
    least = jnp.where(mean_error_ratio < 1, 1.0, dfactor)
    wanted = jnp.maximum(mean_error_ratio ** (-1.0 / order) * safety, least)
    factor = jnp.minimum(ifactor, wanted)
    return jnp.where(mean_error_ratio == 0, last_step * ifactor, last_step * factor)


def odeint(
    func: Rate,
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> Any:
    """The solution of ``y' = func(y, t, *args)``, ``y(t[0]) = y0`` at the times ``t``, with steps of a size that keeps
    the error tolerable. Differentiable in reverse mode, by solving the adjoint problem backwards.

    Args:
      func: the derivative, a pytree like ``y``.
      y0: the initial value, any pytree.
      t: an array of increasing times.
      *args: pytrees of arrays that ``func`` gets.
      rtol, atol: the relative and the absolute error that a step may have.
      mxstep: at most so many steps from a time to the next.
      hmax: no step is larger.

    Raises:
      TypeError: ``args`` hold something that is no array, or ``t`` is no array of floats.

    >>> print(odeint(lambda y, t: -y, 1.0, jnp.array([0.0, 1.0, 2.0])).round(4))
    [1.     0.3679 0.1353]
    """
    for x in tree_leaves(args):
        if not is_array_like(x):
            raise TypeError(f"The contents of odeint *args must be arrays or scalars, but got {x}.")
    if not hasattr(t, "dtype") or not jnp.issubdtype(t.dtype, jnp.floating):
        raise TypeError(f"t must be an array of floats, but got {t}.")
    converted, consts = closure_convert(func, y0, t[0], *args)
    return _on_pytrees(converted, rtol, atol, mxstep, hmax, y0, t, *args, *consts)


@functools.partial(jit, static_argnums=(0, 1, 2, 3, 4))
@_exact
def _on_pytrees(func: Rate, rtol: float, atol: float, mxstep: float, hmax: float, y0: Any, ts: Any, *args: Any) -> Any:
    flat, unravel = ravel_pytree(y0)
    return vmap(unravel)(_solved(ravel_first_arg(func, unravel), rtol, atol, mxstep, hmax, flat, ts, *args))


@functools.partial(custom_vjp, nondiff_argnums=(0, 1, 2, 3, 4))
def _solved(func: Rate, rtol: float, atol: float, mxstep: float, hmax: float, y0: Any, ts: Any, *args: Any) -> Any:
    """On vectors: a loop over the times around a loop of steps."""
    rate = lambda y, t: func(y, t, *args)

    def until(carry: list[Any], target: Any) -> tuple[list[Any], Any]:
        def wanted(state: list[Any]) -> Any:
            i, _, _, t, dt, _, _ = state
            return (t < target) & (i < mxstep) & (dt > 0)

        def step(state: list[Any]) -> list[Any]:
            i, y, f, t, dt, last, fit = state
            next_y, next_f, error, k = runge_kutta_step(rate, y, f, t, dt)
            ratio = mean_error_ratio(error, rtol, atol, y, next_y)
            next_fit = interp_fit_dopri(y, next_y, k, dt)
            next_dt = jnp.clip(optimal_step_size(dt, ratio), min=0.0, max=hmax)
            taken = [i + 1, next_y, next_f, t + dt, next_dt, t, next_fit]
            kept = [i + 1, y, f, t, next_dt, last, fit]
            return [jnp.where(ratio <= 1.0, a, b) for a, b in zip(taken, kept, strict=True)]

        _, *carry = lax.while_loop(wanted, step, [0, *carry])
        _, _, t, _, last, fit = carry
        place = (target - last) / (t - last)
        return carry, jnp.polyval(fit, place.astype(fit.dtype))

    f0 = rate(y0, ts[0])
    dt = jnp.clip(initial_step_size(rate, ts[0], y0, 4, rtol, atol, f0), min=0.0, max=hmax)
    first = [y0, f0, ts[0], dt, ts[0], jnp.array([y0] * 5)]
    _, ys = lax.scan(until, first, ts[1:])
    return jnp.concatenate((y0[None], ys))


def _forward(
    func: Rate, rtol: float, atol: float, mxstep: float, hmax: float, y0: Any, ts: Any, *args: Any
) -> tuple[Any, Any]:
    ys = _solved(func, rtol, atol, mxstep, hmax, y0, ts, *args)
    return ys, (ys, ts, args)


@_exact
def _backward(func: Rate, rtol: float, atol: float, mxstep: float, hmax: float, kept: Any, g: Any) -> Any:
    """From each time back to the one before it: the solution together with what it and the arguments contribute."""
    ys, ts, args = kept

    def backwards(state: Any, t: Any, *args: Any) -> Any:
        """Time runs backwards: ``t`` is the negative time."""
        y, y_bar, *_ = state
        y_dot, pullback = vjp(func, y, -t, *args)
        return (-y_dot, *pullback(y_bar))

    def to_the_time_before(carry: Any, i: Any) -> tuple[Any, Any]:
        y_bar, t0_bar, args_bar = carry
        t_bar = jnp.dot(func(ys[i], ts[i], *args), g[i]).real
        start = ys[i], y_bar, t0_bar - t_bar, args_bar
        times = jnp.array([-ts[i], -ts[i - 1]])
        ends = odeint(backwards, start, times, *args, rtol=rtol, atol=atol, mxstep=mxstep, hmax=hmax)
        _, y_bar, t0_bar, args_bar = tree_map(lambda x: x[1], ends)
        return (y_bar + g[i - 1], t0_bar, args_bar), t_bar

    first = g[-1], jnp.zeros((), ts.dtype), tree_map(jnp.zeros_like, args)
    (y_bar, t0_bar, args_bar), ts_bar = lax.scan(to_the_time_before, first, jnp.arange(len(ts) - 1, 0, -1))
    return (y_bar, jnp.concatenate([t0_bar[None], ts_bar[::-1]]), *args_bar)


_solved.defvjp(_forward, _backward)
