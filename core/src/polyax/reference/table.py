"""The table of the reference backend, and how NumPy functions get into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from polyax.ir.primitive import Primitive

Rule = Callable[..., list[np.ndarray]]

RULES: dict[Primitive, Rule] = {}
"""How each primitive runs under NumPy: ``rule(*arrays, **params) -> list of arrays``."""

NARROW = (np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16))


def rule(primitive: Primitive) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: registers a function that returns one array."""

    def register(fun: Callable[..., Any]) -> Callable[..., Any]:
        def one(*args: np.ndarray, **params: Any) -> list[np.ndarray]:
            with np.errstate(all="ignore"):  # what NumPy warns of is defined here
                return [np.asarray(fun(*args, **params))]

        RULES[primitive] = one
        return fun

    return register


def rules(primitive: Primitive) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: registers a function that returns several arrays."""

    def register(fun: Callable[..., Any]) -> Callable[..., Any]:
        def several(*args: np.ndarray, **params: Any) -> list[np.ndarray]:
            with np.errstate(all="ignore"):
                return [np.asarray(y) for y in fun(*args, **params)]

        RULES[primitive] = several
        return fun

    return register


def wide(x: np.ndarray) -> np.ndarray:
    """16-bit floats as float32, for sums and for functions that NumPy lacks for them."""
    return x.astype(np.float32) if x.dtype in NARROW else x


def through_float64(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Applies ``fun`` to float64 copies and rounds the result to the dtype of the first operand."""

    def apply(*args: Any) -> Any:
        return np.asarray(fun(*(np.asarray(x).astype(np.float64) for x in args))).astype(args[0].dtype)

    return apply
