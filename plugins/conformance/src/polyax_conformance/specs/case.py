"""Cases for the rules of primitives: a function, arguments, and which derivatives exist; with what tests do to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import polyax

BOTH = ("fwd", "rev")


@dataclass(frozen=True)
class Case:
    """``fun(*args)`` gives an array or a list of them.

    ``modes`` are those of the first derivative, ``again`` those in which it is differentiated once more. ``whole``
    lists arguments that ``vmap`` can't map.
    """

    fun: Callable[..., Any]
    args: tuple[Any, ...]
    modes: tuple[str, ...] = BOTH
    again: tuple[str, ...] = BOTH
    whole: tuple[int, ...] = ()

    @property
    def inexact(self) -> list[int]:
        return [i for i, x in enumerate(self.args) if np.asarray(x).dtype.kind in "fc"]

    @property
    def inputs(self) -> list[Any]:
        return [self.args[i] for i in self.inexact]

    def of_inexact(self, *given: Any) -> list[Any]:
        """The function of its inexact arguments, with a flat list of inexact results."""
        merged = list(self.args)
        for i, x in zip(self.inexact, given, strict=True):
            merged[i] = x
        return [x for x in as_list(self.fun(*merged)) if x.dtype.kind in "fc"]

    def tangents(self) -> list[Any]:
        return directions(self.inputs)

    def cotangents(self) -> list[Any]:
        return directions(self.of_inexact(*self.inputs))

    def derivative(self, mode: str) -> tuple[Callable[..., list[Any]], tuple[Any, ...]]:
        """The first derivative as a function of points and (co)tangents, and these."""
        if mode == "fwd":
            return lambda xs, ts: polyax.jvp(self.of_inexact, tuple(xs), tuple(ts))[1], (self.inputs, self.tangents())
        return lambda xs, cts: list(polyax.vjp(self.of_inexact, *xs)[1](cts)), (self.inputs, self.cotangents())


def case(fun: Callable[..., Any], *args: Any, **how: Any) -> Case:
    return Case(fun, args, **how)


def values(fun: Callable[..., Any], *args: Any, **how: Any) -> Case:
    """A case without derivatives."""
    return Case(fun, args, modes=(), again=(), **how)


def as_list(outs: Any) -> list[Any]:
    return list(outs) if isinstance(outs, (tuple, list)) else [outs]


def directions(xs: list[Any]) -> list[Any]:
    rng = np.random.default_rng(1)
    return [direction(rng, np.asarray(x)) for x in xs]


def direction(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    t = rng.uniform(-1, 1, x.shape)
    return (t + 1j * rng.uniform(-1, 1, x.shape) if x.dtype.kind == "c" else np.asarray(t)).astype(x.dtype)


def stack(x: Any, axis: int) -> np.ndarray:
    """Three examples of ``x``; integers stay the valid indices that they are, in another order."""
    x = np.asarray(x)
    if x.dtype.kind == "b":
        return np.stack([x, ~x, x], axis)
    if x.dtype.kind in "iu":
        return np.stack([x, x[::-1] if x.ndim else x - 1, x], axis)
    return np.stack([x, x * 0.9, x * 1.05], axis)
