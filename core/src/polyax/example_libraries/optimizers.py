"""``polyax.example_libraries.optimizers``: first-order optimizers, and schedules of step sizes.

Each is a triple ``(init_fn, update_fn, params_fn)`` of functions of pytrees, see ``Optimizer``. A step size is a
number, or a function of the step's number.
"""

from __future__ import annotations

import functools
from collections import namedtuple as namedtuple
from collections.abc import Callable, Sequence
from typing import Any

from polyax import numpy as jnp
from polyax.example_libraries.states import (
    Array,
    InitFn,
    JoinPoint,
    Optimizer,
    OptimizerState,
    Params,
    ParamsFn,
    State,
    Step,
    UpdateFn,
    Updates,
    optimizer,
    pack_optimizer_state,
    unpack_optimizer_state,
    unzip2,
)
from polyax.trace.tree import tree_leaves, tree_map

__all__ = [
    "Array", "InitFn", "JoinPoint", "Optimizer", "OptimizerState", "Params", "ParamsFn", "Schedule", "State", "Step",
    "UpdateFn", "Updates", "adagrad", "adam", "adamax", "clip_grads", "constant", "exponential_decay",
    "inverse_time_decay", "l2_norm", "make_schedule", "momentum", "namedtuple", "nesterov", "optimizer",
    "pack_optimizer_state", "piecewise_constant", "polynomial_decay", "rmsprop", "rmsprop_momentum", "sgd", "sm3",
    "unpack_optimizer_state", "unzip2",
]  # fmt: skip

Schedule = Callable[[Step], Any]

# --- optimizers of one array ------------------------------------------------------------------------------------------


@optimizer
def sgd(step_size: Any) -> Any:
    """Gradient descent: ``x - step g``.

    >>> opt = sgd(0.1)
    >>> opt.params_fn(opt.update_fn(0, {"w": 2.0}, opt.init_fn({"w": 1.0})))
    {'w': 0.8}
    """
    size = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - size(i) * g, lambda x: x


@optimizer
def momentum(step_size: Any, mass: float) -> Any:
    """Gradient descent along ``v = mass v + g``."""
    size = make_schedule(step_size)

    def update(i: Step, g: Array, state: State) -> State:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * velocity, velocity

    return _with_zeros(1), update, _first


@optimizer
def nesterov(step_size: Any, mass: float) -> Any:
    """Momentum that looks ahead: a step along ``mass v + g``."""
    size = make_schedule(step_size)

    def update(i: Step, g: Array, state: State) -> State:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * (mass * velocity + g), velocity

    return _with_zeros(1), update, _first


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> Any:
    """Gradients over the root of the sum of their squares (Duchi et al., 2011), with momentum."""
    size = make_schedule(step_size)

    def update(i: Step, g: Array, state: State) -> State:
        x, squares, m = state
        squares = squares + jnp.square(g)
        m = (1 - momentum) * g * _inverse_root(squares) + momentum * m
        return x - size(i) * m, squares, m

    return _with_zeros(2), update, _first


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """Gradients over the root of a running mean of their squares."""
    size = make_schedule(step_size)

    def update(i: Step, g: Array, state: State) -> State:
        x, squares = state
        squares = gamma * squares + (1 - gamma) * jnp.square(g)
        return x - size(i) * g / jnp.sqrt(squares + eps), squares

    return _with_zeros(1), update, _first


@optimizer
def rmsprop_momentum(step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9) -> Any:
    """The same with momentum."""
    size = make_schedule(step_size)

    def update(i: Step, g: Array, state: State) -> State:
        x, squares, m = state
        squares = gamma * squares + (1 - gamma) * jnp.square(g)
        m = momentum * m + size(i) * g / jnp.sqrt(squares + eps)
        return x - m, squares, m

    return _with_zeros(2), update, _first


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Running means of gradients and of their squares, without bias (Kingma and Ba, 2014)."""
    size = make_schedule(step_size)

    def update(i: Step, g: Array, state: State) -> State:
        x, m, v = state
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * jnp.square(g)
        mean, square = m / _without_bias(b1, i, m), v / _without_bias(b2, i, v)
        return x - size(i) * mean / (jnp.sqrt(square) + eps), m, v

    return _with_zeros(2), update, _first


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Adam with the largest of decaying gradients in place of their mean square."""
    size = make_schedule(step_size)

    def update(i: Step, g: Array, state: State) -> State:
        x, m, u = state
        m, u = b1 * m + (1 - b1) * g, jnp.maximum(b2 * u, jnp.abs(g))
        return x - size(i) / _without_bias(b1, i, m) * m / (u + eps), m, u

    return _with_zeros(2), update, _first


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Any:
    """Adagrad that keeps sums of squares for each index of each dimension alone (Anil et al., 2019)."""
    size = make_schedule(step_size)

    def init(x: Array) -> State:
        return x, jnp.zeros_like(x), [jnp.zeros(n, jnp.result_type(x)) for n in jnp.shape(x)]

    def update(i: Step, g: Array, state: State) -> State:
        x, m, sums = state
        bounds = [jnp.expand_dims(v, [d for d in range(jnp.ndim(x)) if d != n]) for n, v in enumerate(sums)]
        squares = functools.reduce(jnp.minimum, bounds) + jnp.square(g)
        m = (1 - momentum) * g * _inverse_root(squares) + momentum * m
        sums = [jnp.max(squares, [d for d in range(jnp.ndim(x)) if d != n]) for n in range(jnp.ndim(x))]
        return x - size(i) * m, m, sums

    return init, update, _first


def _with_zeros(count: int) -> Callable[[Array], State]:
    return lambda x: (x, *(jnp.zeros_like(x) for _ in range(count)))


def _first(state: State) -> Array:
    return state[0]


def _inverse_root(x: Array) -> Array:
    """``1 / sqrt(x)``, and 0 where nothing was summed yet."""
    return jnp.where(x > 0, 1 / jnp.sqrt(x), 0)


def _without_bias(rate: float, step: Step, like: Array) -> Array:
    return 1 - jnp.asarray(rate, jnp.result_type(like)) ** (step + 1)


# --- schedules --------------------------------------------------------------------------------------------------------


def constant(step_size: float) -> Schedule:
    """The same step size always."""
    return lambda i: step_size


def exponential_decay(step_size: float, decay_steps: int, decay_rate: float) -> Schedule:
    """``step_size decay_rate ** (i / decay_steps)``."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: float, decay_steps: int, decay_rate: float, staircase: bool = False) -> Schedule:
    """``step_size / (1 + decay_rate i / decay_steps)``; the fraction is rounded down if ``staircase``."""
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: float, decay_steps: int, final_step_size: float, power: float = 1.0) -> Schedule:
    """From ``step_size`` to ``final_step_size`` within ``decay_steps``, along a power of what is left of them."""

    def schedule(i: Step) -> Any:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return (step_size - final_step_size) * left**power + final_step_size

    return schedule


def piecewise_constant(boundaries: Sequence[int], values: Sequence[float]) -> Schedule:
    """``values[n]`` after the ``n``-th of the steps ``boundaries``.

    Raises:
      ValueError: there isn't one value more than boundaries.
    """
    limits, sizes = jnp.array(boundaries), jnp.array(values)
    if limits.ndim != 1 or sizes.shape != (limits.shape[0] + 1,):
        raise ValueError(
            f"piecewise_constant: boundaries length must be one shorter than values length, got shapes {limits.shape} "
            f"and {sizes.shape}"
        )
    return lambda i: sizes[jnp.sum(i > limits)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule as it is, a number as a constant one.

    Raises:
      TypeError: it is neither.
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if isinstance(scalar_or_schedule, (list, tuple, str)) or jnp.ndim(scalar_or_schedule):
        raise TypeError(f"a step size must be a number or a function of the step, got {scalar_or_schedule!r}")
    return constant(scalar_or_schedule)


# --- gradients --------------------------------------------------------------------------------------------------------


def l2_norm(tree: Any) -> Any:
    """The root of the sum of squares of all elements of a pytree.

    >>> l2_norm({"a": 3.0, "b": 4.0}).item()
    5.0
    """
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_leaves(tree)))


def clip_grads(grad_tree: Updates, max_norm: float) -> Updates:
    """Gradients, made smaller where their norm is larger than ``max_norm``."""
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)
